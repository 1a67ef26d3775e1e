"""The singular values of a completed matrix over the steps of SGD, with the jumps of its rank."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from holdfast.plots.bands import COLOURS

# Singular values are drawn down to this share of the largest; what is below is lost for good.
LOWEST_SHARE = 1e-4


def draw_jumps(estimator: Any) -> Figure:
    """Singular values over the run, those that survive in colour; jumps and the start of the annealing are marked.

    Args:
        estimator: fitted `DeepMatrixFactorization`.

    Example:
        >>> from holdfast.completion import DeepMatrixFactorization
        >>> X = np.array([[i, j] for i in range(12) for j in range(12) if (i + 2 * j) % 3 > 0])
        >>> model = DeepMatrixFactorization(steps=200, folds=2).fit(X, (X[:, 0] - 5.5) * (X[:, 1] - 5.5))
        >>> [panel.get_ylabel() for panel in draw_jumps(model).axes]
        ['singular value', 'rank']
    """
    figure = Figure(figsize=(7.2, 5.2))
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    steps, values, changes = estimator.record_steps_, estimator.singular_values_, estimator.jumps_
    for number in reversed(range(values.shape[1])):
        survives = number < estimator.rank_
        upper.plot(
            steps,
            values[:, number],
            color=COLOURS["invariant" if survives else "residual"],
            linewidth=1.6 if survives else 0.9,
            label={0: "survives" if survives else "lost", estimator.rank_: "lost"}.get(number),
        )
    top = values.max(initial=0.0) or 1.0
    upper.set_yscale("log")
    upper.set_ylim(LOWEST_SHARE * top, 2 * top)
    upper.set(ylabel="singular value")
    upper.set_title(f"From rank {_ranks(estimator)[0]} to rank {estimator.rank_}")
    lower.step(steps, _ranks(estimator), where="post", color=COLOURS["invariant"])
    lower.plot(changes["step"], changes["after"], "o", color=COLOURS["spurious"], markersize=4, label="jump")
    lower.set(xlabel="steps", ylabel="rank")
    lower.set_ylim(bottom=0)
    lower.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    for panel in (upper, lower):
        panel.axvline(estimator.annealed_at_, color="0.4", linewidth=0.8, linestyle="--")
        if panel.get_legend_handles_labels()[1]:
            panel.legend(loc="center right")
    upper.annotate(
        "annealing", (estimator.annealed_at_, 1.0), (4, -4), xycoords=("data", "axes fraction"),
        textcoords="offset points", va="top", fontsize=8, color="0.4",
    )  # fmt: skip
    return figure


def _ranks(estimator: Any) -> np.ndarray:
    """The rank at every record, from the table of jumps."""
    changes = estimator.jumps_
    begin = int(changes["before"].iloc[0]) if len(changes) else estimator.rank_
    done = np.searchsorted(changes["step"].to_numpy(int), estimator.record_steps_, side="right")
    return np.concatenate([[begin], changes["after"].to_numpy(int)])[done]
