"""Settings that `advise` promises to wash the spurious signal out, with real batches: promised and seen failures."""

from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from holdfast.core.statistics import proportion
from holdfast.sensing.environments import Environments, gaussian, table, two_point, uniform
from holdfast.theory.advice import Advice, advise
from holdfast_studies.findings.tails import final_shares
from holdfast_studies.kit.drawing import Figure, bars, finished, new_figure
from holdfast_studies.kit.runs import Effort, Progress, Settings, tracked
from holdfast_studies.kit.study import NOT_MEASURED, Claim, ClaimBuilder, share, study

LEFT_OPEN = (
    "The paper gives no settings that work at the size of its simulations: its window of step sizes is empty there.",
    "Twelve problems were chosen before any was run; docs/theory.md has them with 800 runs each (--seeds 200).",
)
RUNS = 4  # times the seeds
FIRST_SEED = 900_000  # no other experiment has used these


class AdvisedProblem(NamedTuple):
    """Environments, measurements and what is wanted of the advice."""

    environments: Environments
    dimension: int
    batch_size: int
    noise_variance: float
    invariant_rank: int
    confidence: float
    tolerance: float


TWO = table(np.array([-6.0, 8.0]), np.array([0.55, 0.45]))
THREE = table(np.array([-8.0, 2.0, 5.0]), np.array([0.3, 0.4, 0.3]))
PROBLEMS: dict[str, AdvisedProblem] = {
    "two-point 6": AdvisedProblem(two_point(1.0, 6.0), 40, 8_000, 0.0, 1, 0.9, 0.01),
    "two-point 8": AdvisedProblem(two_point(1.0, 8.0), 100, 8_000, 0.0, 1, 0.9, 0.01),
    "two-point 10, noise": AdvisedProblem(two_point(1.0, 10.0), 40, 2_000, 25.0, 1, 0.85, 0.05),
    "normal 6": AdvisedProblem(gaussian(1.0, 6.0), 40, 8_000, 0.0, 1, 0.9, 0.02),
    "normal 8": AdvisedProblem(gaussian(1.0, 8.0), 100, 40_000, 0.0, 1, 0.9, 0.01),
    "normal 5, noise": AdvisedProblem(gaussian(1.0, 5.0), 40, 2_000, 10.0, 1, 0.8, 0.05),
    "uniform 10": AdvisedProblem(uniform(1.0, 10.0), 40, 8_000, 0.0, 1, 0.9, 0.02),
    "uniform 12, noise": AdvisedProblem(uniform(1.0, 12.0), 100, 40_000, 25.0, 1, 0.95, 0.02),
    "three unequal": AdvisedProblem(THREE, 100, 2_000, 0.0, 1, 0.85, 0.05),
    "ranks 2 and 2": AdvisedProblem(two_point(1.0, 8.0, rank=2), 40, 8_000, 0.0, 2, 0.8, 0.02),
    "rank 2, own signs": AdvisedProblem(two_point(1.0, 7.0, rank=2, shared=False), 40, 40_000, 9.0, 1, 0.9, 0.02),
    "two unequal, rank 2": AdvisedProblem(TWO, 100, 40_000, 0.0, 2, 0.95, 0.01),
}
"""Twelve problems: four kinds of laws, two dimensions, three batch sizes, with and without noise, ranks 1 and 2."""


def promise(problem: AdvisedProblem) -> Advice | None:
    """What `advise` says."""
    return advise(
        problem.environments,
        confidence=problem.confidence,
        tolerance=problem.tolerance,
        spectrum=np.ones(problem.invariant_rank),
        dimension=problem.dimension,
        batch_size=problem.batch_size,
        noise_variance=problem.noise_variance,
    )


def failures(problem: AdvisedProblem, advice: Advice, runs: int) -> int:
    """How many runs with the advised settings keep a share above the tolerance, or diverge."""
    settings = Settings(
        dimension=problem.dimension, invariant_rank=problem.invariant_rank, batch_size=problem.batch_size,
        noise_variance=problem.noise_variance, step_size=advice.step_size, init_scale=advice.init_scale,
        steps=advice.steps, every=advice.steps, seeds=runs, seed=FIRST_SEED,
    )  # fmt: skip
    return int((final_shares(settings, problem.environments) > problem.tolerance).sum())


