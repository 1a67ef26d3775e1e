"""The order of environments: visiting them in cycles keeps the exponent and removes the random walk of log Q^2."""

import numpy as np
import pandas as pd
import xarray as xr

from holdfast.core.order import ORDERS
from holdfast.core.statistics import bootstrap, mean_interval, median
from holdfast.sensing.environments import two_point
from holdfast.theory.lyapunov import two_point_exponent
from holdfast_studies.findings.tails import expected_shares
from holdfast_studies.kit.drawing import Axes, Figure, finished, new_figure, quantile_bars
from holdfast_studies.kit.runs import Effort, Progress, Settings, replace, simulate_each, stages
from holdfast_studies.kit.study import Claim, ClaimBuilder, share, study

LEFT_OPEN = ("The paper draws the environment of each step independently; the question is ours, and so are M and T.",)
# The exponent is positive up to M = 6 and negative from 7 on; the threshold is at 6.40.
STRENGTHS, CLAIMED = (4.0, 5.0, 6.0, 7.0, 8.0, 9.0), (5.0, 7.0, 9.0)
# The long runs have a quarter of the seeds.
PART, FEWEST = 4, 8
# Seeds that nothing was chosen on.
FIRST_SEED = 10_000
FINITE = Settings(every=200, seed=FIRST_SEED)
LONG = replace(FINITE, dimension=30, batch_size=2400, heterogeneity=(5.0, 7.0), steps=2000, every=2000)
# Without sampling error a step in four dimensions costs next to nothing. Double precision: in single precision the two
# subspaces overlap by 1e-8, and a share below 1e-16 is not seen.
EXPONENT = replace(FINITE, dimension=4, oracle="population", heterogeneity=7.0, steps=1000, every=200, dtype="float64")
EXPONENT_RUNS = 8  # for each seed
PREDICTED_RUNS = 2000
# Records of a long run; the mean over the second half of them has less noise than the last.
LONG_RECORDS = 20
LEVEL = 0.05
SUMMARY_EXPONENT = "M=7, d=4, eta=0.05, s=1, steps 200 to 1000, population gradient"
QUANTILES = (0.1, 0.5, 0.9)
IN_CYCLES, COMPARED = ["reshuffled", "cyclic"], ("independent", "reshuffled")


