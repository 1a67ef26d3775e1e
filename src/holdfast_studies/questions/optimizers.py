"""Question 3: which optimisers still wash out the spurious signal, and the exponents of those that have one."""

from functools import partial

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.lines import Line2D

from holdfast.core.statistics import median
from holdfast.sweeps.phase_diagram import medians
from holdfast.theory.diagnosis import LEARNED, WASHED_OUT, Region
from holdfast_studies.kit.drawing import BAND, Axes, Figure, draw_plane
from holdfast_studies.kit.runs import Effort, Progress, Settings, replace, run_simulation, stages
from holdfast_studies.kit.study import Claim, ClaimBuilder, Position, above, share, study
from holdfast_studies.questions.optimizer_rates import claims_of_rates, growth_rates, threshold
from holdfast_studies.questions.optimizer_runs import (
    BIAS,
    DECAY,
    INIT_SCALE,
    MOMENTUM,
    NAMES,
    STEPS,
    STRONG,
    WITH_EXPONENT,
    any_optimizer,
    exponent,
)

# The map has d = 30 with the m / d of the confirmation, which keeps the sampling error of the invariant signal.
SMALL = Settings(dimension=30, batch_size=2400, bias=BIAS, steps=STEPS, init_scale=INIT_SCALE, every=STEPS)
LARGE = replace(SMALL, dimension=100, batch_size=8000)
RELATIVE_STEP_SIZES = tuple(np.geomspace(0.005, 0.32, 9).tolist())
HETEROGENEITIES = (0.5, 1.25, 2.0, 3.5, 5.0, 6.5, 8.0, 9.5)
# Step sizes are chosen at STRONG on the seeds of the map, which the confirmation does not use. At WEAK no strength
# is negative.
WEAK = 0.5
MAP_SEEDS, QUICK_MAP_SEEDS, ASIDE, CONFIRMING = 6, 2, 10_000, 1000
# The rule: among the step sizes with a median invariant share of at least RECOVERED, the least median spurious share.
RECOVERED, RETAINED = 0.9, 0.8
# One rule for all optimisers: washed out means that at most this part of the runs ends with a spurious share above
# WASHED_OUT. The median is then below it as well.
AT_MOST = 0.25

LEFT_OPEN = (
    f"All settings. Momentum {MOMENTUM} and weight decay {DECAY}; the other constants are the defaults of optax.",
    "The step size of each optimiser: a relative step size c times 1 (SGD, weight decay, normalised SGD), 1 - beta, or "
    "1 / d where each entry is rescaled (RMSprop, Adam, sign SGD), so that c is comparable. By rule: of all c at "
    f"which the median invariant share is at least {RECOVERED}, the one with the least spurious share, on seeds put "
    "aside.",
    f"What washed out means, for all of them: at most {AT_MOST:.0%} of the runs end with a spurious share above "
    f"{WASHED_OUT}. By the median alone, as we first judged some of them, Nesterov would pass with nearly half of its "
    "runs above. Normalised and sign SGD are near the mark: on 192 seeds that no claim uses (from 50,000 on) 18 % and "
    "23 % of their runs are above. To tell these from 25 % would take about 400 and 5,000 runs.",
    "Growth rates with momentum were first compared on 20 random problems, too few to decide; the claim has 60 others.",
)


SCALE_FREE = ("normalised SGD", "sign SGD")
# Where each is expected to lie. Those that average environments over 1 / (1 - momentum) steps pool them in part. With a
# remembered size of the gradient each environment counts by its strength relative to it, so that the mean strength acts
# on a small signal as on a large one. The scale-free ones are too near to the mark for the number of runs.
EXPECTED = (
    dict.fromkeys(("SGD", "weight decay"), Position.INSIDE)
    | dict.fromkeys(("momentum", "Nesterov", "RMSprop", "Adam"), Position.OUTSIDE)
    | dict.fromkeys(SCALE_FREE, Position.UNDECIDED)
)


