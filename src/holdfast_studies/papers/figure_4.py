"""Figure 4 of Xu, Gu and Fang (NeurIPS 2024): a large step size removes the spurious signal."""

from functools import partial

import numpy as np
import xarray as xr

from holdfast.core.statistics import bootstrap, median
from holdfast.theory.diagnosis import LEARNED, WASHED_OUT
from holdfast_studies.kit import BIAS
from holdfast_studies.kit.drawing import COLOURS, Figure, band, draw_signals, finished, new_figure, quantile_table
from holdfast_studies.kit.runs import Effort, Progress, replace, simulate_each
from holdfast_studies.kit.study import Claim, ClaimBuilder, Conditions, above, below, study
from holdfast_studies.papers import figure_3
from holdfast_studies.papers.figure_3 import QUANTILES, RECOVERED, RULE, SHARES, transition

LEFT_OPEN = (
    "How long each step size runs: 10/eta steps here, so that the invariant signal always reaches the same stage.",
    "The number of seeds.",
    "How the curves are averaged: medians here, since a mean of the spurious signal is carried by a few seeds.",
    "What eliminated and learned mean, and where the transition lies: the rule of figure 3.",
)
HETEROGENEITY = 5.0
# Where the exponent is zero: (1 + eta s)^2 - (eta M)^2 = 1.
THRESHOLD = 2 * BIAS / (HETEROGENEITY**2 - BIAS**2)
STEP_SIZES = tuple(np.round(np.arange(0.01, 0.095, 0.01), 2).tolist())
PLOTTED = (0.05, 0.01)
# The paper does not say how long each step size runs. The invariant signal grows by 1 + eta a step, so equal products
# of steps and step size reach equal stages; 10 is that of figure 3. 40 records, whatever the number of steps.
TIME = 10.0
RECORDS = 40
GIVEN = replace(figure_3.GIVEN, heterogeneity=HETEROGENEITY)
SUMMARY = "d=100, r1=r2=1, m=8000, alpha=1e-3, s=1, M=5, T=10/eta (ours), independent N(0, 1) entries, exact law"


def simulate(effort: Effort, progress: Progress | None = None) -> xr.Dataset:
    """One run for each step size, recorded at equal stages eta t."""
    lengths = {step_size: round(TIME / step_size) for step_size in STEP_SIZES}
    runs = {
        step_size: replace(GIVEN, step_size=step_size, steps=steps, every=max(1, steps // RECORDS))
        for step_size, steps in lengths.items()
    }
    data = simulate_each(runs, "step_size", effort.seeds, progress, records=RECORDS)
    return data.assign_coords(share=np.linspace(0, TIME, RECORDS + 1)).rename(share="stage")


def draw(data: xr.Dataset) -> Figure:
    """Both panels, laid out as in the paper."""
    seeds = data.sizes["seed"]
    figure, (left, right) = new_figure(2, f"Figure 4: medians over {seeds} seeds, bands from 10 % to 90 %")
    for step_size, style in zip(PLOTTED, ("-", "--"), strict=True):
        draw_signals(left, data.sel(step_size=step_size), "stage", f", η={step_size:g}", linestyle=style)
    left.set(xlabel="η x steps", ylabel="signal learned (1 = fully)", title="HeteroSGD over time, M=5", ylim=SHARES)
    final = data.isel(stage=-1)
    for name in ("invariant", "spurious"):
        band(right, final[name], "step_size", name, color=COLOURS[name], marker="o", markersize=3)
    right.axvline(THRESHOLD, color="0.3", linestyle=":", label=f"threshold for T → ∞: η={THRESHOLD:.3f}")
    right.set(xlabel="step size η", ylabel="signal learned after 10/η steps", title="After 10/η steps", ylim=SHARES)
    return finished(figure)


def claims(data: xr.Dataset) -> list[Claim]:
    """What the paper reads off the figure, by the rule of figure 3."""
    final = data.isel(stage=-1)
    small, large = final.sel(step_size=0.01), final.sel(step_size=0.05)
    shares = final["spurious"].transpose("seed", "step_size").values
    half, most, _ = (bootstrap(shares, partial(transition, STEP_SIZES, quantile=q)) for q in QUANTILES)
    choice = Conditions(chosen=("T = 10/eta", *RULE.chosen))
    claim = ClaimBuilder("figure-4", "figure 4", f"{SUMMARY}, eta=0.01", choice)
    lost = float((large["spurious"] > WASHED_OUT).mean())
    return [
        claim("small-step", "With a small step size (0.01) the spurious signal is learned too.",
              median(small["spurious"]), above(LEARNED), f"median spurious share above {LEARNED} after 10/eta = 1000 "
              "steps"),
        claim("small-step-invariant", "With a small step size (0.01) the invariant signal is learned.",
              median(small["invariant"]), above(RECOVERED), "it needs 1000 steps: after the 200 on the paper's axis it "
              "would be at 5e-5"),
        claim("large-step", "With a large step size (0.05) the spurious signal is eliminated.",
              median(large["spurious"]), below(WASHED_OUT), f"median below {WASHED_OUT}; {lost:.0%} of the seeds are "
              "above it", settings=f"{SUMMARY}, eta=0.05"),
        claim("threshold", "From eta = 0.05 on the spurious signal is eliminated.", half, below(0.05),
              f"where the median falls below {WASHED_OUT}; 3 of 4 seeds do so from {most.value:.3f} on, and for T -> "
              f"infinity the exponent changes sign at {THRESHOLD:.3f}",
              settings=f"{SUMMARY}, eta=0.01 to 0.09"),
    ]  # fmt: skip


EXPERIMENT = study("figure_4", __doc__, LEFT_OPEN, simulate, draw, quantile_table, claims, seeds=128, quick_seeds=8)
