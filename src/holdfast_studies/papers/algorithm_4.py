"""Algorithm 4 and Theorem 7 of Xu, Gu and Fang (NeurIPS 2024): networks with quadratic activation."""

from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import xarray as xr
from jax.typing import ArrayLike

from holdfast.algorithms.factored import (
    Trace,
    estimated_trace,
    known_trace,
    no_shrinkage,
    operator_norm,
    sampled,
    shrinkage,
)
from holdfast.core.linear_algebra import orthonormal_frame
from holdfast.core.run import Run, run
from holdfast.core.statistics import Estimate, median
from holdfast.sensing import batching
from holdfast.sensing.environments import two_point
from holdfast.sensing.oracles.quadratic import RankOneGradient, rank_one
from holdfast.sensing.problem import MatrixSensing, quadratic_network, random_neurons
from holdfast.sensing.signals import signals
from holdfast_studies.kit.drawing import COLOURS, Figure, band, legend_below, new_figure, quantile_table
from holdfast_studies.kit.runs import Effort, Progress, stages
from holdfast_studies.kit.study import Claim, ClaimBuilder, Conditions, Position, above, below, share, study

LEFT_OPEN = (
    "Algorithm 4 as printed takes tau to be the operator norm of A* + A(e); only its trace cancels the trace term of "
    "the gradient, so we use the trace, known or estimated by the mean of y. The operator norm is tested too, with "
    "and without the factor 4 of the literal gradient.",
    "Our gradient is (1/m) sum (yhat - y) x x^T U, without that factor; the step on the signal is then 2 eta. With the "
    "factor eta is a quarter, which makes the same step.",
    "No settings are given; ours: d=30, r1=r2=2, m=20000, eta=0.04, s=0.5, M=4, alpha=1e-2, T=160, truncation at R=20 "
    "or none. Theorem 7 promises 0.99, which 64 runs cannot tell from less: they can confirm nine in ten.",
    "Settings were looked for on seeds from 0 on; what works, and the operator norm with the factor 4, which was "
    "undecided with 12 runs, have 64 seeds from 1,000 on. The variants that fail have 12.",
    "Neurons are orthonormal, or one draw from N(0, I/d) as in Theorem 7.",
)
# Runs of the variants that fail, of which a few are enough.
FEW = 12
# The seeds of the others: settings were looked for on those from 0 on.
ASIDE = 1000
DIMENSION, RANK, BATCH_SIZE, STEP_SIZE, BIAS, HETEROGENEITY = 30, 2, 20_000, 0.04, 0.5, 4.0
INIT_SCALE, STEPS, EVERY = 1e-2, 160, 10
LITERAL, RADIUS = 4.0, 20.0
# Samples are drawn one by one: a quick look has an eighth of them.
QUICK_PART = 8
# What counts as learned and as not learned.
LEARNED, WASHED_OUT = 0.9, 0.02
FACTOR_4 = "operator norm, factor 4"
TRACES = (known_trace, estimated_trace, no_shrinkage, operator_norm)


class Variant(NamedTuple):
    """One way to run Algorithm 4."""

    batches: Callable = batching.hetero
    trace: Trace = known_trace
    factor: float = 1.0
    truncation: float = np.inf
    random: bool = False
    fails: bool = False

    def seeds(self, effort: Effort) -> np.ndarray:
        """Of its runs."""
        return np.arange(min(effort.seeds, FEW)) if self.fails else np.arange(ASIDE, ASIDE + effort.seeds)


VARIANTS = {
    "HeteroSGD, known trace": Variant(),
    "HeteroSGD, estimated trace": Variant(trace=estimated_trace),
    "random neurons, truncated": Variant(truncation=RADIUS, random=True),
    "pooled batches": Variant(batches=batching.pooled, trace=estimated_trace, fails=True),
    "no shrinkage": Variant(trace=no_shrinkage, fails=True),
    "operator norm": Variant(trace=operator_norm, fails=True),
    FACTOR_4: Variant(trace=operator_norm, factor=LITERAL),
    "as printed": Variant(trace=operator_norm, factor=LITERAL, truncation=RADIUS, random=True, fails=True),
}


def _build(problem: MatrixSensing, parameters: dict, batches: Callable, batch_size: int) -> Run:
    oracle = rank_one(problem, batch_size, parameters["truncation"])
    seen = sampled(batches(problem.environments, batch_size), oracle)

    def gradient(key: jax.Array, fitted: jax.Array, step: ArrayLike) -> RankOneGradient:
        found = seen(key, fitted, step)
        return found._replace(gradient=parameters["factor"] * found.gradient)

    # The way to find tau is a number, so that one compiled program serves all of them.
    trace = partial(jax.lax.switch, parameters["trace"], TRACES)
    algorithm = shrinkage(gradient, DIMENSION, parameters["step_size"], parameters["init_scale"], trace, "float32")
    return Run(algorithm, lambda state: signals(problem, state))


