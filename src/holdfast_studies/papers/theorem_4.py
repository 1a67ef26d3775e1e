"""Theorems 4 and 5 of Xu, Gu and Fang (NeurIPS 2024): the two phases of the invariant signal."""

from functools import partial

import numpy as np
import xarray as xr

from holdfast.sensing.signals import PHASE_BOUNDARY
from holdfast_studies.kit import INIT_SCALE, STEP_SIZE
from holdfast_studies.kit.drawing import Figure, band, finished, new_figure, quantile_table
from holdfast_studies.kit.runs import Effort, Progress, Settings, replace, run_simulation
from holdfast_studies.kit.study import Claim, ClaimBuilder, Position, exact_share, study, summary
from holdfast_studies.papers.auxiliary_sequences import invariant_sequence
from holdfast_studies.papers.conditions import delta_star, theorem_conditions

LEFT_OPEN = (
    "The theorem's step sizes are empty for these strengths, and its constants ask for batches far above any "
    "simulation; we test what it says at a batch of 8000 and of 1,000,000. The experiment `inside` meets them.",
    "M=8 is beyond the long-run threshold 6.40. A first trial with M=6, as in figure 3, left the claim on the "
    "spurious part in phase 2 undecided: below the threshold it comes back in some seeds.",
    "Both theorems promise a probability of 0.995, so each claim is a share of runs. Bounds with a constant that is "
    "not printed are replaced by the number that the proof puts next to them: 1 for ||E||_F^2, and in phase 2 0.01 for "
    "Q, where Theorem 5 itself says 40 M1 delta*, which is far above one here and would exclude nothing.",
    "How near to one singular values settle in phase 2: 0.1.",
)
BATCH_SIZES = (8_000, 1_000_000)
SETTINGS = Settings(
    dimension=30, invariant_rank=3, spurious_rank=2, heterogeneity=8.0, steps=250, every=1, batch_size=BATCH_SIZES
)
SUMMARY = summary(SETTINGS, "ours")
PROMISED, SETTLED, LAST = 0.995, 0.1, 20
# The bounds of the proofs (eqs. 84, 85 and the proof of Theorem 5).
LARGEST_Q, LARGEST_E = 0.01, 1.0


def simulate(effort: Effort, progress: Progress | None = None) -> xr.Dataset:
    """Every step recorded, for both batch sizes."""
    data = run_simulation(replace(SETTINGS, seeds=effort.seeds), progress=progress).data
    values = data["singular_values"]
    # tr(V*^T P V*) = ||Q||_F^2.
    q = xr.apply_ufunc(np.sqrt, np.maximum(data["spurious"], 0) * SETTINGS.spurious_rank)
    return xr.Dataset(
        {
            "largest": values.isel(direction=0),
            "smallest": values.isel(direction=-1),
            "least_growth": (values.shift(step=-1) / values).min("direction"),
            "spurious_norm": q,
            "residual": data["residual"],
        }
    )


def draw(data: xr.Dataset) -> Figure:
    """The largest and smallest singular values of R, on a logarithmic axis, with the boundary of the phases."""
    figure, panels = new_figure(2, f"Theorems 4, 5: medians over {data.sizes['seed']} seeds, bands from 10 % to 90 %")
    for axes, batch_size in zip(panels, BATCH_SIZES, strict=True):
        runs = data.sel(batch_size=batch_size)
        band(axes, runs["largest"], "step", "largest singular value of R")
        band(axes, runs["spurious_norm"], "step", "||Q||_F, spurious")
        band(axes, runs["smallest"], "step", "smallest singular value of R", linestyle="--", color="0.3")
        axes.axhline(PHASE_BOUNDARY, color="0.5", linestyle=":", label="1/3: phase 2 begins")
        axes.set(xlabel="step", ylabel="size", yscale="log", title=f"m = {batch_size:,}", ylim=(1e-5, 3))
    return finished(figure)


def _end_of_phase_one(steps: int) -> int:
    """T1: the first time that the invariant sequence of eq. 25 is in (1/3 - eta, 1/3)."""
    return int((invariant_sequence(STEP_SIZE, INIT_SCALE, steps) > PHASE_BOUNDARY - STEP_SIZE).argmax())


def _bound_of_theorem_5(batch_size: int) -> float:
    """40 M1 delta* with c_v = 1 and delta = sqrt(d / m), which is below the delta of the batch."""
    largest, scale = delta_star(SETTINGS.dimension, batch_size, SETTINGS.invariant_rank, SETTINGS.spurious_rank, 8.0)
    return 40 * largest * scale


