"""Growth rates of optimisers without sampling error: exponents of momentum, the walk of signs, the ratio of Adam."""

from collections.abc import Mapping
from functools import cache, partial

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from holdfast.core.statistics import bootstrap, mean_interval, median
from holdfast.theory.lyapunov import two_point_threshold
from holdfast_studies.kit.runs import Effort, Progress
from holdfast_studies.kit.study import Claim, ClaimBuilder, Position, above, below, crossing, share
from holdfast_studies.questions.optimizer_runs import (
    BIAS,
    INIT_SCALE,
    NAMES,
    STEPS,
    STRONG,
    WITH_EXPONENT,
    exponent,
    in_plane,
)
from holdfast_studies.questions.strength_laws import growth

# Growth rates in the plane: random problems of momentum and Nesterov, counted from BEGIN on, when the direction of
# (q, v) has settled. No signal comes to order one.
PROBLEMS, LONG, BEGIN = 60, 500, 100
WIDE = 3.34  # standard errors: 60 intervals cover together with a confidence of 95 % (Bonferroni)
# Around the threshold of momentum 0.9, at the effective step size eta / (1 - beta) at which it is lowest.
EFFECTIVE, AROUND, LONGEST, ROOM = 0.018, np.linspace(0.94, 1.06, 5), 8000, 1e-80
# Runs around the threshold, and of the scale-free optimisers in the plane, times the seeds.
THRESHOLD_RUNS, PLANE_RUNS, QUICK_PART = 4, 32, 20
# The settings of the plane were chosen on seeds from 0 on; the claims have these.
PLANE_SEED = 20_000
# Long enough for the drift of Adam, T eta s / M, to exceed its walk, sqrt(T) eta.
SIGN_STEP, ADAM_STEP, ADAM_STEPS, ADAM_HETEROGENEITY = 0.003, 0.00025, 800, (2.0, 6.0)
# The median of the square of a standard normal number.
MEDIAN_SQUARE = 0.4549


def random_problems() -> dict[str, np.ndarray]:
    """Relative step sizes, momenta and heterogeneities of momentum and Nesterov, drawn from a fixed seed."""
    random = np.random.default_rng(4)
    return {
        "choice": np.where(np.arange(PROBLEMS) % 2, NAMES.index("Nesterov"), NAMES.index("momentum")),
        "step_size": random.uniform(0.02, 0.2, PROBLEMS),
        "momentum": random.uniform(0.3, 0.95, PROBLEMS),
        "heterogeneity": random.uniform(2, 10, PROBLEMS),
    }


@cache
def threshold() -> float:
    """The heterogeneity at which momentum starts to wash out, at the effective step size `EFFECTIVE`."""
    return float(brentq(lambda m: exponent("momentum", EFFECTIVE, m), 6.0, 20.0, xtol=1e-3))


def _settled_growth(seeds: int, steps: int, given: Mapping[str, ArrayLike]) -> np.ndarray:
    """Growth of log|q| per step from BEGIN on, the second record, (problems, seeds)."""
    records = in_plane(seeds, steps, BEGIN, given, first_seed=PLANE_SEED)
    return growth(records.values["signals"][:, :, 1], records.steps, seeds, since=1)


def growth_rates(effort: Effort, best: dict[str, float], report: Progress) -> xr.Dataset:
    """Growth with the exponents of momentum and at the step sizes that were chosen, and what the others do instead."""
    seeds, longest = effort.seeds, effort.steps(LONGEST, part=QUICK_PART)
    problems = _settled_growth(seeds, LONG, random_problems())
    report(1, 5)
    at_their_best = [best[name] for name in WITH_EXPONENT]
    chosen: dict[str, ArrayLike] = {"choice": [NAMES.index(n) for n in WITH_EXPONENT], "step_size": at_their_best}
    at_best = _settled_growth(seeds, LONG, {**chosen, "heterogeneity": STRONG})
    report(2, 5)
    around: dict[str, ArrayLike] = {"choice": NAMES.index("momentum"), "heterogeneity": AROUND * threshold()}
    many = THRESHOLD_RUNS * seeds
    crossing = _settled_growth(many, longest, {**around, "step_size": EFFECTIVE, "init_scale": ROOM})
    report(3, 5)
    # Steps of the plane are in units of 1 / d; a start that is no multiple of the step never lands on zero.
    walk = {"choice": NAMES.index("sign SGD"), "step_size": 2 * SIGN_STEP, "init_scale": 0.37 * SIGN_STEP}
    walks = in_plane(PLANE_RUNS * seeds, 2 * STEPS, 2 * STEPS, {**walk, "heterogeneity": STRONG}, first_seed=PLANE_SEED)
    walked = walks.values["signals"]
    report(4, 5)
    adam = {"choice": NAMES.index("Adam"), "step_size": 2 * ADAM_STEP, "init_scale": INIT_SCALE}
    both: dict[str, ArrayLike] = {**adam, "heterogeneity": np.array(ADAM_HETEROGENEITY)}
    grown = in_plane(many, ADAM_STEPS, ADAM_STEPS, both, first_seed=PLANE_SEED).values["signals"]
    report(5, 5)
    ratio = grown[:, -1, 1] / grown[:, -1, 0]
    return xr.Dataset(
        {
            "rate": (("problem", "seed"), problems),
            "best_rate": (("with_exponent", "seed"), at_best),
            "around": (("relative_heterogeneity", "threshold_run"), crossing),
            "walk": ("run", walked[:, -1, 1] ** 2),
            "ratio": (("adam_heterogeneity", "adam_run"), ratio.reshape(len(ADAM_HETEROGENEITY), -1)),
        },
        {
            "relative_heterogeneity": AROUND,
            "with_exponent": list(WITH_EXPONENT),
            "adam_heterogeneity": list(ADAM_HETEROGENEITY),
        },
        {"longest": longest},
    )


