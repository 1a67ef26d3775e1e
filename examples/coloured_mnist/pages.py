"""The pages on coloured MNIST in the documentation: tables and a figure of what the other scripts recorded.

    python examples/coloured_mnist/pages.py docs

writes them into the folder of the documentation.
"""

import sys
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke

from holdfast.core.statistics import Estimate, mean_interval
from holdfast.core.writing import write_text
from holdfast.plots.bands import style
from holdfast.theory.lyapunov import two_point_threshold
from holdfast_studies.comparison.rendering import markdown_table
from holdfast_studies.images.recorded import (
    Rows,
    about,
    about_table,
    accuracy,
    estimate_text,
    gain,
    gains_by_difference,
    recorded,
    seed_gains,
    table_rows,
)

# Methods of which papers report the last step, with the setting that is best on test rows.
PUBLISHED_OTHERWISE = ("IRM", "V-REx", "Group DRO", "IRM, dropout", "V-REx, dropout")
# Trial -> what it would replace.
COMPARISONS = {
    "discover and offset, decaying": "discover and offset, constant",
    "in turn, growing": "in turn, constant",
    "in turn, decaying": "in turn, constant",
    "in turn, amplified": "in turn, constant",
    "head after in turn": "head after pooled",
}
IN_TURN = ("in turn, constant", "in turn, growing", "in turn, decaying", "in turn, amplified")
# Seeds of the trials that were looked at before, and seeds that were run once.
LOOKED_AT, CONFIRMED = range(1002, 1005), range(1005, 1015)
# Of the tests for directions in which means or variances vary.
LEVEL = 0.01
WORST, LAST_WORST = "step and setting by the worst environment", "last step, setting by the worst environment"
LAST_TEST = "last step, best setting on test"
SCRIPT_RULES = {
    "authors": "rerun, settings of the authors",
    "worst": WORST,
    "worst, last step": LAST_WORST,
    "test, last step": LAST_TEST,
}
GAIN_FIGURE = "coloured_mnist_gain.png"
# Gains beyond these have the colour of these.
LARGEST_GAIN = 0.1
# Of numbers whose interval contains zero.
UNSURE = "0.5"
TITLES = {
    "reshuffled": "in turn, reshuffled",
    "cyclic": "in turn, always the same way round",
    "independent": "drawn independently",
}


def results_markdown() -> str:
    """Every method by its rule, and what other rules do."""
    found = recorded("coloured_mnist")
    problems = list(found["problems"])
    gains = (estimate_text(gain(found, "in turn, averaged", "pooled SGD, averaged", each)) for each in problems)
    parts = [about_table(), markdown_table(table_rows())]
    parts.append(f"In turn against pooled SGD, seed by seed: a gain of {' and '.join(gains)}.")
    for problem in problems:
        rows: Rows = [("method", WORST, LAST_WORST, LAST_TEST)]
        for name in PUBLISHED_OTHERWISE:
            result = found["problems"][problem][name]
            values = (result["test"], result["last_step"]["test"], result["last_step"]["best_on_test"])
            rows.append((name, *(estimate_text(mean_interval(each)) for each in values)))
        parts += [f"Methods whose papers choose on test, with {problem}, by three rules:", markdown_table(rows)]
    return _page(parts)


def scripts_markdown() -> str:
    """What others published, and their scripts on the same images."""
    content = recorded("public_scripts")
    described = content["about"]
    named = ", ".join(f"{name} {version}" for name, version in described["versions"].items())
    parts = [
        "Published, with the agreements 0.8 and 0.9:",
        markdown_table(_published_rows()),
        f"The public scripts, recorded on {described['device']} ({named}). {described['data']}.",
        markdown_table(script_rows()),
        "What was changed to run them:",
        "\n".join(f"- {each}" for each in described["changes"]),
        f"Settings with held-out rows are drawn 5 times for each of 10 seeds: {content['draws']}.",
    ]
    return _page(parts)


def _published_rows() -> Rows:
    content = recorded("published")
    rows: Rows = [("method", "accuracy", "settings chosen by", "source")]
    for each in content["results"]:
        source = content["sources"][each["source"]]
        link = f"[arXiv:{source['arxiv']}](https://arxiv.org/abs/{source['arxiv']}), {source['table']}"
        rows.append((each["method"], _published(each), content["rules"][each["rule"]], link))
    return rows


def _published(result: Mapping[str, Any]) -> str:
    return f"{result['test'] / 100:.3f} ± {result['spread'] / 100:.3f}"