def simulate(effort: Effort, progress: Progress | None = None) -> xr.Dataset:
    """Promised and seen failures; in a quick look of the first problem only."""
    names = list(PROBLEMS)[: 1 if effort.quick else None]
    data = compare({name: PROBLEMS[name] for name in names}, RUNS * effort.seeds, progress)
    return data.assign_attrs(seeds=effort.seeds)


def compare(problems: dict[str, AdvisedProblem], runs: int, progress: Progress | None = None) -> xr.Dataset:
    """For each problem the advised settings, the promised share of failures, and how many were seen."""
    names, rows = (*Advice._fields, "seen"), []
    for problem in tracked(problems.values(), progress):
        advice = promise(problem)
        rows.append([np.nan] * len(names) if advice is None else [*advice, failures(problem, advice, runs)])
    columns = zip(names, np.array(rows, float).T, strict=True)
    return xr.Dataset({name: ("problem", each) for name, each in columns}, {"problem": list(problems)}, {"runs": runs})


def numbers(data: xr.Dataset) -> pd.DataFrame:
    """One row for each problem: settings, promised and seen failures with their interval."""
    frame, runs = data.to_dataframe().reset_index(), data.attrs["runs"]
    seen = [NOT_MEASURED if np.isnan(count) else proportion(int(count), runs) for count in frame.pop("seen")]
    return frame.assign(runs=runs).join(pd.DataFrame(seen, columns=["seen", "seen_low", "seen_high"]))


def draw(data: xr.Dataset) -> Figure:
    """Promised and seen failures of each problem."""
    figure, (panel,) = new_figure(1, f"Promised and seen failures, {data.attrs['runs']} runs with real batches")
    frame = numbers(data)
    rows = np.arange(len(frame))[::-1]
    bars(panel, rows, frame[["seen_low", "seen", "seen_high"]].values.T, horizontal=True, fmt="o", label="seen (95 %)")
    panel.plot(frame["failure"], rows, "|", color="k", markersize=12, label="promised, at most")
    panel.set_yticks(rows, frame["problem"])
    panel.set(xlabel="share of runs that fail", ylabel="problem", xlim=(0, None))
    return finished(figure)


def claims(data: xr.Dataset) -> list[Claim]:
    """The promise is kept, and it is not empty."""
    frame = numbers(data).dropna()
    settings = f"{', '.join(frame['problem'])}; {data.attrs['runs']} runs each, exact law, seeds from {FIRST_SEED}"
    held = frame["seen_low"] <= frame["failure"]
    tight = frame["failure"] <= 2 * frame["seen_high"]
    ratio = frame["seen"].sum() / frame["failure"].sum()
    claim = ClaimBuilder("advised", settings=settings)
    return [
        claim("kept", "Within sampling error, settings that are advised fail no more often than promised.",
              share(held), (0.7, 1.0), "share of the problems at which the 95 % interval "
              f"of the seen share reaches down to the promised one; over all problems {ratio:.2f} times the promised "
              "failures are seen"),
        claim("tight", "The promise is not an empty one: at most twice what may be seen.",
              share(tight), (0.5, 1.0), "share of the problems at which the promise is at "
              "most twice the upper end of the 95 % interval of the seen share"),
    ]  # fmt: skip


def answer(data: xr.Dataset) -> str:
    """The answer in words."""
    frame = numbers(data).dropna()
    held = int((frame["seen_low"] <= frame["failure"]).sum())
    return (
        f"The promise is kept, within sampling error, at {held} of {len(frame)} problems: promised "
        f"{frame['failure'].min():.3f} to {frame['failure'].max():.3f}, seen {frame['seen'].min():.3f} to "
        f"{frame['seen'].max():.3f}."
    )


EXPERIMENT = study("advised", __doc__, LEFT_OPEN, simulate, draw, numbers, claims, answer, seeds=64, quick_seeds=8)
