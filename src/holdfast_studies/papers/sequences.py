"""Lemmas 5, 6 and 7 of Xu, Gu and Fang (NeurIPS 2024): the sequences that control the proof."""

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from holdfast.core.statistics import bootstrap, median
from holdfast_studies.kit.drawing import BAND, COLOURS, Figure, band, finished, new_figure
from holdfast_studies.kit.runs import Effort, Progress, Settings, tracked
from holdfast_studies.kit.study import NEARLY_ALL, Claim, ClaimBuilder, Conditions, Position, below, exact_share, study
from holdfast_studies.papers.auxiliary_sequences import (
    calibration_line,
    controller,
    envelopes,
    growth_factors,
    invariant_sequence,
    step_size_window,
    supermartingale_factor,
    supermartingale_threshold,
)
from holdfast_studies.papers.conditions import least_isometry_constant, theorem_conditions

LEFT_OPEN = (
    "The constants c_v and C of the proof are not given; c_v = 1 here.",
    "No settings inside the window (24/M2, 1/(64 M1)) are given; a two-point law with s=0 needs M > 1536; ours: 2000.",
    "Eq. 40 prints L_t for t <= k and the matrix below it L_k; only the latter is a supermartingale.",
)
STAGES = np.linspace(0, 1, 21)
# Step sizes relative to the lower end 24 / M2 of the paper's window.
RELATIVE_STEP_SIZES = np.linspace(0.05, 1.0, 20)
# The simulations of the paper (section 5), for which its window of step sizes is empty.
PAPER: dict[str, Any] = {"step_size": 0.05, "bias": 1.0, "heterogeneity": 6.0, "init_scale": 1e-3}
PAPER_STEPS, PAPER_DIMENSION, PAPER_BATCH, RANK = 200, 100, 8000, 2
# Inside the window (6e-6, 7.8e-6). It opens only for M > 1536, so the steps are a million and are taken in blocks.
INSIDE: dict[str, Any] = {"step_size": 7e-6, "bias": 0.0, "heterogeneity": 2000.0, "init_scale": 5e-3}
INSIDE_DIMENSION, INSIDE_ISOMETRY, BLOCK = 10, 1e-6, 128
PAPER_SUMMARY = "d=100, r1=r2=1, m=8000, eta=0.05, alpha=1e-3, s=1, M=6, T=200, c_v=1 (ours)"
INSIDE_SUMMARY = "d=10, r1=r2=1, eta=7e-6, alpha=5e-3, s=0, M=2000, delta=1e-6, T=2 log(1/alpha)/eta, c_v=1 (all ours)"
DRAWN = "eta in (0.005, 0.1), alpha in (1e-8, 1e-2), one draw a seed, log-uniform"
LAWS = "s in (0, 2), M2 = w 1536 M1 with w in (1.05, 10), eta in the window (24/M2, 1/(64 M1)), one draw a seed"


def simulate(effort: Effort, progress: Progress | None = None) -> xr.Dataset:
    """All sequences; a seed is a draw of the parameters (Lemmas 5 and 7) or of the environments (Lemma 6)."""
    random = np.random.default_rng(0)
    variables: dict[str, tuple[tuple[str, ...], np.ndarray]] = {}
    for part in tracked((_lemma_5, _lemma_7, _lemma_6_paper, _lemma_6_inside), progress):
        variables |= part(random, effort.seeds)
    coordinates = {"seed": np.arange(effort.seeds), "stage": STAGES, "relative_step_size": RELATIVE_STEP_SIZES}
    return xr.Dataset(variables, coordinates)