def script_rows() -> Rows:
    """The public scripts: what was published, and what they do here by each rule."""
    scripts, papers = recorded("public_scripts"), recorded("published")
    published = {
        (each["method"], papers["sources"][each["source"]]["arxiv"]): _published(each) for each in papers["results"]
    }
    reached: dict[tuple[str, str], dict[str, str]] = {}
    for run in scripts["runs"]:
        test = run["test"]
        # of the authors' settings as the papers have it: the standard deviation over the restarts
        spread = f"{np.mean(test):.3f} ± {np.std(test):.3f}"
        text = spread if run["rule"] == "authors" else estimate_text(mean_interval(test))
        reached.setdefault((run["script"], run["method"]), {})[run["rule"]] = text
    rows: Rows = [("script", "method", "published", *SCRIPT_RULES.values())]
    for (name, method), cells in reached.items():
        script = scripts["scripts"][name]
        address = f"https://github.com/{script['repository']}/blob/{script['commit']}/{script['path']}"
        link = f"[{script['repository'].partition('/')[2]}]({address})"
        here = (cells.get(rule, "") for rule in SCRIPT_RULES)
        rows.append((link, method, published.get((method, script["arxiv"]), ""), *here))
    return rows


def gains_markdown() -> str:
    """The gain of one environment a step, by the difference of the agreements, the step size and the order."""
    measured = recorded("gain_map")
    rows: Rows = [("order", "difference", *(f"step size {size:g}" for size in measured["step_sizes"]))]
    for order in measured["accuracy"]:
        if order != "pooled":
            found = gains_by_difference(order)
            rows += [(order, f"{difference:g}", *map(estimate_text, each)) for difference, each in found.items()]
    compared = (
        f"Gain in accuracy at the test over pooled SGD with the same step size after {measured['settings']['steps']:,} "
        "steps, mean over the mean agreements 0.6 and 0.7, with its interval of 95 % over the seeds."
    )
    return _page([f"{about(measured)} {compared}", markdown_table(rows)])


def _trial_gains(found: Mapping[str, Any]) -> Iterator[tuple[str, str, Estimate, Estimate]]:
    """(trial, problem, its gain on seeds that were looked at, and on others)."""
    for (trial, other), problem in product(COMPARISONS.items(), found["problems"]):
        before, confirmed = (gain(found, trial, other, problem, seeds) for seeds in (LOOKED_AT, CONFIRMED))
        yield trial, problem, before, confirmed