def simulate(effort: Effort, progress: Progress | None = None) -> xr.Dataset:
    """The map, the confirmation at the step sizes chosen on it, and the growth rates in the plane."""
    first, second, third = stages(progress, [30, 60, 10])
    few = slice(2, None, 3) if effort.quick else slice(None)
    step_sizes = RELATIVE_STEP_SIZES[few]
    heterogeneities = (WEAK, 3.5, STRONG) if effort.quick else HETEROGENEITIES
    map_seeds = QUICK_MAP_SEEDS if effort.quick else MAP_SEEDS
    aside = replace(SMALL, seeds=map_seeds, seed=ASIDE, step_size=step_sizes, heterogeneity=heterogeneities)
    everything = {"choice": list(range(len(NAMES)))}
    swept = run_simulation(aside, algorithm=any_optimizer, sweep=everything, progress=first).data.isel(step=-1)
    table = medians(swept).rename(choice="optimizer", step_size="relative_step_size")
    table = table.assign_coords(optimizer=list(NAMES)).transpose("optimizer", "heterogeneity", "relative_step_size")
    best = chosen_step_sizes(table.sel(heterogeneity=STRONG))
    base = SMALL if effort.quick else LARGE  # a quick look compiles one program
    wanted = [(name, STRONG) for name in NAMES] + [(name, WEAK) for name in SCALE_FREE]
    shares = []
    for (name, strength), report in zip(wanted, stages(second, [1] * len(wanted)), strict=True):
        given = replace(base, seeds=effort.seeds, seed=CONFIRMING, step_size=(best[name],), heterogeneity=(strength,))
        found = run_simulation(given, algorithm=any_optimizer, sweep={"choice": [NAMES.index(name)]}, progress=report)
        shares.append(found.final[["invariant", "spurious", "diverged_at"]].squeeze(drop=True))
    confirmed = xr.concat(shares[: len(NAMES)], pd.Index(NAMES, name="optimizer"), combine_attrs="drop")
    weak = xr.concat(shares[len(NAMES) :], pd.Index(SCALE_FREE, name="scale_free"), combine_attrs="drop")
    rates = growth_rates(effort, best, third)
    mapped = table[["invariant", "spurious", "diverged", "region"]]
    return xr.merge(
        [
            mapped.rename({name: f"map_{name}" for name in mapped}),
            confirmed,
            weak[["spurious"]].rename(spurious="weak_spurious"),
            xr.DataArray(list(best.values()), {"optimizer": list(NAMES)}, name="best"),
            rates,
        ],
        compat="override",
        join="outer",
        combine_attrs="drop",
    ).assign_attrs(
        seeds=effort.seeds, map_seeds=map_seeds, dimension=base.dimension, batch_size=base.batch_size,
        longest=rates.attrs["longest"],
    )  # fmt: skip


def chosen_step_sizes(table: xr.Dataset) -> dict[str, float]:
    """The rule for the relative step size of each optimiser, on medians over (optimizer, relative_step_size)."""
    chosen = {}
    for name in NAMES:
        found = table.sel(optimizer=name)
        learns = (found["invariant"] >= RECOVERED) & (found["diverged"] == 0)
        score = found["spurious"].where(learns, np.inf) if learns.any() else -found["invariant"].fillna(0)
        chosen[name] = float(score.idxmin("relative_step_size"))
    return chosen


def draw(data: xr.Dataset) -> Figure:
    """A map over step size and heterogeneity for each optimiser."""
    figure = Figure(figsize=(13.8, 7.8))
    title = (
        f"Question 3: regions by optimiser, d={SMALL.dimension}, T={STEPS}, by medians over {data.attrs['map_seeds']} "
        f"seeds: learned is an invariant share of at least {LEARNED}, or a spurious one above {WASHED_OUT}"
    )
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    regions = {int(region): region.label for region in Region}
    panels = figure.subplots(2, 4, sharex=True, sharey=True).ravel()
    for name, axes in zip(NAMES, panels, strict=True):
        draw_plane(axes, data["map_region"].sel(optimizer=name), name, regions)
        keys = axes.get_legend().legend_handles
        axes.get_legend().remove()  # one for all panels
        _draw_theory(axes, name)
        axes.plot(float(data["best"].sel(optimizer=name)), STRONG, "kx")
        axes.set(xscale="log", xlabel="relative step size c", ylabel="heterogeneity M")
        axes.set_ylim(HETEROGENEITIES[0], HETEROGENEITIES[-1])
    black = partial(Line2D, [], [], color="k")
    lines = [
        black(linestyle="-", label="exponent zero"),
        black(linestyle="--", label=f"share {WASHED_OUT} at T={STEPS}, by theory"),
        black(linestyle=":", label="signs differ above"),
        black(linestyle="", marker="x", label="step size that is confirmed"),
    ]
    figure.legend(handles=[*keys, *lines], loc="outside lower center", ncols=len(regions))
    return figure


def _draw_theory(axes: Axes, name: str) -> None:
    if name not in WITH_EXPONENT:
        axes.axhline(BIAS, color="k", linestyle=":", linewidth=1)
        return
    step_sizes, strengths = np.geomspace(RELATIVE_STEP_SIZES[0], RELATIVE_STEP_SIZES[-1], 13), HETEROGENEITIES
    surface = [[exponent(name, float(c), m, directions=512) for c in step_sizes] for m in strengths]
    needed = (0.5 * np.log(WASHED_OUT) - np.log(INIT_SCALE)) / STEPS
    for level, line in ((0.0, "-"), (needed, "--")):
        if np.min(surface) < level:
            axes.contour(step_sizes, strengths, np.array(surface), [level], colors="k", linestyles=line, linewidths=1)
    if np.min(surface) > 0:
        axes.set_title(f"{name} (exponent above zero)")