def simulate(effort: Effort, progress: Progress | None = None) -> xr.Dataset:
    """Shares at T = 200 and in the long run, and exponents, in each order; with what the theory predicts."""
    fewer = fewer_of_long = max(FEWEST, effort.seeds // PART)
    finite = replace(FINITE, heterogeneity=STRENGTHS[1::2] if effort.quick else STRENGTHS, seeds=effort.seeds)
    if effort.quick:  # one program for both lengths: one size, and as many runs of two strengths as of three
        finite = replace(finite, dimension=LONG.dimension, batch_size=LONG.batch_size)
        fewer, fewer_of_long = effort.seeds, 3 * effort.seeds // 2
    steps = effort.steps(LONG.steps, part=4)
    long = replace(LONG, seeds=fewer_of_long, steps=steps, every=steps // LONG_RECORDS)
    small = replace(EXPONENT, seeds=EXPONENT_RUNS * fewer)
    strengths = finite.values("heterogeneity")
    reports = stages(progress, [len(strengths) * 20, 20, 5])
    shares, late, rates = (
        simulate_each({order: replace(given, order=order) for order in ORDERS}, "order", given.seeds, report)
        for given, report in zip((finite, long, small), reports, strict=True)
    )
    grown = late["spurious"].rename(heterogeneity="strength_long", seed="long_seed")
    runs = effort.steps(PREDICTED_RUNS, part=10)
    final = shares[["spurious", "invariant"]].isel(step=-1, drop=True).drop_attrs()
    return final.assign(
        spurious_long=grown.isel(step=-1, drop=True),
        spurious_late=grown.isel(step=slice(LONG_RECORDS // 2, None)).mean("step"),
        exponent=_exponent(rates["spurious"]).rename(seed="run"),
        predicted=_predicted(finite, strengths, runs),
        predicted_long=_predicted(long, LONG.values("heterogeneity"), runs).rename(heterogeneity="strength_long"),
    ).assign_attrs(dimension=finite.dimension, batch_size=finite.batch_size, long_steps=steps)


def _exponent(share: xr.DataArray) -> xr.DataArray:
    """Growth of log Q a step, from the second record on: by then A* is learned."""
    logarithm: xr.DataArray = 0.5 * np.log(share)  # type: ignore[assignment]
    first, last = logarithm.isel(step=1), logarithm.isel(step=-1)
    return (last.drop_vars("step") - first.drop_vars("step")) / float(last["step"] - first["step"])


def _predicted(settings: Settings, strengths: tuple[float, ...], runs: int) -> xr.DataArray:
    """The spurious share by `simulate_shares`: quantiles, mean, deviation of its logarithm, part of the runs above."""
    values = np.zeros((len(ORDERS), len(strengths), len(QUANTILES) + 3))
    for i, order in enumerate(ORDERS):
        for j, strength in enumerate(strengths):
            law = two_point(settings.values("bias")[0], strength)
            found = expected_shares(settings, law, order=order, runs=runs).spurious
            values[i, j] = [*np.quantile(found, QUANTILES), found.mean(), np.log(found).std(), np.mean(found > LEVEL)]
    statistics = [*(str(each) for each in QUANTILES), "mean", "spread", "above"]
    coordinates = {"order": list(ORDERS), "heterogeneity": list(strengths), "statistic": statistics}
    return xr.DataArray(values, coordinates, list(coordinates))


def _summaries(data: xr.Dataset) -> tuple[str, str]:
    """The settings of the short runs and of the long ones."""
    short = (
        f"d={data.attrs['dimension']}, r1=r2=1, m={data.attrs['batch_size']}, s=1, eta=0.05, alpha=1e-3, T=200, "
        "symmetric measurements, exact law"
    )
    return short, f"d={LONG.dimension}, m={LONG.batch_size}, T={data.attrs['long_steps']}, otherwise the same"


def draw(data: xr.Dataset) -> Figure:
    """Quantiles of the share against the heterogeneity, by order, and the runs themselves at one heterogeneity."""
    title = f"The order of environments: d = {data.attrs['dimension']}, T = 200, {data.sizes['seed']} seeds"
    long = data.attrs["long_steps"]
    if (fewer := data.sizes["long_seed"]) < data.sizes["seed"]:
        title += f" (T = {long}: {fewer})"
    figure, panels = new_figure(3, title)
    _draw_quantiles(panels[0], data)
    _draw_runs(panels[1], data["spurious"].sel(heterogeneity=7.0), "all runs at M = 7, T = 200")
    _draw_runs(panels[2], data["spurious_long"].sel(strength_long=7.0), f"all runs at M = 7, T = {long}, d = 30")
    return finished(figure, 3)


def _draw_quantiles(axes: Axes, data: xr.Dataset) -> None:
    strengths = data["heterogeneity"].values
    for number, order in enumerate(ORDERS):
        runs, colour, shift = data["spurious"].sel(order=order), f"C{number}", 0.15 * (number - 1)
        quantile_bars(axes, strengths + shift, runs, fmt="o", color=colour, label=order)
        axes.plot(strengths + shift, runs.max("seed"), "x", color=colour)
        for statistic, line in (("0.5", "-"), ("0.9", ":")):
            expected = data["predicted"].sel(order=order, statistic=statistic)
            axes.plot(strengths, expected, line, color=colour, linewidth=0.9)
    axes.set(xlabel="heterogeneity M", ylabel="spurious share", yscale="log", ylim=(1e-6, 20))
    axes.set_title("median, 10 to 90 %, largest (x)\nlines: theory, 50 and 90 %", fontsize=9)


def _draw_runs(axes: Axes, share: xr.DataArray, title: str) -> None:
    for order in ORDERS:
        values = np.sort(np.maximum(share.sel(order=order).values, 1e-9))
        axes.plot(values, 1 - (np.arange(len(values)) + 0.5) / len(values), drawstyle="steps", label=order)
    axes.axvline(LEVEL, color="0.6", linewidth=0.8, linestyle=":")
    axes.set(xlabel="spurious share", ylabel="share of runs above it", xscale="log", yscale="log")
    axes.set_title(f"{title}\n(dotted: {LEVEL})", fontsize=9)


def numbers(data: xr.Dataset) -> pd.DataFrame:
    """The table of shares, seen and predicted."""
    rows = []
    for strength in data["heterogeneity"].values:
        for order in ORDERS:
            cell = data.sel(heterogeneity=strength, order=order)
            values, expected = cell["spurious"].values, cell["predicted"]
            seen = {
                "heterogeneity": strength, "order": order, "seeds": len(values), "median": np.median(values),
                "90 %": np.quantile(values, 0.9), "largest": values.max(), "mean": values.mean(),
                f"above {LEVEL}": float(np.mean(values > LEVEL)), "invariant": float(cell["invariant"].median()),
            }  # fmt: skip
            names = {"median": "0.5", "90 %": "0.9", "mean": "mean", f"above {LEVEL}": "above"}
            theory = {f"predicted {name}": float(expected.sel(statistic=each)) for name, each in names.items()}
            rows.append(seen | theory)
    return pd.DataFrame(rows)


def _ratio_of_means(pairs: np.ndarray) -> float:
    return float(pairs[:, 1].mean() / pairs[:, 0].mean())


def claims(data: xr.Dataset) -> list[Claim]:
    """The exponent is that of independent draws; the spread, the tail and the failures are gone."""
    (summary, summary_long), steps = _summaries(data), data.attrs["long_steps"]
    claim = ClaimBuilder("order", settings=summary)
    exact = float(two_point_exponent(0.05, 1.0, 7.0))
    found = [
        # Four standard errors of independent draws: 0.35 / sqrt(800 steps * 512 runs) = 0.0005.
        claim(f"exponent-{order}", f"In {order} order the exponent is E log|1 + eta xi|.",
              mean_interval(data["exponent"].sel(order=order).values - exact), (-0.002, 0.002),
              f"measured growth a step minus {exact:.4f}, mean over runs", settings=SUMMARY_EXPONENT)
        for order in ORDERS
    ]  # fmt: skip
    for strength in CLAIMED[:2]:  # at M = 9 the mean of independent draws rests on less than one run in a hundred
        pairs = np.stack([data["spurious"].sel(order=o, heterogeneity=strength) for o in COMPARED], 1)
        found.append(claim(f"mean-{strength:g}", "Reshuffled, the mean spurious share is at most a tenth.",
                           bootstrap(pairs, _ratio_of_means), (0, 0.1), "mean over seeds in reshuffled order over that "
                           "of independent draws", settings=f"{summary}, M={strength:g}"))  # fmt: skip
    # All orders and M of a seed share their measurements, so there are as many independent numbers as seeds.
    in_cycles = data.sel(order=IN_CYCLES)
    relative = (in_cycles["spurious"] / in_cycles["predicted"].sel(statistic="mean")).mean(["order", "heterogeneity"])
    drawn = data.sel(order="independent")
    above = (drawn["spurious"] > LEVEL).mean("heterogeneity") / float(drawn["predicted"].sel(statistic="above").mean())
    spread = {order: np.log(data["spurious"].sel(heterogeneity=5.0, order=order).values) for order in ORDERS}
    walk = float(data["predicted"].sel(order="independent", heterogeneity=5.0, statistic="spread"))
    failed = in_cycles["spurious"].sel(heterogeneity=list(CLAIMED)).values > LEVEL
    late = in_cycles["spurious_long"].sel(strength_long=7.0).values > LEVEL
    pairs = np.stack([data["spurious_late"].sel(order=o, strength_long=5.0) for o in COMPARED], 1)
    learned = data["invariant"].sel(heterogeneity=7.0)
    grown = data.sel(order="reshuffled", strength_long=5.0)
    limit = float(grown["predicted_long"].sel(statistic="0.5"))
    found += [
        claim("law", "A run in four numbers predicts the mean share in cycles.", mean_interval(relative.values),
              (0.5, 2.0), "seen over predicted mean, averaged over both orders in cycles and all M"),
        # The mean rests on few runs, so the failures are counted; the range is that of `tails-long-run`.
        claim("law-independent", "It predicts how many runs fail with independent draws.", mean_interval(above.values),
              (0.75, 1.33), f"share of runs above {LEVEL}, seen over predicted, all M together"),
        claim("spread-independent", "Drawn independently, log Q^2 spreads over runs as a random walk.",
              bootstrap(spread["independent"] / walk, np.std), (0.75, 1.33),
              f"standard deviation of log Q^2, in units of the predicted one, {walk:.1f}", settings=f"{summary}, M=5"),
        claim("spread-reshuffled", "Reshuffled, it hardly spreads.", bootstrap(spread["reshuffled"], np.std),
              (0, 0.6), "standard deviation of log Q^2; 0 without sampling error", settings=f"{summary}, M=5"),
        claim("failures", f"In cycles, no run ends with a spurious share above {LEVEL}.", share(failed), (0, 0.02),
              f"share of runs at M in {CLAIMED}, both orders"),
        claim("invariant", "The order costs the invariant signal nothing.",
              median((learned.sel(order="reshuffled") - learned.sel(order="independent")).values), (-0.01, 0.02),
              "R^2 reshuffled minus R^2 independent, same seed", settings=f"{summary}, M=7"),
        claim("long-run", "Beyond the threshold it stays washed out in the long run.", share(late), (0, 0.05),
              f"share of runs above {LEVEL} after {steps} steps, both orders", settings=f"{summary_long}, M=7"),
        # Its logarithm has no drift in the long run, which fixes the mean share in every order (`stationary_shares`).
        claim("long-run-equal", "Below the threshold no order helps in the long run.",
              bootstrap(pairs, _ratio_of_means), (0.75, 1.33), f"mean share over steps {steps // 2} to {steps}, "
              "reshuffled over independent", settings=f"{summary_long}, M=5"),
        claim("long-run-limit", "The share then is the one predicted for that order.",
              median(grown["spurious_long"].values / limit), (0.85, 1.15), f"median share after {steps} steps, in "
              f"units of the predicted one, {limit:.2f}", settings=f"{summary_long}, M=5"),
    ]  # fmt: skip
    return found


def answer(data: xr.Dataset) -> str:
    """What the order does, in a few sentences."""
    final, long = data["spurious"].sel(heterogeneity=7.0), data["spurious_long"].sel(strength_long=7.0)
    drawn, shuffled = (final.sel(order=order) for order in COMPARED)
    failed = {order: f"{float((long.sel(order=order) > LEVEL).mean()):.0%}" for order in COMPARED}
    return (
        "Visit the environments in cycles. At M = 7, where the exponent is negative, the mean spurious share after "
        f"200 steps is {float(drawn.mean()):.2g} with independent draws (largest of {final.sizes['seed']} runs: "
        f"{float(drawn.max()):.2g}) and {float(shuffled.mean()):.2g} reshuffled (largest: {float(shuffled.max()):.2g}"
        f"). After {data.attrs['long_steps']} steps {failed['independent']} of the runs are above {LEVEL} with "
        f"independent draws and {failed['reshuffled']} reshuffled. The exponent is the same, so below the threshold "
        "the spurious signal still grows, only evenly, and in the long run no order helps."
    )


EXPERIMENT = study("order", __doc__, LEFT_OPEN, simulate, draw, numbers, claims, answer, seeds=256, quick_seeds=8)