def clear_gains(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(trial, problem) of each clear gain: a mean above zero on the first seeds, an interval above it on the others."""
    gains = _trial_gains(found)
    return [(trial, problem) for trial, problem, before, confirmed in gains if before.value > 0 and confirmed.low > 0]


def gain_rows(found: Mapping[str, Any]) -> Rows:
    """The gain of each trial, on seeds that were looked at and on others."""
    spans = (f"gain, seeds {seeds[0]} to {seeds[-1]}" for seeds in (LOOKED_AT, CONFIRMED))
    rows: Rows = [("trial", "against", "agreements", "accuracy, all seeds", *spans)]
    for trial, problem, *gains in _trial_gains(found):
        reached = f"{accuracy(found, trial, problem).value:.3f}"
        rows.append((trial, COMPARISONS[trial], problem, reached, *map(estimate_text, gains)))
    return rows


def trials_markdown() -> str:
    """Ideas that did not help, each against what it would replace."""
    found = recorded("further_trials")
    problems = found["problems"]
    clear = "; ".join(f"{trial} ({problem})" for trial, problem in clear_gains(found))
    last: Rows = [("method", *problems)]
    for name in IN_TURN:
        best = (results[name]["last_step"]["best_on_test"] for results in problems.values())
        last.append((name, *(estimate_text(mean_interval(each)) for each in best)))
    head = ("agreements", "what varies", "directions", "images in the group of their colour")
    directions: Rows = [(*head, "seeds in which more varies within groups")]
    for problem, results in problems.items():
        for kind, each in results["pooled"]["discovery"].items():
            counts, shares = each["directions"], 100 * np.array(each["agreement"])
            more = int(np.sum(np.array(each["p_value_within"]) < LEVEL))
            spans = (f"{min(counts)} to {max(counts)}", f"{shares.min():.1f} % to {shares.max():.1f} %")
            directions.append((problem, kind, *spans, f"{more} of {len(counts)}"))
    parts = [
        f"{about(found)} Gain in accuracy at the test, seed by seed, with its interval of 95 %. "
        + (f"A clear gain: {clear}." if clear else "None of them gains clearly."),
        markdown_table(gain_rows(found)),
        "One environment a step at the last step, with the setting that is best on test:",
        markdown_table(last),
        "Directions of the last hidden layer of the pooled network in which means, or variances, vary:",
        markdown_table(directions),
    ]
    return _page(parts)


def _page(parts: list[str]) -> str:
    return "\n\n".join(parts) + "\n"


def colour_strength(mean_image_norm: float) -> float:
    """How fast the colour is learnt in a linear network of two layers, for each unit of its correlation with the label.

    At the start the logits are zero. Along the unit vector v between the mean images of the two colours, the gradient
    of the logistic loss in environment e, whose colour agrees with the label in a share p_e, is

        xi_e = E_e[(y - 1/2) <v, x>] = (2 p_e - 1) |mean image| / (2 sqrt(2)),

    and a step multiplies the two layers along it by 1 + eta xi_e. The number is that after 2 p_e - 1.

    Args:
        mean_image_norm: |mean image| of the grey digits.
    """
    return mean_image_norm / (2 * 2**0.5)


def draw_gain_map(measured: Mapping[str, Any], orders: tuple[str, ...] = ("reshuffled", "independent")) -> Figure:
    """The gain over mean agreement and difference, one panel for each step size and order.

    Args:
        measured: the content of gain_map, see `recorded`.
        orders: one row of panels for each.
    """
    sizes, strength = measured["step_sizes"], colour_strength(measured["mean_image_norm"])
    with style():
        figure = Figure(figsize=(3.3 * len(sizes) + 0.9, 3.0 * len(orders) + 1.1), layout="constrained")
        panels = figure.subplots(len(orders), len(sizes), squeeze=False, sharex=True, sharey=True)
        for row, order in zip(panels, orders, strict=True):
            for number, (axes, step_size) in enumerate(zip(row, sizes, strict=True)):
                image = _panel(axes, measured["cells"], seed_gains(measured, order)[..., number])
                _theory(axes, step_size, strength)
                axes.set_title(f"{TITLES[order]}, step size {step_size:g}", fontsize=9)
        for axes in panels[-1]:
            axes.set_xlabel("mean agreement of colour and label")
        for axes in panels[:, 0]:
            axes.set_ylabel("difference of the agreements")
        bar = figure.colorbar(image, ax=panels, shrink=0.8, extend="both")
        bar.set_label("accuracy at the test, minus pooled SGD")
        lines = [Line2D([], [], color="black"), Line2D([], [], color="black", linestyle=":")]
        words = ["theory: above it the colour is washed out at this step size", "above it: at some step size"]
        lines.append(Line2D([], [], linestyle="", marker="$+0.01$", markersize=22, color=UNSURE))
        words.append("zero lies in the 95 % interval")
        figure.legend(lines, words, loc="outside lower center", ncols=3)
    return figure


def _panel(axes: Axes, cells: list[list[float]], gains: np.ndarray) -> QuadMesh:
    """Gains, (cells, seeds), as a map of their means."""
    means, differences = (np.unique([cell[place] for cell in cells]) for place in (0, 1))
    values = np.full((len(differences), len(means)), np.nan)
    for (mean, difference), own in zip(cells, gains, strict=True):
        gain, low, high = mean_interval(own)
        values[np.searchsorted(differences, difference), np.searchsorted(means, mean)] = gain
        text = f"{round(gain, 2) + 0.0:+.2f}".replace("-", "\N{MINUS SIGN}")
        words = axes.text(mean, difference, text, ha="center", va="center", fontsize=8, zorder=5)
        words.set_color(UNSURE if low <= 0 <= high else "black")
        words.set_path_effects([withStroke(linewidth=2.5, foreground="white")])  # legible on dark cells and on lines
    norm = TwoSlopeNorm(0, -LARGEST_GAIN, LARGEST_GAIN)
    return axes.pcolormesh(means, differences, values, norm=norm, cmap="RdBu", shading="nearest", rasterized=True)


def _theory(axes: Axes, step_size: float, strength: float) -> None:
    """Where the growth, the mean of log|1 + eta xi_e|, is zero, and the limit of large step sizes."""
    low, high = axes.get_xlim()
    bottom, top = axes.get_ylim()
    mean = np.linspace(0.5, high, 200)
    # strengths are those of 2 p - 1: a difference of agreements is half the difference of these
    axes.plot(mean, two_point_threshold(step_size, strength * (2 * mean - 1)) / strength, color="black")
    axes.plot(mean, 2 * mean - 1, color="black", linestyle=":")
    axes.set(xlim=(low, high), ylim=(bottom, top))


PAGES = {
    "coloured_mnist_table.md": results_markdown,
    "coloured_mnist_scripts.md": scripts_markdown,
    "coloured_mnist_gains.md": gains_markdown,
    "coloured_mnist_trials.md": trials_markdown,
}
"""Name of a file -> its text. docs/coloured_mnist.md includes each in its section."""


def main(folder: str) -> None:
    """Write tables and figure into the folder of the documentation."""
    for name, text in PAGES.items():
        write_text(Path(folder) / name, text())
    draw_gain_map(recorded("gain_map")).savefig(Path(folder) / GAIN_FIGURE, dpi=110)


if __name__ == "__main__":
    main(*sys.argv[1:])
