"""Figure 1 of Xu, Gu and Fang (NeurIPS 2024): aggregated against heterogeneous data, an illustration."""

from dataclasses import replace

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from holdfast.core.progress import Progress
from holdfast.core.statistics import median
from holdfast.plots import legend_below, new_figure
from holdfast.plots.signals import draw_signals, quantile_table
from holdfast.sensing.settings import Settings
from holdfast_studies.claims import OUR_SETTINGS, Claim
from holdfast_studies.experiment import Effort, Experiment
from holdfast_studies.names import TITLES
from holdfast_studies.papers.figure_5 import simulate_each

LEFT_OPEN = (
    "The illustration has no numbers; all settings are ours: d=20, s=0.8, M=7, eta=0.05, alpha=1e-3, infinite batches.",
)
SEEDS, QUICK_SEEDS = 128, 16
SETTINGS = Settings(dimension=20, heterogeneity=7.0, bias=0.8, step_size=0.05, steps=250, every=5, oracle="population")
SUMMARY = "d=20, r1=r2=1, s=0.8, M=7, eta=0.05, alpha=1e-3, T=250, infinite batches (all ours)"
BATCHINGS = {"full": replace(SETTINGS, batching="full"), "hetero": replace(SETTINGS, batching="hetero")}


def simulate(effort: Effort, progress: Progress | None = None) -> xr.Dataset:
    """The same problem with batches of all environments and of one."""
    return simulate_each(BATCHINGS, "batching", effort, progress)


def draw(data: xr.Dataset) -> Figure:
    """Aggregated data on the left, heterogeneous data on the right."""
    figure, panels = new_figure(2, f"Figure 1: medians over {data.sizes['seed']} seeds, bands from 10 % to 90 %")
    for axes, name, title in zip(panels, BATCHINGS, ("Aggregated data", "Heterogeneous data"), strict=True):
        draw_signals(axes, data.sel(batching=name))
        axes.set(xlabel="step", ylabel="signal learned (1 = fully)", title=title, ylim=(-0.03, 1.5))
        legend_below(axes, 3)
    return figure


def claims(data: xr.Dataset) -> list[Claim]:
    """What the illustration shows."""
    final = data.isel(step=-1)
    choice = OUR_SETTINGS

    def claim(name: str, statement: str, batching: str, signal: str, allowed: tuple[float, float], why: str) -> Claim:
        measured = median(final[signal].sel(batching=batching))
        source = "figure 1" if batching == "full" else "figure 1; Algorithm 2"
        return Claim(f"figure-1-{name}", source, statement, SUMMARY, measured, allowed, choice, why)

    return [
        claim("aggregated", "Aggregated data: the spurious signal is learned.", "full", "spurious", (0.7, np.inf),
              "a stable signal, learned like the invariant one"),
        claim("heterogeneous", "Heterogeneous data: the spurious signal is not learned.", "hetero", "spurious",
              (-np.inf, 0.05), "the oscillation contracts it"),
        claim("invariant", "Heterogeneous data: the invariant signal is learned.", "hetero", "invariant", (0.9, np.inf),
              "what does not oscillate grows as ever"),
    ]  # fmt: skip


EXPERIMENT = Experiment(
    TITLES["figure_1"], __doc__, LEFT_OPEN, SEEDS, QUICK_SEEDS, simulate, draw, quantile_table, claims
)
