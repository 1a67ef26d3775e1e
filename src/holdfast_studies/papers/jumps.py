"""One-way jumps of SGD in deep linear networks (Wang and Jacot, ICLR 2024): from rank 2 to rank 1, and not back."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from holdfast.completion.jumps import SITTING, before_divergence, memory, ranks, waiting
from holdfast.completion.settings import CompletionSettings
from holdfast.completion.training import CompletionBuilder, Simulation, offshoots, simulate_completion, starts
from holdfast.core.statistics import Estimate, event_rate, median
from holdfast_studies.kit.drawing import Axes, Figure, draw_kaplan_meier, finished, new_figure
from holdfast_studies.kit.runs import Effort, Progress, replace, stages
from holdfast_studies.kit.study import Claim, ClaimBuilder, Position, above, exact_share, share, study, summary

LEFT_OPEN = (
    "The slides give no numbers. Ours: epsilon=0.25, L=3, width 6, eta=0.4, lambda=0.0245, start from random "
    "rotations, 100,000 steps; offshoots with eta=0.2, lambda=2e-4, 20,000 steps. The regime is narrow: at "
    "lambda=0.0265 gradient descent leaves rank 2 as well, at lambda=0.022 SGD rarely does.",
    "What rank means: a singular value counts as gone below 0.01 of the largest singular value of the observed "
    "entries, and as back above 0.1 of it.",
    "What sitting means: 20 memory times 1 / (2 eta lambda) of the penalty at rank 2 without a break, 1020 steps "
    "here. Runs that reach rank 1 before have never been at rank 2 and count as no jump. Runs that diverge are "
    "watched until then.",
    "How the stochastic differential equation is solved: Euler-Maruyama, with one and with eight steps to a step of "
    "SGD. It is run for fewer steps than SGD because it is slower, which is why rates are compared and not shares.",
)
QUICK_PART = 4  # a quick look takes one step in this many
# Of the 2 x 2 example in all experiments on jumps: the defaults of the library.
RUN = CompletionSettings(every=200)
EPSILON, DEPTH, WIDTH, INIT_SCALE = RUN.epsilon, RUN.depth, RUN.width, RUN.init_scale
STEP_SIZE, RIDGE = RUN.step_size, RUN.ridge
VARIANTS: dict[str, dict[str, Any]] = {
    "SGD": {},
    "SGD, reshuffled": {"order": "reshuffled", "steps": 50_000},
    "gradient descent": {"algorithm": "gradient-descent"},
    "mini-batches of 2": {"algorithm": "mini-batch", "batch_size": 2, "steps": 50_000},
    "label noise, variance 0.01": {"algorithm": "label-noise", "steps": 20_000},
    "SDE, 1 substep": {"algorithm": "sde", "steps": 40_000},
    "SDE, 8 substeps": {"algorithm": "sde", "substeps": 8, "steps": 10_000},
}
# Offshoots of every run: this many before its jump, and as many after it.
BRANCHES = 4
OFFSHOOT: dict[str, Any] = {"step_size": 0.2, "ridge": 2e-4, "steps": 20_000}
# Runs that diverge are a finding from this share on.
DIVERGING = 0.05


def simulate(effort: Effort, progress: Progress | None = None) -> xr.Dataset:
    """All variants from the same starts, and offshoots of SGD before and after its jumps."""
    # The stochastic differential equation takes a step for each substep; the bar counts those.
    steps = {name: effort.steps(options.get("steps", RUN.steps), QUICK_PART) for name, options in VARIANTS.items()}
    lengths = [effort.seeds * steps[name] * options.get("substeps", 1) for name, options in VARIANTS.items()]
    lengths.append(effort.seeds * 2 * BRANCHES * effort.steps(OFFSHOOT["steps"], QUICK_PART))
    reports = stages(progress, lengths)
    parts = []
    for (name, options), report in zip(VARIANTS.items(), reports, strict=False):
        settings = replace(RUN, seeds=effort.seeds, **options | {"steps": steps[name]})
        done = simulate_completion(settings, progress=report)
        parts.append(_observed(done).expand_dims(variant=[name]))
        if name == "SGD":
            sgd = done
    found = xr.merge([xr.concat(parts, "variant", join="outer"), _branches(sgd, effort, reports[-1])], join="exact")
    return found.assign_attrs(part=QUICK_PART if effort.quick else 1)


def network_starts(seeds: Sequence[int], depth: int = DEPTH, width: int = WIDTH) -> tuple[np.ndarray, ...]:
    """The starts of networks for a 2 x 2 matrix, one for each seed."""
    return starts((2, *(width,) * (depth - 1), 2), INIT_SCALE, np.asarray(seeds))


def waiting_times(
    steps: np.ndarray, path: np.ndarray, rank: int, step_size: float, ridge: float, diverged_at: np.ndarray
) -> dict[str, np.ndarray]:
    """When runs that sat at a rank left it, as `waiting` says, and when they diverged; one value for each run."""
    found = waiting(steps, path, rank, SITTING * memory(step_size, ridge), diverged_at)
    return {**found._asdict(), "diverged_at": diverged_at, "diverged": diverged_at >= 0}


def waited_and_left(runs: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """How long each run that sat waited, and whether it left."""
    sat = runs["sat"].values.astype(bool)
    return runs["waited"].values[sat], runs["jumped"].values[sat].astype(bool)


def jump_rate(runs: xr.Dataset) -> Estimate:
    """Jumps per step spent sitting."""
    return event_rate(*waited_and_left(runs))


def rate_ratio(first: Estimate, second: Estimate) -> Estimate:
    """A ratio of rates, with the widest interval that their intervals allow."""
    floor = np.finfo(float).tiny
    return Estimate(
        first.value / max(second.value, floor), first.low / max(second.high, floor), first.high / max(second.low, floor)
    )


def _observed(done: Simulation) -> xr.Dataset:
    """Ratio, rank and test error of every run at every record.

    NaN after a run diverged, as after the end of a shorter run when variants are joined.
    """
    fitted = done.paths.fitted
    values = np.linalg.svd(fitted, compute_uv=False)
    path = ranks(values, done.problem.scale)
    moving = before_divergence(done.paths.steps, done.paths.diverged_at)
    per_record = {
        "ratio": values[..., 1] / np.maximum(values[..., 0], 1e-30),
        "rank": path.astype(float),
        "test_error": done.problem.test_error(fitted),
    }
    per_seed = waiting_times(done.paths.steps, path, 2, STEP_SIZE, RIDGE, done.paths.diverged_at)
    return xr.Dataset(
        {name: (("seed", "step"), np.where(moving, part, np.nan)) for name, part in per_record.items()}
        | {name: ("seed", part) for name, part in per_seed.items()},
        {"step": done.paths.steps, "seed": np.arange(len(path))},
    )


def _branches(done: Simulation, effort: Effort, progress: Progress) -> xr.Dataset:
    """Offshoots of every run, evenly spaced up to its jump and from the jump to the end, or until it diverged."""
    runs = _observed(done)
    last = before_divergence(done.paths.steps, done.paths.diverged_at).sum(1) - 1
    jump = np.where(runs["jumped"], np.searchsorted(done.paths.steps, runs["jump_step"]), last // 2)
    shares = (np.arange(BRANCHES) + 0.5) / BRANCHES
    settled = np.searchsorted(done.paths.steps, SITTING * memory(STEP_SIZE, RIDGE))
    # The last of the early branches leaves one record before the jump, the first of the late ones a few after it.
    before = np.minimum(settled, jump[:, None] - 1) + shares * np.maximum(jump[:, None] - 1 - settled, 0)
    after = jump[:, None] + 1 + shares * (last - jump - 1)[:, None]
    records = np.clip(np.concatenate([before, after], 1).round().astype(int), 0, last[:, None])
    options = OFFSHOOT | {"steps": effort.steps(OFFSHOOT["steps"], QUICK_PART)}
    ends = offshoots(
        done.problem, done.paths, records, runs["seed"].values, build=CompletionBuilder(),
        slab=effort.slab, progress=progress, **options,
    )  # fmt: skip
    names = ("seed", "branch")
    return xr.Dataset(
        {
            "offshoot_step": (names, done.paths.steps[records]),
            "offshoot_error": (names, done.problem.test_error(ends)),
            "offshoot_train_error": (names, done.problem.train_error(ends)),
        },
        {"seed": runs["seed"], "branch": np.arange(2 * BRANCHES)},
    )


def _settings(data: xr.Dataset) -> str:
    return summary(replace(RUN, steps=RUN.steps // data.attrs["part"]), "ours")


def draw(data: xr.Dataset) -> Figure:
    """The figure of the slides for one run, how long runs stay at rank 2, and what offshoots reach."""
    figure, (left, middle, right) = new_figure(
        3, f"Jumps from rank 2 to rank 1: {_settings(data)}, {data.sizes['seed']} seeds"
    )
    _draw_run(left, data)
    for number, name in enumerate(VARIANTS):
        runs = data.sel(variant=name)
        waited, left_rank = waited_and_left(runs)
        line = "--" if "SDE" in name else "-"
        draw_kaplan_meier(middle, waited, left_rank, name, linestyle=line, color=f"C{number % 5}")
    middle.set(xlabel="steps since sitting at rank 2", ylabel="share still at rank 2", ylim=(-0.03, 1.05))
    middle.set(xscale="log", xlim=(RUN.every, RUN.steps))
    middle.set_title("Kaplan-Meier, bands of 95 %")
    sgd = data.sel(variant="SGD")
    jump = sgd["jump_step"].where(sgd["jumped"].astype(bool))
    since = (data["offshoot_step"] - jump).values.ravel() / 1000
    errors = data["offshoot_error"].values.ravel()
    for chosen, label, colour in ((since < 0, "before the jump", "C1"), (since > 0, "after it", "C0")):
        right.plot(since[chosen], errors[chosen], ".", markersize=3, alpha=0.5, color=colour, label=label)
    right.set(xlabel="steps from the jump to the branching, in 1000", ylabel="test error of the offshoot", yscale="log")
    right.set_title("Offshoots of all SGD runs")
    return finished(figure)


def _example(data: xr.Dataset) -> int:
    """The run whose jump comes nearest to a third of the way, so that both sides of it can be seen."""
    sgd = data.sel(variant="SGD")
    distance = abs(sgd["jump_step"].where(sgd["jumped"].astype(bool), -RUN.steps) - RUN.steps / 3)
    return int(np.argmin(distance.values))


def _draw_run(axes: Axes, data: xr.Dataset) -> None:
    seed = _example(data)
    run = data.sel(variant="SGD").isel(seed=seed)
    steps = run["step"].values
    axes.plot(steps, run["test_error"], color="#9ec9e8", linewidth=0.7, label="test error")
    branch = data.isel(seed=seed)
    axes.plot(
        branch["offshoot_step"], branch["offshoot_error"], "o", color="#0b3c68", markersize=4,
        label="test error after offshoots",
    )  # fmt: skip
    axes.plot(steps, run["ratio"].clip(min=1e-12), color="#c0392b", linewidth=1.2, label="s2 / s1")
    axes.set(xlabel="step", ylabel="s2 / s1 and test error", yscale="log", ylim=(1e-9, 1e2))
    axes.set_title(f"One run of SGD (seed {seed})")


def numbers(data: xr.Dataset) -> pd.DataFrame:
    """One row for each variant: how many sat, jumped, rose, diverged, and the rate of jumps."""
    rows = []
    for name in VARIANTS:
        runs = data.sel(variant=name)
        rate = jump_rate(runs)
        rows.append(
            {"variant": name, "seeds": runs.sizes["seed"]}
            | {count: int(runs[count].sum()) for count in ("sat", "jumped", "rose", "diverged")}
            | {"jumps_per_step": rate.value, "low": rate.low, "high": rate.high}
            | {"median_ratio_sitting": float(runs["ratio"].where(runs["rank"] == 2).median())}
        )
    return pd.DataFrame(rows)


def _mean_wait(runs: xr.Dataset) -> Estimate:
    value, low, high = jump_rate(runs)
    return Estimate(1 / value if value else np.inf, 1 / high, 1 / low if low else np.inf)


def offshoot_factors(data: xr.Dataset) -> np.ndarray:
    """For each run that jumped: the median test error of offshoots before the jump over that of those after it."""
    sgd = data.sel(variant="SGD")
    early = data["offshoot_step"] < sgd["jump_step"]
    before = data["offshoot_error"].where(early).median("branch")
    after = data["offshoot_error"].where(~early).median("branch")
    return (before / after).values[sgd["jumped"].values.astype(bool)]


def claims(data: xr.Dataset) -> list[Claim]:
    """What the slides say about the experiment, and what this project found beside it."""
    steps = {name: options.get("steps", RUN.steps) // data.attrs["part"] for name, options in VARIANTS.items()}
    long, branch = steps["SGD"], OFFSHOOT["steps"] // data.attrs["part"]
    claim = ClaimBuilder("jumps", settings=_settings(data))
    seeds = data.sizes["seed"]
    sgd, gd = data.sel(variant="SGD"), data.sel(variant="gradient descent")
    coarse, fine = data.sel(variant="SDE, 1 substep"), data.sel(variant="SDE, 8 substeps")
    wait = _mean_wait(sgd)
    factors = offshoot_factors(data)
    # An interval for a median needs six values; with fewer jumps nothing is decided.
    factor = median(factors) if len(factors) >= 6 else Estimate(1.0, 0.0, np.inf)
    return [
        claim("happen", "SGD jumps from rank 2 to rank 1 after having sat at rank 2.", share(sgd["jumped"]),
              (0.8, 1.0), f"share of the runs; mean waiting time {wait.value:,.0f} steps ({wait.low:,.0f} to "
              f"{wait.high:,.0f})", source="jumps: figure"),
        claim("one-way", "No run jumps back to a higher rank.", exact_share(sgd["rose"]),
              (0, 0.02), f"share of the runs whose rank ever rose after sitting: {int(sgd['rose'].sum())} of {seeds}",
              source="jumps: one way"),
        claim("offshoots", "Offshoots after the jump reach a test error at least 100 times below offshoots before it.",
              factor, above(100), "median over runs of the ratio of medians; the smallest is "
              f"{factors.min(initial=np.inf):.3g}", source="jumps: figure",
              settings=f"{_settings(data)}; offshoots with eta=0.2, lambda=2e-4, {branch:,} steps"),
        claim("gradient-descent", "Gradient descent from the same starts stays at rank 2.",
              exact_share(gd["jumped"].astype(bool) | ~gd["sat"].astype(bool)), (0, 0.02),
              f"share of the runs that leave rank 2 or never sit there: {int(gd['jumped'].sum())} jumped, "
              f"{int(gd['sat'].sum())} of {seeds} sat"),
        claim("sde", "The continuous approximation jumps as well, more often than SGD.",
              rate_ratio(jump_rate(fine), jump_rate(sgd)), above(1), "ratio of the rates, with the widest interval",
              settings=f"the same, Euler-Maruyama with 8 substeps, T={steps['SDE, 8 substeps']:,}"),
        claim("sde-diverges", "SGD stays in a bounded region where its continuous approximation does not.",
              share(fine["diverged"]), (DIVERGING, 1.0),
              f"share of the runs that diverge; of SGD {int(sgd['diverged'].sum())} of {seeds} in {long:,} steps. Some "
              f"do, but whether {DIVERGING:.0%} do is more than {seeds} runs can tell",
              settings=f"the same, Euler-Maruyama with 8 substeps, T={steps['SDE, 8 substeps']:,}",
              expected=Position.UNDECIDED),
        claim("gaussian-diverges", "SGD stays in a bounded region where steps of the same mean and covariance with "
              "Gaussian noise do not.", share(coarse["diverged"]), (DIVERGING, 1.0),
              f"share of the runs that diverge; of SGD {int(sgd['diverged'].sum())} of {seeds} in {long:,} steps",
              settings=f"the same, one Euler step per step of SGD, T={steps['SDE, 1 substep']:,}"),
        claim("batch", "Averaging two entries a step makes jumps rare.",
              exact_share(data.sel(variant="mini-batches of 2")["jumped"]), (0, 0.1),
              "share of the runs that jump: it is the noise that carries a run over the barrier",
              settings=f"the same, mini-batches of 2 with replacement, T={steps['mini-batches of 2']:,}"),
        claim("order", "Visiting every entry once in each cycle takes the jumps away.",
              exact_share(data.sel(variant="SGD, reshuffled")["jumped"]), (0, 0.1),
              "share of the runs that jump: a jump is one entry drawn many times in a row, which an order never does",
              settings=f"the same, entries reshuffled in each cycle of three, T={steps['SGD, reshuffled']:,}"),
    ]  # fmt: skip


EXPERIMENT = study("jumps", __doc__, LEFT_OPEN, simulate, draw, numbers, claims, seeds=200)
