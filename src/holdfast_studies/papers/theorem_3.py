"""Theorems 3 and 6 of Xu, Gu and Fang (NeurIPS 2024): pooled batches end at A* + E A(e), and are never near A*."""

from functools import partial

import numpy as np
import xarray as xr

from holdfast.core.statistics import median
from holdfast_studies.kit.drawing import Figure, band, finished, new_figure, quantile_table
from holdfast_studies.kit.runs import Effort, Progress, Settings, replace, simulate_each
from holdfast_studies.kit.study import NINE_IN_TEN, Claim, ClaimBuilder, below, exact_share, study, summary
from holdfast_studies.papers.conditions import theorem_conditions

LEFT_OPEN = (
    "The theorems need U* and V* orthogonal and E S = I; m, M, eta are ours. (13) has no constant.",
    "Eq. 109 gives the distance at the end as O(delta*^2 M1^2 sqrt(r1) + delta* M1) up to logarithms, far above one "
    "here; what is tested is the o(1) that it is said to be, with 0.3 for o(1).",
)
SETTINGS = Settings(dimension=40, invariant_rank=3, spurious_rank=2, batch_size=20_000, steps=250, every=5)
METHODS = {
    "PooledSGD": replace(SETTINGS, batching="pooled"),
    "PooledGD": replace(SETTINGS, batching="full"),
    "HeteroSGD": replace(SETTINGS, batching="hetero"),
}
SUMMARY = summary(SETTINGS, "ours")
# Theorem 3 leaves the constant open; half of sqrt(min(r1, r2)) is what we ask for.
FLOOR = 0.5
# What we take o(1) of eq. 12 to be; the distance between the two solutions is 1.41.
NEAR = 0.3


def simulate(effort: Effort, progress: Progress | None = None) -> xr.Dataset:
    """All three ways to batch."""
    return simulate_each(METHODS, "algorithm", effort.seeds, progress)


def draw(data: xr.Dataset) -> Figure:
    """Distances to both solutions."""
    figure, panels = new_figure(2, f"Theorems 3 and 6: medians over {data.sizes['seed']} seeds, bands 10 % to 90 %")
    names = {"distance": "to the invariant solution A*", "pooled_distance": "to the pooled solution A* + E A(e)"}
    for axes, (name, title) in zip(panels, names.items(), strict=True):
        for method in METHODS:
            band(axes, data[name].sel(algorithm=method), "step", method)
        axes.set(xlabel="step", ylabel="distance (Frobenius)", title=title)
        axes.set_ylim(bottom=0)
    return finished(figure, 3)


def claims(data: xr.Dataset) -> list[Claim]:
    """Where pooled batches end, and how near to A* they pass."""
    # The proof of Theorem 3 promises 0.99, which takes 368 runs to confirm; 64 can confirm nine in ten.
    # Both theorems ask for what Theorem 2 does, and for E S = I and orthogonal subspaces, which these settings have.
    ends = theorem_conditions(SETTINGS, chosen=("T = 250", "m", "o(1): 0.3"))
    floor = theorem_conditions(SETTINGS, chosen=("T = 250", "m", "the constant of eq. 13"))
    scale = np.sqrt(min(SETTINGS.invariant_rank, SETTINGS.spurious_rank))
    claim = ClaimBuilder("", "Theorem 1", SUMMARY, floor)
    found = []
    for method, limit, away in (
        ("PooledSGD", "Theorem 1; Theorem 3; eq. 12", "Theorem 1; Theorem 3; eq. 13; after Theorem 3"),
        ("PooledGD", "Theorem 6; eq. 109", "Theorem 6"),
    ):
        runs = data.sel(algorithm=method)
        short = method.lower()
        least = runs["distance"].min("step") / scale
        found += [
            claim(f"{short}-ends", f"{method} ends at A* + E A(e).",
                  exact_share(runs["pooled_distance"].isel(step=-1) < NEAR), NINE_IN_TEN,
                  f"share of runs that end nearer than {NEAR}; median distance "
                  f"{float(runs['pooled_distance'].isel(step=-1).median()):.2f}; ||A* + E A(e)|| is 2.24",
                  source=limit, conditions=ends),
            claim(f"{short}-floor", f"{method} is never near A* on the way.", exact_share(least > FLOOR), NINE_IN_TEN,
                  f"share of runs whose least ||P - A*|| is above {FLOOR} sqrt(min(r1, r2)); least of all runs "
                  f"{float(least.min()):.2f} sqrt(min(r1, r2))", source=away),
        ]  # fmt: skip
    hetero = data.sel(algorithm="HeteroSGD")["distance"].isel(step=-1)
    found.append(claim("heterosgd-ends", "HeteroSGD ends nearer to A* than PooledSGD ever comes.",
                       median(hetero / data.sel(algorithm="PooledSGD")["distance"].min("step")), below(0.5),
                       "final distance of HeteroSGD over the least distance of PooledSGD, same seed",
                       conditions=theorem_conditions(SETTINGS, chosen=("T = 250", "m"))))  # fmt: skip
    return found


NUMBERS = partial(quantile_table, names=("distance", "pooled_distance"))
EXPERIMENT = study("theorem_3", __doc__, LEFT_OPEN, simulate, draw, NUMBERS, claims, seeds=64, quick_seeds=8)