def _lemma_5(random: np.random.Generator, seeds: int) -> dict:
    """Envelopes relative to R_t up to T_1, the first time that R_t passes 1/3 - eta."""
    step_size = np.exp(random.uniform(np.log(0.005), np.log(0.1), seeds))
    init_scale = 10 ** random.uniform(-8, -2, seeds)
    lower, upper = (np.empty((seeds, len(STAGES))) for _ in range(2))
    passage = np.empty(seeds)
    # Sorted by the length of phase 1, so that the runs of a group need about the same number of steps.
    for group in np.array_split(np.argsort(np.log(1 / init_scale) / step_size), max(1, seeds // 32)):
        eta, alpha = step_size[group], init_scale[group]
        steps = int(np.ceil((1.3 * np.log(1 / alpha) / eta).max()))
        exact = invariant_sequence(eta, alpha, steps)
        below, above = envelopes(eta, alpha, steps)
        ends = (exact > 1 / 3 - eta[:, None]).argmax(1)
        assert (ends > 0).all()
        times = np.rint(STAGES * ends[:, None]).astype(int)
        lower[group] = np.take_along_axis(below / exact, times, 1)
        upper[group] = np.take_along_axis(above / exact, times, 1)
        passage[group] = ends * eta / np.log(1 / alpha)
    return {"lower": (("seed", "stage"), lower), "upper": (("seed", "stage"), upper), "passage": (("seed",), passage)}


def _lemma_7(random: np.random.Generator, seeds: int) -> dict:
    """Log E (1 + eta xi + 2 eta)^(2/3) / eta for random laws whose window is open, and where it changes sign."""
    bias = random.uniform(0, 2, seeds)
    width = np.exp(random.uniform(np.log(1.05), np.log(10), seeds))
    # The window is `width` wide when M^2 / (1 + s) = 1536 width (s + M): a quadratic equation in M.
    linear = 1536 * width * (1 + bias)
    heterogeneity = (linear + np.sqrt(linear**2 + 4 * linear * bias)) / 2
    low, high = step_size_window(bias, heterogeneity)
    chosen = low * (high / low) ** random.uniform(0, 1, seeds)
    relative = low[:, None] * RELATIVE_STEP_SIZES
    laws = bias[:, None], heterogeneity[:, None]
    rate = np.log(supermartingale_factor(relative, *laws)) / relative
    strengths = PAPER["bias"] + PAPER["heterogeneity"] * random.choice([-1, 1], (seeds, PAPER_STEPS))
    return {
        "rate": (("seed", "relative_step_size"), rate),
        "rate_inside": (("seed",), np.log(supermartingale_factor(chosen, bias, heterogeneity)) / chosen),
        "threshold": (("seed",), supermartingale_threshold(bias, heterogeneity) / low),
        "factor_paper": (("seed",), (growth_factors(PAPER["step_size"], strengths) ** (2 / 3)).mean(1)),
    }


def _lemma_6_paper(random: np.random.Generator, seeds: int) -> dict:
    """The controller at the settings of the paper's figures, with the least delta that its measurements can have."""
    delta = least_isometry_constant(random, seeds, batch_size=PAPER_BATCH, dimension=PAPER_DIMENSION)
    invariant = invariant_sequence(PAPER["step_size"], PAPER["init_scale"], PAPER_STEPS)
    bound = PAPER["bias"] + PAPER["heterogeneity"]
    line = calibration_line(invariant, PAPER["init_scale"], bound, delta[:, None], RANK)
    strengths = PAPER["bias"] + PAPER["heterogeneity"] * random.choice([-1, 1], (seeds, PAPER_STEPS))
    values = controller(growth_factors(PAPER["step_size"], strengths), line, PAPER["init_scale"])
    barrier = _log_barrier(PAPER["bias"], PAPER["heterogeneity"], PAPER_DIMENSION)
    excess = np.log(values / line) / barrier
    return {
        "line_paper": (("seed",), line[:, -1]),
        "excess_paper": (("seed", "stage"), _at_stages(excess)),
        "stays_paper": (("seed",), (excess < 1).all(1)),
    }


def _lemma_6_inside(random: np.random.Generator, seeds: int) -> dict:
    """An upper bound of the controller inside the window, by blocks of steps.

    With g > 1 the larger factor, reflecting at the ends of the blocks at g^b L instead of L gives a process that
    dominates q there, and within a block q grows by at most g^b. L itself comes from eq. 25 with the block as the
    step, which changes it by a thousandth.
    """
    step_size, bias, heterogeneity, init_scale = INSIDE.values()
    line = _inside_line()
    blocks = len(line) - 1
    low, high = np.log(growth_factors(step_size, bias + heterogeneity * np.array([-1, 1])))
    slack = BLOCK * high
    barrier = _log_barrier(bias, heterogeneity, INSIDE_DIMENSION)
    excess = np.empty((seeds, len(STAGES)))
    largest = np.empty(seeds)
    for group in np.array_split(np.arange(seeds), max(1, seeds // 64)):
        ups = random.binomial(BLOCK, 0.5, (len(group), blocks))
        factors = np.exp(ups * high + (BLOCK - ups) * low)
        # A second slack for the path within a block, and for the growth of the line during it.
        values = np.log(controller(factors, line * np.exp(slack), init_scale) / line) + slack + BLOCK * step_size
        excess[group] = _at_stages(values / barrier)
        largest[group] = values.max(1) / barrier
    return {"excess_inside": (("seed", "stage"), excess), "stays_inside": (("seed",), largest < 1)}


def _inside_line() -> np.ndarray:
    """L at the ends of the blocks."""
    step_size, bias, heterogeneity, init_scale = INSIDE.values()
    blocks = int(2 * np.log(1 / init_scale) / step_size / BLOCK)
    sequence = invariant_sequence(step_size * BLOCK, init_scale, blocks)
    return calibration_line(sequence, init_scale, bias + heterogeneity, INSIDE_ISOMETRY, RANK)


def _log_barrier(bias: float, heterogeneity: float, dimension: int) -> float:
    """log(p^-1.5 r2^1.5) with p = c_v / (M2 log d), c_v = 1 and r2 = 1."""
    return float(1.5 * np.log(heterogeneity**2 / (1 + abs(bias)) * np.log(dimension)))


def _at_stages(values: np.ndarray) -> np.ndarray:
    return values[:, np.rint(STAGES * (values.shape[1] - 1)).astype(int)]


def draw(data: xr.Dataset) -> Figure:
    """One panel for each lemma."""
    seeds = data.sizes["seed"]
    figure, (left, middle, right) = new_figure(3, f"Lemmas 5 to 7: {seeds} seeds, medians, bands from 10 % to 90 %")
    for name, sign in (("upper", 1), ("lower", -1)):
        band(left, data[name], "stage", f"{name} envelope", color=COLOURS["invariant" if sign > 0 else "spurious"])
        left.axhline(1 + sign / 6, color="0.3", linestyle=":", label="bounds 1 ± 1/6" if sign > 0 else None)
    left.set(xlabel="t / T1", ylabel="envelope / R_t", title="Lemma 5")
    band(middle, data["excess_paper"], "stage", "settings of figure 3, M=6", color=COLOURS["spurious"])
    band(middle, data["excess_inside"], "stage", "inside the window (upper bound)", color=COLOURS["invariant"])
    middle.axhline(1, color="0.3", linestyle=":", label="absorbing barrier")
    middle.set(xlabel="t / T", ylabel="log(q_t / L_t) / log(barrier)", title="Lemma 6")
    band(right, data["rate"], "relative_step_size", "random laws with an open window", color=COLOURS["invariant"])
    right.axhline(0, color="0.3", linestyle=":", label="supermartingale below")
    right.set(xlabel="η M2 / 24 (window: above 1)", ylabel="log E (1 + ηξ + 2η)^(2/3) / η", title="Lemma 7")
    return finished(figure, 1)


def numbers(data: xr.Dataset) -> pd.DataFrame:
    """Quantiles over seeds of everything that was recorded, as a long table."""
    rows = []
    for name, values in data.astype(float).data_vars.items():
        along = next((str(dimension) for dimension in values.dims if dimension != "seed"), "")
        for quantile in BAND:
            levels = np.atleast_1d(values.quantile(quantile, "seed").values)
            positions = values[along].values if along else [np.nan]
            rows += [(name, along, at, quantile, level) for at, level in zip(positions, levels, strict=True)]
    return pd.DataFrame(rows, columns=["quantity", "along", "position", "quantile", "value"])


def claims(data: xr.Dataset) -> list[Claim]:
    """What the three lemmas say, inside and outside their constants."""
    threshold = data["threshold"].values
    inside = theorem_conditions(Settings(dimension=INSIDE_DIMENSION, **INSIDE), chosen=("all settings", "c_v = 1"))
    # Lemma 7 asks for the window alone, not for the ranks of Assumption 1.
    window = Conditions(chosen=("all settings", "c_v = 1"))
    claim = ClaimBuilder("", conditions=theorem_conditions(Settings(**PAPER), chosen=("c_v = 1",)))
    drawn = Conditions(chosen=("ranges of eta and alpha",))
    laws = Conditions(chosen=("laws of the strengths",))
    line = _inside_line()
    growth = float((line[1:] / line[:-1]).max() ** (2 / 3))
    return [
        claim("lemma-5-upper", "Up to T1 the upper envelope stays below 7/6 of the invariant sequence.",
              exact_share((data["upper"] <= 7 / 6).all("stage")), NEARLY_ALL,
              f"share of draws; the largest ratio is {float(data['upper'].max()):.3f}, about exp(1/32)",
              source="lemma 5; definition 2", settings=DRAWN, conditions=drawn),
        claim("lemma-5-lower", "Up to T1 the lower envelope stays above 5/6 of the invariant sequence.",
              exact_share((data["lower"] >= 5 / 6).all("stage")), NEARLY_ALL,
              f"share of draws; the least ratio is {float(data['lower'].min()):.3f}", source="lemma 5; definition 2",
              settings=DRAWN, conditions=drawn),
        claim("lemma-5-time", "The invariant sequence reaches 1/3 - eta within 4 log(1/alpha) / eta steps.",
              exact_share(data["passage"] <= 4), NEARLY_ALL, "share of draws; the largest T1 eta / log(1/alpha) is "
              f"{float(data['passage'].max()):.2f}, so the factor 4 could be 1", source="lemma 5", settings=DRAWN,
              conditions=drawn),
        claim("lemma-6-inside", "The controller stays below its absorbing barrier with probability over 0.995.",
              exact_share(data["stays_inside"]), (0.995, 1), "share of seeds; the median of log(q/L) ends at "
              f"{float(data['excess_inside'][:, -1].median()):.2f} of the barrier; the printed proof gives 0.99 only",
              source="lemma 6; definition 4", settings=INSIDE_SUMMARY, conditions=inside),
        claim("lemma-6-paper", "The same at the settings of the paper's figures.", exact_share(data["stays_paper"]),
              (0.995, 1), "share of seeds; the margin 2 eta alone makes q grow", source="lemma 6",
              settings=PAPER_SUMMARY, expected=Position.OUTSIDE),
        claim("calibration-line-paper", "The calibration line, below which the spurious signal stays, is small against "
              "the invariant signal.", median(data["line_paper"]), below(1),
              "L_T with the least delta that 8000 measurements can have; above one the theorem says nothing",
              source="definition 3", settings=PAPER_SUMMARY, expected=Position.OUTSIDE),
        claim("lemma-7-inside", "In the window E (1 + eta xi + 2 eta)^(2/3) is at most one, so X^(2/3) is a "
              "supermartingale.", exact_share(data["rate_inside"] <= 0), NEARLY_ALL,
              f"share of laws; it already holds from {threshold.min():.2f} to {threshold.max():.2f} of 24/M2 on",
              source="lemma 7", settings=LAWS, conditions=laws),
        claim("lemma-7-paper", "The same at the settings of the paper's figures.",
              bootstrap(data["factor_paper"].values, np.mean), below(1), "mean of the 2/3 power over the environments "
              f"that were drawn; exactly {float(supermartingale_factor(0.05, 1.0, 6.0)):.4f}", source="lemma 7",
              settings=PAPER_SUMMARY, expected=Position.OUTSIDE),
        claim("lemma-7-printed-rows", "Also before t = k the process of eq. 40, there equal to L_t, is a "
              "supermartingale.", growth, below(1),
              f"largest growth of L_t^(2/3) in {BLOCK} steps, which nothing random enters; the matrix below eq. 40 has "
              "L_k instead, with which it holds", source="lemma 7; definition 5", settings=INSIDE_SUMMARY,
              conditions=window, expected=Position.OUTSIDE),
    ]  # fmt: skip


EXPERIMENT = study("sequences", __doc__, LEFT_OPEN, simulate, draw, numbers, claims, seeds=1024, quick_seeds=128)