def _problem(random: bool) -> MatrixSensing:
    frame = random_neurons(DIMENSION, 2 * RANK) if random else orthonormal_frame(DIMENSION, 2 * RANK)
    neurons = frame.astype(np.float32)
    return quadratic_network(neurons[:, :RANK], neurons[:, RANK:], two_point(BIAS, HETEROGENEITY, rank=RANK))


@cache
def _builder(batches: Callable, batch_size: int) -> Callable[..., Run]:
    """One object for the variants that share batches: it identifies the compiled program."""
    return partial(_build, batches=batches, batch_size=batch_size)


def simulate(effort: Effort, progress: Progress | None = None) -> xr.Dataset:
    """All variants."""
    parts, batch_size = [], effort.steps(BATCH_SIZE, part=QUICK_PART)
    reports = stages(progress, [len(variant.seeds(effort)) for variant in VARIANTS.values()])
    for variant, report in zip(VARIANTS.values(), reports, strict=True):
        problem, seeds = _problem(variant.random), variant.seeds(effort)
        numbers = {
            "step_size": STEP_SIZE / variant.factor,
            "init_scale": INIT_SCALE,
            "factor": variant.factor,
            "truncation": variant.truncation,
        }
        parameters = {name: np.full(len(seeds), number, np.float32) for name, number in numbers.items()}
        parameters["trace"] = np.full(len(seeds), TRACES.index(variant.trace), np.int32)
        build = _builder(variant.batches, batch_size)
        records = run(build, problem, parameters, seeds, steps=STEPS, every=EVERY, slab=1, progress=report)
        size = float(jnp.linalg.norm(problem.invariant_matrix))
        variables = {signal: records.values[signal] for signal in ("invariant", "spurious", "residual")}
        variables["relative_distance"] = records.values["distance"] / size
        parts.append(xr.Dataset(
            {name: (("seed", "step"), values) for name, values in variables.items()}
            | {"diverged_at": ("seed", records.diverged_at)},
            {"step": records.steps, "seed": np.arange(len(seeds))},
        ))  # fmt: skip
    # Where a variant has fewer runs, the others are NaN.
    found = xr.concat(parts, pd.Index(list(VARIANTS), name="variant"), join="outer")
    return found.assign_attrs(batch_size=batch_size)


def _runs(data: xr.Dataset, variant: str) -> xr.Dataset:
    """All runs of a variant."""
    return data.sel(variant=variant).dropna("seed", subset=["diverged_at"])


def draw(data: xr.Dataset) -> Figure:
    """Invariant and spurious neurons over time: what works on the left, what fails on the right."""
    seeds = f"{data.sizes['seed']} seeds (some of what fails: {FEW})"
    figure, panels = new_figure(2, f"Algorithm 4: medians over {seeds}, bands 10 % to 90 %")
    figure.set_figheight(5.4)  # eight lines of a legend are below each panel
    names = list(VARIANTS)
    titles = ("Trace, batches", "Wrong or no shrinkage")
    for axes, chosen, title in zip(panels, (names[:4], names[4:]), titles, strict=True):
        for name, style in zip(chosen, ("-", "--", "-.", ":"), strict=True):
            runs = _runs(data, name)
            for signal in ("invariant", "spurious"):
                band(axes, runs[signal], "step", f"{signal}, {name}", color=COLOURS[signal], linestyle=style)
        axes.set(xlabel="step", ylabel="weight (1 = learned)", title=title, ylim=(-0.03, 1.5))
        legend_below(axes, 1)
    return figure