def numbers(data: xr.Dataset) -> pd.DataFrame:
    """What is confirmed for each optimiser."""
    diverged = (data["diverged_at"] >= 0).mean("seed")
    found = pd.DataFrame({"optimizer": list(NAMES), "relative step size": data["best"], "diverged": diverged})
    for name in ("invariant", "spurious"):
        for quantile in BAND:
            found[f"{name} {quantile:.0%}"] = data[name].quantile(quantile, "seed").values
    return found


claim = ClaimBuilder("optimizers", "question 3")


def _short(name: str) -> str:
    return name.replace(" ", "-").lower()


def _settings(data: xr.Dataset, name: str, heterogeneity: float) -> str:
    step_size = float(data["best"].sel(optimizer=name))
    size = f"d={data.attrs['dimension']}, m={data.attrs['batch_size']}"
    return f"{size}, s=1, alpha=1e-3, T={STEPS}, M={heterogeneity}, c={step_size:.3g}"


def _washes_out(data: xr.Dataset, name: str) -> Claim:
    """The one rule, for one of the optimisers."""
    runs = data.sel(optimizer=name)
    middle, mean, lost = float(runs["spurious"].median()), float(runs["spurious"].mean()), runs["diverged_at"] >= 0
    return claim(
        f"{_short(name)}-washes-out", f"With {name} the spurious signal is washed out.",
        share(runs["spurious"] > WASHED_OUT), (0.0, AT_MOST),
        f"part of the runs with a spurious share above {WASHED_OUT}; median {middle:.2g}, mean {mean:.2g}; "
        f"{int(lost.sum())} diverged", settings=_settings(data, name, STRONG), expected=EXPECTED[name],
    )  # fmt: skip


def claims(data: xr.Dataset) -> list[Claim]:
    """Who washes out, and whether the exponents are right."""
    found = []
    for name in NAMES:
        found += [
            _washes_out(data, name),
            claim(f"{_short(name)}-learns", f"With {name} the invariant signal is learned.",
                  median(data["invariant"].sel(optimizer=name)), above(RETAINED),
                  f"chosen with a median share of at least {RECOVERED} on other seeds, at d={SMALL.dimension}",
                  settings=_settings(data, name, STRONG)),
        ]  # fmt: skip
    found += [
        claim(f"{_short(name)}-equal-signs", f"With strengths of one sign, {name} learns the spurious signal.",
              median(data["weak_spurious"].sel(scale_free=name)), above(WASHED_OUT),
              "it sees the signs of the strengths only, and all are positive", settings=_settings(data, name, WEAK))
        for name in SCALE_FREE
    ]  # fmt: skip
    return found + claims_of_rates(data)


def answer(data: xr.Dataset) -> str:
    """Who washes out, with numbers."""
    final = data["spurious"]
    part = (final > WASHED_OUT).mean("seed")
    said = ", ".join(
        f"{name} {float(final.sel(optimizer=name).median()):.2g} ({float(part.sel(optimizer=name)):.0%})"
        for name in NAMES
    )
    judged = {name: _washes_out(data, name).position for name in NAMES}
    groups = {
        position: ", ".join(name for name in NAMES if judged[name] is position) or "none"
        for position in (Position.INSIDE, Position.OUTSIDE, Position.UNDECIDED)
    }
    return (
        f"Median spurious share at the chosen step size (runs above {WASHED_OUT}), M={STRONG}, T={STEPS}: {said}. "
        f"If washed out means at most {AT_MOST:.0%} of the runs above {WASHED_OUT}, these wash out: "
        f"{groups[Position.INSIDE]}; these do not: {groups[Position.OUTSIDE]}; too near to tell with "
        f"{data.sizes['seed']} runs: {groups[Position.UNDECIDED]}. SGD washes out because products of random "
        f"factors shrink; momentum {MOMENTUM} averages environments, so that its exponent is negative only from "
        f"M={threshold():.1f} on; Adam and RMSprop delay the spurious signal and do not remove it. Normalised and sign "
        f"SGD see the signs of the strengths alone: with equal signs (M={WEAK}) the signal is learned. With balanced "
        "signs it walks at random under sign SGD, while under normalised SGD sampling error makes its steps "
        "proportional to its size, so that it shrinks."
    )


EXPERIMENT = study("optimizers", __doc__, LEFT_OPEN, simulate, draw, numbers, claims, answer, seeds=64, quick_seeds=8)