def claims_of_rates(data: xr.Dataset) -> list[Claim]:
    """Whether the exponents are right, and what the optimisers without one do."""
    problems = random_problems()
    predicted = [
        exponent(NAMES[choice], *numbers)
        for choice, *numbers in zip(*(problems[k] for k in ("choice", "step_size", "heterogeneity", "momentum")),
                                    strict=True)
    ]  # fmt: skip
    error = data["rate"].std("seed", ddof=1) / np.sqrt(data.sizes["seed"])
    inside = np.abs(data["rate"].mean("seed") - np.array(predicted)) <= WIDE * error
    rates = {name: data["best_rate"].sel(with_exponent=name).values for name in WITH_EXPONENT}
    at_best = {name: exponent(name, float(data["best"].sel(optimizer=name)), STRONG) for name in WITH_EXPONENT}
    walk = data["walk"].values / (MEDIAN_SQUARE * SIGN_STEP**2 * 2 * STEPS)
    plane = "two directions, population"
    claim = ClaimBuilder("optimizers", "question 3", f"{plane}, M={STRONG}, T={LONG}")
    return [
        claim("momentum-exponent", "With momentum or Nesterov a small spurious direction grows at the exponent of a "
              "product of random 2 x 2 matrices.", share(inside), (0.8, 1.0),
              "share of problems whose interval (95 % for all together) holds the exponent",
              settings=f"{PROBLEMS} random problems, {plane}, T={LONG}"),
        claim("momentum-threshold", "With momentum 0.9 the spurious signal turns from growing to dying at the "
              "heterogeneity at which this exponent is zero.",
              bootstrap(data["around"].transpose("threshold_run", ...).values, partial(crossing, AROUND)),
              (0.97, 1.03),
              f"measured threshold over {threshold():.2f}, the lowest of all step sizes; that of SGD at its chosen one "
              f"is {float(two_point_threshold(float(data['best'].sel(optimizer='SGD')), BIAS)):.2f}; it would take "
              "five times as many runs to tell", settings=f"{plane}, eta/(1-beta)={EFFECTIVE}, "
              f"T={data.attrs['longest']}", expected=Position.UNDECIDED),
        claim("momentum-grows", "In the long run momentum 0.9 does not wash out: at the chosen step size the signal "
              "grows.", mean_interval(rates["momentum"]), above(1e-3), "growth of log q per step; exponent "
              f"{at_best['momentum']:.4f}"),
        claim("sgd-dies", "SGD does: the signal dies at its chosen step size.", mean_interval(rates["SGD"]),
              below(-1e-3), f"growth of log q per step; exponent {at_best['SGD']:.4f}"),
        claim("sign-walk", "Under sign SGD a spurious direction with strengths of both signs walks at random; its "
              "share is eta^2 T times the square of a normal number.", median(walk), (0.8, 1.25),
              "median over 0.455 eta^2 T", settings=f"{plane}, eta={SIGN_STEP}, M={STRONG}, T={2 * STEPS}, {walk.size} "
              "runs"),
        *(
            claim(f"adam-ratio-{strength:g}", "Under Adam spurious and invariant signals grow in the ratio s / "
                  "sqrt(s^2 + M^2).",
                  median(data["ratio"].sel(adam_heterogeneity=strength) * np.hypot(BIAS, strength) / BIAS),
                  (0.8, 1.25), "median of q / r over that ratio", settings=f"{plane}, eta={ADAM_STEP}, M={strength:g}, "
                  f"T={ADAM_STEPS}")
            for strength in ADAM_HETEROGENEITY
        ),
    ]  # fmt: skip
