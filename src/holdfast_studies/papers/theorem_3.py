"""Theorems 3 and 6 of Xu, Gu and Fang (NeurIPS 2024): pooled batches end at A* + E A(e), and are never near A*."""

from dataclasses import replace

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from holdfast.core.progress import Progress
from holdfast.core.statistics import Estimate, exact_proportion, median
from holdfast.plots import band, legend_below, new_figure
from holdfast.plots.signals import quantile_table
from holdfast.sensing.settings import Settings
from holdfast_studies.claims import Claim
from holdfast_studies.experiment import Effort, Experiment
from holdfast_studies.names import TITLES
from holdfast_studies.papers.conditions import theorem_conditions
from holdfast_studies.papers.figure_5 import simulate_each

LEFT_OPEN = (
    "The theorems need U* and V* orthogonal and E S = I; m, M, eta are ours. (13) has no constant.",
    "Eq. 109 gives the distance at the end as O(delta*^2 M1^2 sqrt(r1) + delta* M1) up to logarithms, far above one "
    "here; what is tested is the o(1) that it is said to be, with 0.3 for o(1).",
)
SEEDS, QUICK_SEEDS = 64, 8
SETTINGS = Settings(
    dimension=40,
    invariant_rank=3,
    spurious_rank=2,
    batch_size=20_000,
    bias=1.0,
    heterogeneity=6.0,
    step_size=0.05,
    steps=250,
    every=5,
)
METHODS = {
    "PooledSGD": replace(SETTINGS, batching="pooled"),
    "PooledGD": replace(SETTINGS, batching="full"),
    "HeteroSGD": replace(SETTINGS, batching="hetero"),
}
SUMMARY = "d=40, r1=3, r2=2, m=20000, s=1, M=6, eta=0.05, alpha=1e-3, T=250, symmetric measurements, exact law (ours)"
# Theorem 3 leaves the constant open; half of sqrt(min(r1, r2)) is what we ask for.
FLOOR = 0.5
# What we take o(1) of eq. 12 to be; the distance between the two solutions is 1.41.
NEAR = 0.3
# The proof of Theorem 3 promises 0.99, which takes 368 runs to confirm; 64 can confirm nine in ten.
NEARLY_ALL = (0.9, 1.0)


def simulate(effort: Effort, progress: Progress | None = None) -> xr.Dataset:
    """All three ways to batch."""
    return simulate_each(METHODS, "algorithm", effort, progress)


def draw(data: xr.Dataset) -> Figure:
    """Distances to both solutions."""
    figure, panels = new_figure(2, f"Theorems 3 and 6: medians over {data.sizes['seed']} seeds, bands 10 % to 90 %")
    names = {"distance": "to the invariant solution A*", "pooled_distance": "to the pooled solution A* + E A(e)"}
    for axes, (name, title) in zip(panels, names.items(), strict=True):
        for method in METHODS:
            band(axes, data[name].sel(algorithm=method), "step", method)
        axes.set(xlabel="step", ylabel="distance (Frobenius)", title=title)
        axes.set_ylim(bottom=0)
        legend_below(axes, 3)
    return figure


def numbers(data: xr.Dataset) -> pd.DataFrame:
    """The quantiles behind the curves and bands."""
    return quantile_table(data, ("distance", "pooled_distance"))


def claims(data: xr.Dataset) -> list[Claim]:
    """Where pooled batches end, and how near to A* they pass."""
    # Both theorems ask for what Theorem 2 does, and for E S = I and orthogonal subspaces, which these settings have.
    ends = theorem_conditions(SETTINGS, chosen=("T = 250", "m", "o(1): 0.3"))
    floor = theorem_conditions(SETTINGS, chosen=("T = 250", "m", "the constant of eq. 13"))
    scale = np.sqrt(min(SETTINGS.invariant_rank, SETTINGS.spurious_rank))
    found = []
    for method, limit, away in (
        ("PooledSGD", "Theorem 1; Theorem 3; eq. 12", "Theorem 1; Theorem 3; eq. 13; after Theorem 3"),
        ("PooledGD", "Theorem 6; eq. 109", "Theorem 6"),
    ):
        runs = data.sel(algorithm=method)
        short = method.lower()
        least = runs["distance"].min("step") / scale
        found += [
            Claim(f"{short}-ends", limit, f"{method} ends at A* + E A(e).", SUMMARY,
                  _share(runs["pooled_distance"].isel(step=-1) < NEAR), NEARLY_ALL, ends,
                  f"share of runs that end nearer than {NEAR}; median distance "
                  f"{float(runs['pooled_distance'].isel(step=-1).median()):.2f}; ||A* + E A(e)|| is 2.24"),
            Claim(f"{short}-floor", away, f"{method} is never near A* on the way.", SUMMARY,
                  _share(least > FLOOR), NEARLY_ALL, floor,
                  f"share of runs whose least ||P - A*|| is above {FLOOR} sqrt(min(r1, r2)); least of all runs "
                  f"{float(least.min()):.2f} sqrt(min(r1, r2))"),
        ]  # fmt: skip
    hetero = data.sel(algorithm="HeteroSGD")["distance"].isel(step=-1)
    found.append(
        Claim("heterosgd-ends", "Theorem 1", "HeteroSGD ends nearer to A* than PooledSGD ever comes.",
              SUMMARY, median(hetero / data.sel(algorithm="PooledSGD")["distance"].min("step")), (-np.inf, 0.5),
              theorem_conditions(SETTINGS, chosen=("T = 250", "m")),
              "final distance of HeteroSGD over the least distance of PooledSGD, same seed")
    )  # fmt: skip
    return found


def _share(flags: xr.DataArray) -> Estimate:
    return exact_proportion(int(flags.sum()), flags.size)


EXPERIMENT = Experiment(TITLES["theorem_3"], __doc__, LEFT_OPEN, SEEDS, QUICK_SEEDS, simulate, draw, numbers, claims)