def claims(data: xr.Dataset) -> list[Claim]:
    """Theorem 7 with the trace, and the ways in which Algorithm 4 fails."""
    of = {name: _runs(data, name).isel(step=-1) for name in VARIANTS}
    given = f"d=30, r1=r2=2, m={data.attrs['batch_size']}, s=0.5, M=4, alpha=1e-2, T=160, fresh samples (ours)"
    summary = f"orthonormal neurons, eta=0.04, no truncation, {given}"
    conditions = _conditions(
        "the neurons are orthonormal, not N(0, I/d)", "samples are not truncated", "tau is the trace, not the norm"
    )
    known, estimated, random = "HeteroSGD, known trace", "HeteroSGD, estimated trace", "random neurons, truncated"
    sources = {known: "Theorem 7; Algorithm 4", estimated: "Theorem 7; Remark 1"}
    ours = ClaimBuilder("algorithm-4", settings=summary)
    claim = ClaimBuilder("algorithm-4", settings=summary, conditions=conditions)
    cannot = f"median of {data.sizes['seed']} runs, which cannot tell the 0.99 of the theorem from less"

    def learned(name: str, statement: str, variant: str, signal: str, tau: str) -> Claim:
        allowed = above(LEARNED) if signal == "invariant" else below(WASHED_OUT)
        why = f"{cannot}; {tau}"
        return claim(name, statement, median(of[variant][signal]), allowed, why, source=sources[variant])

    printed = {
        "operator-norm": ("operator norm", "With tau the operator norm it works.", "orthonormal neurons, eta=0.04"),
        "operator-norm-factor-4": (FACTOR_4, "With tau the operator norm and the literal gradient it "
                                   "works.", "orthonormal neurons, eta=0.01"),
        "as-printed": ("as printed", "With tau the operator norm, the literal gradient, truncation and N(0, I/d) "
                       "neurons, all as printed, it works.", "N(0, I/d) neurons, eta=0.01, R=20"),
    }  # fmt: skip
    return [
        learned("invariant", "In the median run Algorithm 4 learns the invariant neurons.", known, "invariant",
                "tau = tr(A* + A(e)), known"),
        learned("spurious", "In the median run Algorithm 4 does not learn the spurious neurons.", known, "spurious",
                "tau = tr(A* + A(e)), known"),
        *(learned(f"estimated-{signal}", f"The moment estimate of tau does as well ({signal}).", estimated, signal,
                  "tau = mean of y") for signal in ("invariant", "spurious")),
        *(
            claim(name, f"Nine runs in ten do, {words}: they learn the invariant neurons and not the spurious ones.",
                  share((of[variant]["invariant"] > LEARNED) & (of[variant]["spurious"] < WASHED_OUT)), (0.9, 1.0),
                  f"share of {of[variant].sizes['seed']} runs; the 0.99 of the theorem would take 368",
                  source=sources[variant])
            for name, words, variant in (
                ("probability", "with the trace known", known),
                ("estimated-probability", "with the moment estimate of it", estimated),
            )
        ),
        ours("pooled", "With pooled batches the spurious neurons are learned.",
              median(of["pooled batches"]["spurious"]), above(0.35),
              f"median of {of['pooled batches'].sizes['seed']} runs; E s = 0.5"),
        ClaimBuilder("example-1", "Example 1; Theorem 7", f"N(0, I/d) neurons, eta=0.04, R=20, {given}")(
            "random-neurons", "With neurons from N(0, I/d) and truncation on ||U^T x||^2 Algorithm 4 ends within 50 % "
            "of A*.", median(of[random]["relative_distance"]), below(0.5), f"||P - A*||_F / ||A*||_F, {cannot}; the "
            f"subspaces overlap by {_overlap():.2f}", conditions=_conditions("tau is the trace, not the norm")),
        *(
            ours(name, statement, _works(of[variant]), (0.5, 1.0),
                  f"share of {of[variant].sizes['seed']} runs that learn half the invariant signal, and do not diverge"
                  + ("; too near to one half to tell" if variant == FACTOR_4 else ""),
                  source="Algorithm 4", settings=f"{settings}, {given}",
                  expected=Position.UNDECIDED if variant == FACTOR_4 else Position.OUTSIDE)
            for name, (variant, statement, settings) in printed.items()
        ),
        claim("shrinkage", "The shrinkage is needed.", median(abs(of["no shrinkage"]["invariant"] - 1)), above(0.1),
              "median |invariant - 1| without it: the trace of the residual kicks the signal about",
              source="Algorithm 4"),
    ]  # fmt: skip


def _conditions(*missed: str) -> Conditions:
    """What Theorem 7 asks for and the settings do not have; alpha I is U U^T at the start, so alpha^2 in our words."""
    low, high = float(DIMENSION) ** -4, 1 / DIMENSION
    start = INIT_SCALE**2
    if not low < start < high:
        missed += (f"U U^T = {start:g} I at the start is not between d^-4 = {low:.2g} and d^-1 = {high:.2g}",)
    return Conditions(missed, ("all settings", "the gradient without its factor 4"))


def _works(final: xr.Dataset) -> Estimate:
    """The share of runs that end with at least half of the invariant signal, and not with twice of it."""
    learned = final["invariant"]
    return share((final["diverged_at"] < 0) & (learned > 0.5) & (learned < 2))


def _overlap() -> float:
    problem = _problem(random=True)
    return float(jnp.linalg.norm(problem.invariant_basis.T @ problem.spurious_basis, 2))


EXPERIMENT = study("algorithm_4", __doc__, LEFT_OPEN, simulate, draw, quantile_table, claims, seeds=64, quick_seeds=6)