def claims(data: xr.Dataset) -> list[Claim]:
    """What the theorems promise with probability 0.995, as shares of runs."""
    found = []
    first = _end_of_phase_one(data.sizes["step"] - 1)
    claim = ClaimBuilder("")
    marks = {
        "settles": (f"near one: {SETTLED}", f"for the last {LAST} steps"),
        "later-spurious": ("0.01, from the proof",),
        "residual": ("1, from the proof",),
        "later-residual": ("1, from the proof",),
    }
    for batch_size in BATCH_SIZES:
        runs = data.sel(batch_size=batch_size)
        early, late = runs.isel(step=slice(0, first + 1)), runs.isel(step=slice(first + 1, None))
        end = runs.isel(step=first)
        last = runs.isel(step=slice(-LAST, None))
        worst = early["least_growth"].isel(step=slice(0, first)).min("step")
        within = {
            "growth": worst > 1 + STEP_SIZE / 3,
            "spurious": (early["spurious_norm"] < LARGEST_Q).all("step"),
            "residual": (early["residual"] < LARGEST_E).all("step"),
            "end": (end["smallest"] > 1 / 4) & (end["largest"] < 7 / 18),
            "settles": ((last["smallest"] > 1 - SETTLED) & (last["largest"] < 1 + SETTLED)).all("step"),
            "later-spurious": (late["spurious_norm"] < LARGEST_Q).all("step"),
            "later-residual": (late["residual"] < LARGEST_E).all("step"),
        }
        found += [
            claim(f"theorem-{theorem}-{name}-{batch_size // 1000}k", statement, exact_share(within[name]),
                  (PROMISED, 1.0), f"share of {within[name].size} runs; {why}{TOO_NEAR.get((name, batch_size), '')}",
                  source=source, settings=f"m={batch_size:,}, {SUMMARY}",
                  conditions=theorem_conditions(SETTINGS, chosen=("T = 250", "m", *marks.get(name, ()))),
                  expected=EXPECTED.get((name, batch_size), Position.INSIDE))
            for theorem, name, source, statement, why in (
                (4, "growth", "Theorem 4; lemma 14",
                 "In phase 1 every singular value of R grows by at least 1 + eta/3 in every step.",
                 f"least growth in a step, median over runs {float(worst.median()):.4f}, bound "
                 f"{1 + STEP_SIZE / 3:.4f}"),
                (4, "spurious", "Theorem 4", "In phase 1 ||Q||_F stays below 0.01.",
                 f"its largest value, median over runs {float(early['spurious_norm'].max('step').median()):.2g}"),
                (4, "residual", "Theorem 4", "In phase 1 ||E||_F^2 stays below 1.",
                 f"its largest value, median over runs {float(early['residual'].max('step').median()):.2g}"),
                (4, "end", "Theorem 4", "At the end of phase 1 all singular values of R are in (1/4, 7/18).",
                 f"T1 = {first}; median of the smallest {float(end['smallest'].median()):.3f}, of the largest "
                 f"{float(end['largest'].median()):.3f}"),
                (5, "settles", "Theorem 5", f"In phase 2 all singular values of R come within {SETTLED} of 1.",
                 f"in each of the last {LAST} steps"),
                (5, "later-spurious", "Theorem 5", "In phase 2 ||Q||_F stays below 0.01, as its proof says.",
                 f"its largest value, median over runs {float(late['spurious_norm'].max('step').median()):.2g}; the "
                 "theorem's 40 M1 delta*, with delta = sqrt(d/m) and c_v = 1, is "
                 f"{_bound_of_theorem_5(batch_size):.0e}"),
                (5, "later-residual", "Theorem 5", "In phase 2 ||E||_F^2 stays below 1.",
                 f"its largest value, median over runs {float(late['residual'].max('step').median()):.2g}"),
            )
        ]  # fmt: skip
    return found


# The batch of 8000 is far from what the theorem asks for; at 1,000,000 the spurious part still passes 0.01, and two
# shares are too close to 0.995 for this many runs.
EXPECTED = {
    ("growth", 8_000): Position.OUTSIDE,
    ("spurious", 8_000): Position.OUTSIDE,
    ("end", 8_000): Position.OUTSIDE,
    ("settles", 8_000): Position.OUTSIDE,
    ("later-spurious", 8_000): Position.OUTSIDE,
    ("growth", 1_000_000): Position.UNDECIDED,
    ("spurious", 1_000_000): Position.OUTSIDE,
    ("settles", 1_000_000): Position.UNDECIDED,
    ("later-spurious", 1_000_000): Position.OUTSIDE,
}

# By a power calculation from these shares.
TOO_NEAR = {
    ("growth", 1_000_000): "; about 2,000 runs would tell it from 0.995, a minute more",
    ("settles", 1_000_000): "; about 30,000 runs would tell it from 0.995",
}

# The interval of a share lies above 0.995 if 736 of 736 runs do what is promised.
NUMBERS = partial(quantile_table, names=("largest", "smallest", "spurious_norm"))
EXPERIMENT = study("theorem_4", __doc__, LEFT_OPEN, simulate, draw, NUMBERS, claims, seeds=768, quick_seeds=12)
