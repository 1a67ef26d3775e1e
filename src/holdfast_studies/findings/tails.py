"""The tail of the spurious share: Kesten's index, the floor of sampling error, shares and divergence after T steps."""

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from holdfast.core.statistics import bootstrap, median
from holdfast.sensing.builder import Parts
from holdfast.sensing.environments import Environments, gaussian, table, two_point, uniform
from holdfast.sensing.simulation import execute
from holdfast.theory.shares import ESCAPE, SimulatedShares, simulate_shares
from holdfast.theory.tails import StationaryLaw, stationary_law
from holdfast_studies.kit.drawing import Figure, finished, new_figure
from holdfast_studies.kit.runs import Effort, Progress, Settings, replace, tracked
from holdfast_studies.kit.study import Claim, ClaimBuilder, over, share, study

LEFT_OPEN = (
    "The paper bounds the spurious signal in the mean and draws means over ten runs. The law over runs, its tail and "
    "the floor of sampling error are results of this project.",
    "Long runs are of dimension 4: what sampling error sustains in the columns that have learned the invariant signal "
    "does not depend on the dimension.",
)
LONG_RUNS, SHORT_RUNS = 80, 12  # times the seeds

# The bias moves the index: without sign changes of the factors a mean factor of one makes it one.
BIASES, HETEROGENEITY = (0.0, 1.0), 10.0
BATCH_SIZE = 2000
LONG = Settings(dimension=4, batch_size=BATCH_SIZE, step_size=0.05, steps=300, every=300, init_scale=1e-4)
# The index is the slope of log P(|Q| > x) between these shares: above the floor (2.5e-4), below the ceiling (5).
LOW, HIGH = 2e-3, 5e-2
FIRST_SEED = 500_000  # the levels and the number of runs were chosen on others

# Settings of which shares after T steps are compared with the law of `simulate_shares`, and the levels.
SHORT = Settings(dimension=24, batch_size=BATCH_SIZE, step_size=0.08, steps=150, every=150, init_scale=1e-4)
SHORT_LAWS: dict[str, tuple[Environments, float]] = {  # with the variance of the label noise
    "two-point": (two_point(1.0, 6.0), 0.0),
    "uniform": (uniform(1.0, 11.0), 16.0),
    "unequal": (table(np.array([-9.0, 3.0, 6.0]), np.array([0.3, 0.3, 0.4])), 0.0),
}
LEVELS = (1e-3, 1e-2, 5e-2)
# 9 intervals all cover with a confidence of 95 % if each is this many standard errors wide (Bonferroni).
WIDE = 2.77

# Normal strengths and a step size at which some runs diverge.
UNBOUNDED, LARGE = gaussian(1.0, 6.0), Settings(
    dimension=4, batch_size=BATCH_SIZE, step_size=0.16, steps=75, every=75, init_scale=1e-4
)  # fmt: skip


def final_shares(settings: Settings, law: Environments) -> np.ndarray:
    """||Q||^2 at the end of each run, by the exact law; infinite where it diverged."""
    records = execute(replace(settings, spurious_rank=law.rank), Parts(law))
    return np.where(records.diverged_at >= 0, np.inf, np.square(records.values["spurious_norm"][:, -1]))


def simulate(effort: Effort, progress: Progress | None = None) -> xr.Dataset:
    """Long runs for each bias, runs of T steps for each law, and normal strengths at a large step size."""
    long_runs = LONG_RUNS * effort.seeds
    wanted = [
        *((LONG, two_point(bias, HETEROGENEITY), long_runs, 0.0) for bias in BIASES),
        *((SHORT, law, SHORT_RUNS * effort.seeds, noise) for law, noise in SHORT_LAWS.values()),
        (LARGE, UNBOUNDED, long_runs, 0.0),
    ]
    found = [
        final_shares(replace(settings, seeds=runs, seed=FIRST_SEED, noise_variance=noise), law)
        for settings, law, runs, noise in tracked(wanted, progress)
    ]
    return xr.Dataset(
        {
            "long": (("bias", "run"), np.stack(found[: len(BIASES)])),
            "short": (("law", "short_run"), np.stack(found[len(BIASES) : -1])),
            "unbounded": ("run", found[-1]),
        },
        {"bias": list(BIASES), "law": list(SHORT_LAWS)},
        {"seeds": effort.seeds},
    )


def _stationary(bias: float) -> StationaryLaw:
    return stationary_law(two_point(bias, HETEROGENEITY), LONG.values("step_size")[0], batch_size=BATCH_SIZE)


def expected_shares(settings: Settings, law: Environments, **options: Any) -> SimulatedShares:
    """The law of the shares by theory, see `simulate_shares` for its options."""
    names = ("step_size", "steps", "init_scale", "batch_size", "dimension")
    given: dict[str, Any] = {name: getattr(settings, name) for name in names}
    return simulate_shares(law, **given, **options)


def slope(shares: np.ndarray) -> float:
    """The index between two levels: log P(|Q| > x) falls by this times log x."""
    return _between(float(np.mean(shares > LOW)), float(np.mean(shares > HIGH)))


def _between(low: float, high: float) -> float:
    # among few runs perhaps none is above the higher level
    return float(2 * np.log(low / high) / np.log(HIGH / LOW)) if high else np.inf


@cache
def _expected_after(name: str) -> SimulatedShares:
    """The law of one of `SHORT_LAWS`: figure, numbers and claims ask for it."""
    law, noise = SHORT_LAWS[name]
    return expected_shares(SHORT, law, noise_variance=noise)


