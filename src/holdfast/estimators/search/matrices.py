"""Invariant matrices from a table of measurement matrices: the washing-out for P = U U^T - V V^T.

The response is <X, A* + A(e)> for a measurement matrix X, and features of the table are the entries of X. Steps are
those of `holdfast.algorithms.factored` with gradients amplified as on tables. No coordinates are given: heterogeneity
picks the directions itself, and the span of the leading eigenvectors of P survives. Within it the matrix is fitted by
pooled least squares, and the effects are compared between environments by the same test as those of features.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax.typing import ArrayLike

from holdfast.algorithms.amplification import amplify
from holdfast.algorithms.factored import Factors, factored
from holdfast.algorithms.losses import squared
from holdfast.algorithms.losses.squared import SecondMoments
from holdfast.core.linear_algebra import pack_symmetric, symmetric_dimension, symmetric_size, unpack_symmetric
from holdfast.core.meta_analysis import random_effects
from holdfast.core.moments import StandardizedMoments
from holdfast.core.run import Run, run
from holdfast.core.validation import Count
from holdfast.estimators.advice import advise_matrix
from holdfast.estimators.contract import Significance, Tolerance
from holdfast.estimators.pooling import LinearModel
from holdfast.estimators.search.coordinates import rotated
from holdfast.estimators.search.evidence import (
    Evidence,
    equality,
    explained_share,
    information_criterion,
    squared_evidence,
)
from holdfast.theory.effects import effect_exponents, washing_strength

# The start is small, so that what does not grow counts for nothing, but not so small that growing takes most of a run.
INIT_SCALE = 0.03
# A direction survived if it ended at ten times the square of its start, 0.9 % of a standard deviation.
SURVIVED = 10 * INIT_SCALE**2
LARGEST_STEP = 0.05
# The largest change of a factor in a step: beyond it log(1 - x) is no longer near -x - x^2/2 and factors hit the clip.
LARGEST_CHANGE = 0.7
STEPS, RECORDS = 1500, 40
STRENGTHS, SCAN_RUNS = 5, 2
SLAB = 2  # runs in a compiled program; whole slabs are run, so that any number of runs is the same program
# Ranks beyond this are not low, and their number of entries grows with the square.
LARGEST_RANK = 8


class WashSettings(NamedTuple):
    """The numbers that decide what is washed out: eta and k of `holdfast.algorithms.amplification`; arrays of runs."""

    step_size: Any
    amplification: Any


class MatrixFit(NamedTuple):
    """An invariant matrix and how it was found.

    Attributes:
        matrix: (dimension, dimension), P, for standardised response.
        directions: (dimension, dimension), orthonormal columns: the selected ones first, then those that vary most.
        selected: (dimension,), which of them survive.
        settings: the step size and the amplification.
        effects: table of environments x directions.
        stability: table of directions.
        advice: sentences.
    """

    matrix: np.ndarray
    directions: np.ndarray
    selected: np.ndarray
    settings: WashSettings
    effects: pd.DataFrame
    stability: pd.DataFrame
    advice: list[str]


def evenly_scaled(known: StandardizedMoments) -> tuple[StandardizedMoments, float]:
    """The moments with one scale for all entries, so that matrices do not change their shape; and that scale."""
    scale = np.where(known.constant, 0.0, known.scale[:-1])
    common = float(np.sqrt(np.mean(scale**2))) or 1.0
    return rotated(known, np.diag(scale / common)), common


@dataclass(kw_only=True, eq=False, repr=False)
class MatrixSettings:
    """How invariant directions are searched for; `HeteroMatrixSensing` explains the fields."""

    significance: Significance = 0.001
    tolerance: Tolerance = 0.0
    n_runs: Count = 8
    random_state: Any = 0


def fit_matrix(known: StandardizedMoments, labels: Sequence, settings: MatrixSettings, seed: int) -> MatrixFit:
    """Wash out the part of a matrix that varies.

    Args:
        known: moments of packed measurements, evenly scaled.
        labels: of the environments.
        settings: of the search.
        seed: of the runs.
    """
    candidates, dimension = _candidates(known), symmetric_dimension(known.cross.shape[1])
    runs = _wash(known, candidates, SCAN_RUNS, seed)
    passed: list[tuple[float, np.ndarray, LinearModel]] = []
    for matrix in np.concatenate(runs):
        values, vectors = np.linalg.eigh(matrix)
        order = np.argsort(-np.abs(values))
        for rank in range(min(LARGEST_RANK, dimension, int((np.abs(values) > SURVIVED).sum())) + 1):
            span = vectors[:, order[:rank]]
            evidence, fitted = _within(known, span, settings.tolerance)
            test = equality(evidence, fitted, np.arange(evidence.dimension))
            if test.significance >= settings.significance and 2 * evidence.dimension <= known.counts.sum():
                freedom = rank * (rank + 1) / 2 + rank * (dimension - rank)
                passed.append((information_criterion(evidence, fitted, freedom), span, fitted))
    _, span, fitted = min(passed, key=lambda entry: entry[0])  # rank 0 passes every test
    # of all candidates, the one whose runs themselves end nearest to this matrix
    matrix = _lifted(span, fitted)
    nearest = candidates[int(np.argmin([np.mean(np.square(finals - matrix)) for finals in runs]))]
    finals = _wash(known, [nearest], settings.n_runs, seed + 1)[0]
    return _described(known, labels, nearest, span, fitted, finals, settings.tolerance)


def _lifted(span: np.ndarray, fitted: LinearModel) -> np.ndarray:
    """The matrix Q B Q^T."""
    rank = span.shape[1]
    return span @ unpack_symmetric(fitted.coefficients) @ span.T if rank else np.zeros((len(span), len(span)))


def _within(known: StandardizedMoments, span: np.ndarray, tolerance: float) -> tuple[Evidence, LinearModel]:
    """The pooled fit of matrices Q B Q^T with columns Q."""
    rank = span.shape[1]
    basis = unpack_symmetric(np.eye(symmetric_size(rank)))
    evidence = squared_evidence(rotated(known, pack_symmetric(span @ basis @ span.T).T), tolerance)
    return evidence, evidence.solve(np.arange(evidence.dimension))


def _candidates(known: StandardizedMoments) -> list[WashSettings]:
    """Step sizes and amplifications, from the strengths at which directions of the pooled gradient would die."""
    gradients, weights = unpack_symmetric(-known.cross), known.weights
    mean = np.tensordot(weights, gradients, 1)
    differences = gradients - mean
    largest = float(np.abs(np.linalg.eigvalsh(differences)).max())
    if len(weights) == 1 or largest == 0:
        return [WashSettings(LARGEST_STEP, 0.0)]
    _, vectors = np.linalg.eigh(mean)
    along = np.einsum("ij,eik,kj->ej", vectors, differences, vectors)
    strengths = washing_strength(np.einsum("ij,ik,kj->j", vectors, mean, vectors), weights @ along**2)
    strengths = strengths[np.isfinite(strengths) & (strengths > 0)]
    low = max(float(strengths.min()) / 4, 0.1) if len(strengths) else 0.1
    candidates = []
    for strength in np.geomspace(low, 300 * low, STRENGTHS):
        eta = min(LARGEST_STEP, LARGEST_CHANGE**2 / (strength * largest**2))
        candidates.append(WashSettings(float(eta), float(max(np.sqrt(strength / eta) - 1, 0.0))))
    return candidates


def _wash(known: StandardizedMoments, candidates: list[WashSettings], n_runs: int, seed: int) -> list[np.ndarray]:
    """For each candidate (n_runs, dimension, dimension): where P ends up."""
    shared = SecondMoments(*(part.astype(np.float32) for part in known.moments)), known.weights.astype(np.float32)
    count = len(candidates) * n_runs
    rows = np.minimum(np.arange(-(-count // SLAB) * SLAB), count - 1) // n_runs
    parameters = WashSettings(*np.array(candidates, np.float32)[rows].T)
    seeds = np.random.default_rng(seed).integers(0, 2**32, len(rows), dtype=np.uint32)
    records = run(_matrix_run, shared, parameters, seeds, steps=STEPS, every=STEPS // RECORDS, slab=SLAB)
    # where runs end: medians over the last quarter of the records
    ends = np.median(records.values["fitted"][:count, -RECORDS // 4 :].astype(float), axis=1)
    return np.split(ends, len(candidates))


def _matrix_run(shared: tuple[SecondMoments, np.ndarray], parameters: WashSettings) -> Run:
    data, weights = jax.tree.map(jnp.asarray, shared)
    eta, k = parameters

    def gradient(key: jax.Array, fitted: jax.Array, step: ArrayLike) -> jax.Array:
        slopes = squared.gradient(data, pack_symmetric(fitted))
        chosen = jax.random.choice(key, len(weights), p=weights)
        amplified = unpack_symmetric(amplify(slopes[chosen], weights @ slopes, k))
        # one step may at most remove a direction
        return amplified * jnp.minimum(1.0, 1 / (eta * jnp.linalg.norm(amplified) + 1e-12))

    algorithm = factored(
        gradient, symmetric_dimension(data.cross.shape[1]), eta, INIT_SCALE, signed=True, dtype=data.cross.dtype
    )
    return Run(algorithm, _observe)


def _observe(state: Factors) -> dict[str, jax.Array]:
    return {"fitted": state.fitted}


def _described(
    known: StandardizedMoments,
    labels: Sequence,
    settings: WashSettings,
    span: np.ndarray,
    fitted: LinearModel,
    finals: np.ndarray,
    tolerance: float,
) -> MatrixFit:
    """The fit with its directions, their effects and their stability; `finals` is where runs at `settings` ended."""
    dimension, rank = span.shape
    weights = known.weights
    matrix = _lifted(span, fitted)
    slopes = squared.gradient(known.moments, pack_symmetric(matrix))
    differences = unpack_symmetric(slopes - weights @ slopes)
    # outside of the selected span, the directions in which environments differ most
    outside = np.eye(dimension) - span @ span.T
    variation = outside @ np.einsum("e,eij,ekj->ik", weights, differences, differences) @ outside
    complement = np.linalg.eigh(variation + 1e-9 * outside)[1][:, ::-1][:, : dimension - rank]
    inside = span @ np.linalg.eigh(span.T @ matrix @ span)[1] if rank else span
    directions = np.column_stack([inside, complement])
    evidence = squared_evidence(
        rotated(known, pack_symmetric(np.einsum("ik,jk->kij", directions, directions)).T), tolerance
    )
    values = LinearModel(np.einsum("ik,ij,jk->k", directions, matrix, directions), 0.0)
    # the gradients along the directions belong to the whole matrix, not to its diagonal in their basis
    single = evidence.slopes(values)._replace(
        gradient=np.einsum("ik,eij,jk->ek", directions, unpack_symmetric(slopes), directions)
    )
    amplified = amplify(single.gradient, weights @ single.gradient, settings.amplification)
    exponents = effect_exponents(settings.step_size, amplified)
    sizes = np.abs(np.einsum("ik,rij,jk->rk", directions, finals, directions))
    curvature = np.where(single.curvature > 0, single.curvature, np.nan)
    own = values.coefficients - single.gradient / curvature
    spread = np.nan_to_num(random_effects(own, np.sqrt(single.variance) / curvature).between)
    index, names = pd.Index(labels, name="environment"), [f"direction {number + 1}" for number in range(dimension)]
    effects = pd.DataFrame(own, index=index, columns=names)
    low, high = effects.min(), effects.max()
    columns = {
        "coefficient": values.coefficients,
        "exponent": np.where(values.coefficients < 0, exponents[1], exponents[0]),
        "lowest_effect": low,
        "highest_effect": high,
        "effect_range": high - low,
        "spread": spread,
        "varies": spread > 0,
        "survived": (sizes > SURVIVED).mean(0),
    }
    stability = pd.DataFrame(columns, index=pd.Index(names, name="direction"))
    every, entries = squared_evidence(known, tolerance), np.arange(known.cross.shape[1])
    pooled = every.solve(entries)
    selected = np.arange(dimension) < rank
    advice = advise_matrix(
        selected,
        equality(every, pooled, entries).significance,
        len(labels),
        explained_share(every, LinearModel(pack_symmetric(matrix), 0.0)),
        explained_share(every, pooled),
    )
    return MatrixFit(matrix, directions, selected, settings, effects, stability, advice)
