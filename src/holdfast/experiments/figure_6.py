"""Figure 6 of Xu, Gu and Fang (NeurIPS 2024): PooledSGD with a small batch."""

from dataclasses import replace

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from holdfast.core.progress import Progress, stages
from holdfast.core.statistics import median, proportion
from holdfast.experiments.names import TITLES
from holdfast.plots import band, legend_below, new_figure
from holdfast.plots.signals import quantile_table
from holdfast.reproduction.claims import AS_STATED, OUR_SETTINGS, Claim
from holdfast.reproduction.experiment import Effort, Experiment
from holdfast.sensing.settings import Settings
from holdfast.sensing.simulation import simulate as run_simulation

LEFT_OPEN = (
    "The paper runs until T is sufficiently large without saying what T is; ours is 40/eta.",
    "Runs that diverge are left out of the curves and counted.",
)
SEEDS, QUICK_SEEDS = 64, 8
STEP_SIZES = (0.01, 0.05, 0.1)
TIME, RECORDS = 40.0, 40
GIVEN = Settings(
    dimension=30,
    invariant_rank=5,
    spurious_rank=5,
    batch_size=80,
    bias=0.5,
    heterogeneity=4.0,
    batching="pooled",
    ensemble="gaussian",
)
SUMMARY = "alpha=1e-3, d=30, r1=r2=5, s=0.5, M=4, m=80, independent N(0, 1) entries, exact law; T=40/eta (ours)"
# Theorem 3 puts the two solutions at this distance from each other: ||E A(e)||_F = s sqrt(r2).
APART = 0.5 * np.sqrt(5)


def simulate(effort: Effort, progress: Progress | None = None) -> xr.Dataset:
    """One run for each step size, recorded at equal shares t/T."""
    parts = []
    lengths = [round(TIME / step_size) for step_size in STEP_SIZES]
    for step_size, steps, report in zip(STEP_SIZES, lengths, stages(progress, lengths), strict=True):
        settings = replace(GIVEN, step_size=step_size, steps=steps, every=steps // RECORDS, seeds=effort.seeds)
        data = run_simulation(settings, progress=report).data
        parts.append(data.assign_coords(step=np.linspace(0, 1, RECORDS + 1)).rename(step="share"))
    return xr.concat(parts, pd.Index(STEP_SIZES, name="step_size"))


def _surviving(data: xr.Dataset, step_size: float) -> xr.Dataset:
    runs = data.sel(step_size=step_size)
    return runs.isel(seed=np.flatnonzero(runs["diverged_at"] < 0))


def draw(data: xr.Dataset) -> Figure:
    """Distances to both solutions against t/T."""
    figure, panels = new_figure(2, f"Figure 6: medians over {data.sizes['seed']} seeds, bands from 10 % to 90 %")
    names = {"distance": "||P - A*||, invariant solution", "pooled_distance": "||P - A* - E A(e)||, pooled solution"}
    for axes, (name, label) in zip(panels, names.items(), strict=True):
        for step_size in STEP_SIZES:
            runs = _surviving(data, step_size)
            if runs.sizes["seed"]:
                band(axes, runs[name], "share", f"η={step_size:g} ({runs.sizes['seed']} runs)")
        axes.set(xlabel="t / T", ylabel="distance (Frobenius)", title=label)
        legend_below(axes, 3)
    return figure


def numbers(data: xr.Dataset) -> pd.DataFrame:
    """The quantiles behind the curves and bands, diverged runs included."""
    return quantile_table(data, ("distance", "pooled_distance"))


def claims(data: xr.Dataset) -> list[Claim]:
    """How near the trajectories come to either solution in the second half of the run."""
    found = []
    for step_size in STEP_SIZES:
        runs = _surviving(data, step_size)
        lost = data.sizes["seed"] - runs.sizes["seed"]
        late = runs.where(runs["share"] >= 0.5, drop=True)
        for name, goal in (("distance", "the invariant"), ("pooled_distance", "the pooled")):
            enough = runs.sizes["seed"] >= 6
            nearest = median(late[name].min("share")) if enough else proportion(lost, data.sizes["seed"])
            why = f"nearest distance in the second half; the solutions are {APART:.2f} apart; {lost} runs diverged"
            found.append(
                Claim(
                    f"figure-6-{name.replace('_', '-')}-{step_size:g}",
                    "figure 6",
                    f"With batches of 80 and eta = {step_size:g} PooledSGD stays away from {goal} solution.",
                    SUMMARY,
                    nearest,
                    (0.5 * APART if enough else 0.5, np.inf),
                    RECORDED[name, step_size],
                    why if enough else "share of runs that diverged: too few are left for a distance",
                )
            )
    return found


# At eta = 0.1 the paper draws finite distances; with T=40/eta all our runs diverge, which also counts as away.
RECORDED = {
    (name, step_size): OUR_SETTINGS if step_size == 0.1 else AS_STATED
    for name in ("distance", "pooled_distance")
    for step_size in STEP_SIZES
}


EXPERIMENT = Experiment(TITLES["figure_6"], __doc__, LEFT_OPEN, SEEDS, QUICK_SEEDS, simulate, draw, numbers, claims)