def _comparison(data: xr.Dataset) -> pd.DataFrame:
    """Shares of runs above the levels, seen and by theory."""
    rows = []
    for name in SHORT_LAWS:
        expected, runs = _expected_after(name), data["short"].sel(law=name).values
        for level in LEVELS:
            promised, seen = expected.above(level).value, float(np.mean(runs > level))
            error = np.sqrt(promised * (1 - promised) * (1 / len(runs) + 1 / len(expected.spurious)))
            rows.append((name, level, promised, seen, error))
    return pd.DataFrame(rows, columns=["law", "level", "by_theory", "seen", "standard_error"])


def draw(data: xr.Dataset) -> Figure:
    """The tail for each bias, and shares after T steps against theory."""
    figure, (left, right) = new_figure(2, f"The tail of the spurious share, {data.sizes['run']} runs")
    levels = np.geomspace(1e-5, 5, 60)
    for number, bias in enumerate(BIASES):
        runs, law, colour = data["long"].sel(bias=bias).values, _stationary(bias), f"C{number}"
        seen = [np.mean(runs > level) for level in levels]
        left.plot(levels, seen, ".", color=colour, label=f"s = {bias:g}, simulated")
        theory = [law.above(level) for level in levels]
        left.plot(levels, theory, color=colour, label=f"index {law.tail_index:.2f}, theory")
    title = f"In the long run, M = {HETEROGENEITY:g}"
    left.set(xscale="log", yscale="log", ylim=(1e-3, 1.2), xlabel="share x", ylabel="P(Q² > x)", title=title)
    compared = _comparison(data)
    for name, rows in compared.groupby("law", sort=False):
        error = WIDE * rows["standard_error"]
        right.errorbar(rows["by_theory"], rows["seen"], error, fmt="o", markersize=4, label=name)
    ends = [compared["by_theory"].min() / 2, compared["by_theory"].max() * 2]
    right.plot(ends, ends, color="0.4", linewidth=1, label="equal")
    right.set(xscale="log", yscale="log", xlabel="P(Q² > level) by theory", ylabel="share of runs")
    for axis in (right.xaxis, right.yaxis):
        axis.set_minor_formatter("")
    right.set_title(f"After {SHORT.steps} steps, levels {', '.join(f'{level:g}' for level in LEVELS)}")
    return finished(figure)


def claims(data: xr.Dataset) -> list[Claim]:
    """Index, floor, shares and divergence."""
    long_run = f"d=4, m=2000, eta=0.05, M={HETEROGENEITY:g}, T={LONG.steps}, {data.sizes['run']} runs, exact law"
    claim = ClaimBuilder("tails", settings=f"{long_run}, s=1")
    indices = []
    for bias in BIASES:
        law = _stationary(bias)
        expected = _between(law.above(LOW), law.above(HIGH))
        measured = bootstrap(data["long"].sel(bias=bias).values, slope)
        indices.append(
            claim(f"index-{bias:g}", "The spurious share has a power tail with the index of Kesten's recursion, "
                  "steepened by the ceiling.", over(measured, expected), (0.8, 1.25),
                  f"slope between the shares {LOW:g} and {HIGH:g}, {measured.value:.2f}, over the predicted "
                  f"{expected:.2f}; the index itself is {law.tail_index:.2f}", settings=f"{long_run}, s={bias:g}")
        )  # fmt: skip
    runs, law = data["long"].sel(bias=1.0).values, _stationary(1.0)
    compared = _comparison(data)
    inside = (compared["seen"] - compared["by_theory"]).abs() <= WIDE * compared["standard_error"]
    expected = float(expected_shares(LARGE, UNBOUNDED).diverged.mean())
    lost = data["unbounded"].values > ESCAPE / LARGE.values("step_size")[0]
    large = share(runs > 1e-2)
    return [
        *indices,
        claim("floor", "Sampling error sustains a median share of about 1 / (2 m).", over(median(runs), law.median),
              (0.8, 1.25), f"median over the predicted {law.median:.3g}"),
        claim("long-run", "In the long run the share of runs above 0.01 is that of the stationary law.",
              over(large, law.above(1e-2)), (0.75, 1.33), f"share of runs, {large.value:.3f}, over the predicted "
              f"{law.above(1e-2):.3f}"),
        claim("finite-time", "After T steps the shares of runs above a level are those of the law of the signal rows.",
              share(inside), (0.65, 1.0), f"{int(inside.sum())} of {len(inside)} lie within {WIDE} standard errors; of "
              "9, all have to, for the interval to begin at 0.7", settings=f"d=24, m=2000, eta=0.08, T={SHORT.steps}, "
              f"{data.sizes['short_run']} runs of each of three laws, one with label noise"),
        claim("divergence", "Normal strengths make some runs diverge, as many as predicted.",
              over(share(lost), expected), (0.5, 2.0),
              f"{int(lost.sum())} of {len(lost)} runs diverged, over the predicted share of {expected:.3f}",
              settings=f"d=4, m=2000, eta=0.16, normal strengths (1, 6), T={LARGE.steps}, {len(lost)} runs"),
    ]  # fmt: skip


def answer(data: xr.Dataset) -> str:
    """The answer in words."""
    runs, law = data["long"].sel(bias=1.0).values, _stationary(1.0)
    half, mean = float(np.median(runs)), float(runs[np.isfinite(runs)].mean())
    return (
        f"Sampling error leaves half of the runs below a share of {half:.1g} (theory {law.median:.1g}), "
        f"but the mean is {mean:.1g}: the share has a power tail, of index {law.tail_index:.2f} here, and "
        f"{100 * np.mean(runs > 1e-2):.0f} % of the runs are above 0.01 (theory {100 * law.above(1e-2):.0f} %)."
    )


EXPERIMENT = study("tails", __doc__, LEFT_OPEN, simulate, draw, _comparison, claims, answer, seeds=64, quick_seeds=4)
