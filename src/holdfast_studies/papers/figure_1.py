"""Figure 1 of Xu, Gu and Fang (NeurIPS 2024): aggregated against heterogeneous data, an illustration."""

import xarray as xr

from holdfast.core.statistics import median
from holdfast_studies.kit.drawing import Figure, draw_signals, finished, new_figure, quantile_table
from holdfast_studies.kit.runs import Effort, Progress, Settings, replace, simulate_each
from holdfast_studies.kit.study import Claim, ClaimBuilder, Range, above, below, study, summary

LEFT_OPEN = (
    "The illustration has no numbers; all settings are ours: d=20, s=0.8, M=7, eta=0.05, alpha=1e-3, infinite batches.",
)
SETTINGS = Settings(dimension=20, heterogeneity=7.0, bias=0.8, step_size=0.05, steps=250, every=5, oracle="population")
SUMMARY = summary(SETTINGS, "all ours")
BATCHINGS = {"full": replace(SETTINGS, batching="full"), "hetero": replace(SETTINGS, batching="hetero")}


def simulate(effort: Effort, progress: Progress | None = None) -> xr.Dataset:
    """The same problem with batches of all environments and of one."""
    return simulate_each(BATCHINGS, "batching", effort.seeds, progress)


def draw(data: xr.Dataset) -> Figure:
    """Aggregated data on the left, heterogeneous data on the right."""
    figure, panels = new_figure(2, f"Figure 1: medians over {data.sizes['seed']} seeds, bands from 10 % to 90 %")
    for axes, name, title in zip(panels, BATCHINGS, ("Aggregated data", "Heterogeneous data"), strict=True):
        draw_signals(axes, data.sel(batching=name))
        axes.set(xlabel="step", ylabel="signal learned (1 = fully)", title=title, ylim=(-0.03, 1.5))
    return finished(figure, 3)


def claims(data: xr.Dataset) -> list[Claim]:
    """What the illustration shows."""
    final, build = data.isel(step=-1), ClaimBuilder("figure-1", settings=SUMMARY)

    def claim(name: str, statement: str, batching: str, signal: str, allowed: Range, why: str) -> Claim:
        source = "figure 1" if batching == "full" else "figure 1; Algorithm 2"
        measured = median(final[signal].sel(batching=batching))
        return build(name, statement, measured, allowed, why, source=source)

    return [
        claim("aggregated", "Aggregated data: the spurious signal is learned.", "full", "spurious", above(0.7),
              "a stable signal, learned like the invariant one"),
        claim("heterogeneous", "Heterogeneous data: the spurious signal is not learned.", "hetero", "spurious",
              below(0.05), "the oscillation contracts it"),
        claim("invariant", "Heterogeneous data: the invariant signal is learned.", "hetero", "invariant", above(0.9),
              "what does not oscillate grows as ever"),
    ]  # fmt: skip


EXPERIMENT = study("figure_1", __doc__, LEFT_OPEN, simulate, draw, quantile_table, claims, seeds=128, quick_seeds=16)
