"""The collapse to rank 0 (Wang and Jacot, ICLR 2024, theorem with r = 0): why step size and ridge must be annealed."""

import numpy as np
import pandas as pd
import xarray as xr

from holdfast.completion.jumps import ranks
from holdfast.completion.training import AlgorithmName, simulate_completion
from holdfast.theory.absorbing import closedness, contains
from holdfast_studies.kit.drawing import Figure, columns, draw_kaplan_meier, finished, new_figure
from holdfast_studies.kit.runs import Effort, Progress, replace, stages
from holdfast_studies.kit.study import Claim, ClaimBuilder, Conditions, share, study, summary
from holdfast_studies.papers.entering import CONSTANTS
from holdfast_studies.papers.jumps import RUN, jump_rate, waited_and_left, waiting_times

LEFT_OPEN = (
    "All settings: epsilon=0.25, L=3, width 6, eta=0.6, lambda=0.07, 200,000 steps. The theorem says that the "
    "collapse comes in the end at any constant step size and ridge; at those of the experiment `jumps` it is out of "
    "reach of a simulation.",
    "The constants of B_0: those of the experiment `entering`.",
)
QUICK_PART = 2  # a quick look takes one step in this many
# A ridge at which gradient descent stays at rank 1.
STEP_SIZE, RIDGE, STEPS, EVERY = 0.6, 0.07, 200_000, 500
ALGORITHMS: dict[str, AlgorithmName] = {"SGD": "sgd", "gradient descent": "gradient-descent"}
# The theorem has no time limit: which share of the runs must be inside by the end of ours.
MOST = 0.75
DRAWN = 12  # runs on the left


def simulate(effort: Effort, progress: Progress | None = None) -> xr.Dataset:
    """Long runs of SGD and of gradient descent from the same starts."""
    given = replace(RUN, step_size=STEP_SIZE, ridge=RIDGE, steps=effort.steps(STEPS, QUICK_PART), every=EVERY)
    parts = []
    for (name, algorithm), report in zip(ALGORITHMS.items(), stages(progress, [1000, 1000]), strict=True):
        done = simulate_completion(replace(given, algorithm=algorithm, seeds=effort.seeds), progress=report)
        paths, values = done.paths, np.linalg.svd(done.paths.fitted, compute_uv=False)
        path = ranks(values, done.problem.scale)
        found = waiting_times(paths.steps, path, 1, STEP_SIZE, RIDGE, paths.diverged_at)
        inside = closedness(contains(paths.layers, 0, CONSTANTS))
        found |= {"entered": inside.entered, "exits": inside.exits}
        per_seed = {key: ("seed", found[key]) for key in ("sat", "jumped", "waited", "rose", "entered", "exits")}
        data = {"largest": (("seed", "step"), values[..., 0]), **per_seed}
        parts.append(
            xr.Dataset(data, {"step": paths.steps, "seed": np.arange(effort.seeds)}).expand_dims(algorithm=[name])
        )
    return xr.concat(parts, "algorithm", join="exact")


def _settings(data: xr.Dataset) -> str:
    return summary(replace(RUN, step_size=STEP_SIZE, ridge=RIDGE, steps=int(data["step"][-1])), "ours")


def draw(data: xr.Dataset) -> Figure:
    """The largest singular value of some runs, and the share that has not collapsed."""
    figure, (left, right) = new_figure(2, f"Collapse to rank 0: {_settings(data)}, {data.sizes['seed']} seeds")
    for number, name in enumerate(ALGORITHMS):
        runs = data.sel(algorithm=name)
        sizes = runs["largest"].clip(min=1e-12).isel(seed=slice(DRAWN))
        lines = left.plot(data["step"] / 1000, sizes.transpose("step", "seed"), color=f"C{number}", linewidth=0.7)
        lines[0].set_label(name)
        waited, collapsed = waited_and_left(runs)
        draw_kaplan_meier(right, waited / 1000, collapsed, name, color=f"C{number}")
    left.set(xlabel="step, in 1000", ylabel="largest singular value", yscale="log", ylim=(1e-12, 10))
    left.set_title(f"The first {DRAWN} runs")
    right.set(xlabel="steps since sitting at rank 1, in 1000", ylabel="share still at rank 1", ylim=(-0.03, 1.05))
    right.set_title("Kaplan-Meier, bands of 95 %")
    return finished(figure)


def numbers(data: xr.Dataset) -> pd.DataFrame:
    """When each run collapsed, or how long it was watched."""
    return columns("sat", "collapsed", "waited", "rose", "entered")(data.rename(jumped="collapsed"))


def claims(data: xr.Dataset) -> list[Claim]:
    """SGD collapses for good, gradient descent does not."""
    claim = ClaimBuilder("collapse", settings=_settings(data))
    sgd, descent = (data.sel(algorithm=name) for name in ALGORITHMS)
    seeds, rose = data.sizes["seed"], int(sgd["rose"].sum())
    rate = jump_rate(sgd)
    wait = f"mean waiting time {1 / rate.value:,.0f} steps" if rate.value else "none did"
    entered = {name: (runs["entered"] >= 0).values for name, runs in (("SGD", sgd), ("gradient descent", descent))}
    stayed = entered["SGD"] & (sgd["exits"] == 0).values
    return [
        claim("sgd", "At constant step size and ridge SGD enters B_0 and stays: the theorem with r = 0.",
              share(stayed), (MOST, 1), "share of the runs that are inside from some step on, "
              f"every {EVERY}th looked at; {int(sgd['jumped'].sum())} of {seeds} sat at rank 1 and then fell to 0, "
              f"{wait}; {rose} rose again", source="jumps: theorem",
              conditions=Conditions(chosen=("all settings", "the constants of B_0", f"mark: {MOST:g} of the runs"))),
        claim("gradient-descent", "Gradient descent does not.",
              share(entered["gradient descent"]), (0, 0.1),
              f"share of the runs that enter B_0; {int(descent['jumped'].sum())} fell from rank 1 to 0"),
    ]  # fmt: skip


EXPERIMENT = study("collapse", __doc__, LEFT_OPEN, simulate, draw, numbers, claims, seeds=64)
