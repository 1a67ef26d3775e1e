"""Invariant matrices from a table of measurement matrices: the washing-out for P = U U^T - V V^T.

The response is <X, A* + A(e)> for a measurement matrix X, and features of the table are the entries of X. Steps are
those of `holdfast.algorithms.factored` with gradients amplified as on tables. There are no given coordinates:
heterogeneity picks the directions itself, and what is left alive is the span of the leading eigenvectors of P. Within
it the matrix is fitted by pooled least squares, and the effects are compared between environments by the same test as
those of features.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax.typing import ArrayLike

from holdfast.algorithms import Factors, factored
from holdfast.core.linear_algebra import pack_symmetric, symmetric_size, unpack_symmetric
from holdfast.core.run import Run, run
from holdfast.estimators.dynamics import INIT_SCALE, RECORDS, SURVIVED
from holdfast.estimators.evidence import Equality, Evidence, Fitted, equality, squared_evidence
from holdfast.estimators.linear import effect_spread
from holdfast.estimators.moments import Centred
from holdfast.estimators.rotation import rotated
from holdfast.theory.effects import effect_exponents, washing_strength

STEPS = 1500
STRENGTHS, SCAN_ORDERS = 5, 2
LARGEST_STEP, LARGEST_CHANGE = 0.05, 0.7
SLAB = 2  # whole slabs, so that any number of runs is the same program
# Ranks beyond this are not low, and their number of entries grows with the square.
LARGEST_RANK = 8


class MatrixFit(NamedTuple):
    """An invariant matrix and what is told about it.

    Attributes:
        matrix: (dimension, dimension), P, for standardised response.
        directions: (dimension, dimension), orthonormal columns: the kept ones first, then those that vary most.
        kept: (dimension,), which of them survive.
        step_size, amplification: the choice.
        effects: table of environments x directions.
        stability: table of directions.
        test: of equal effects in the kept span.
        pooled_test: of equal effects of all directions.
        explained, explained_by_all: share of the response.
    """

    matrix: np.ndarray
    directions: np.ndarray
    kept: np.ndarray
    step_size: float
    amplification: float
    effects: pd.DataFrame
    stability: pd.DataFrame
    test: Equality
    pooled_test: Equality
    explained: float
    explained_by_all: float


def evenly_scaled(known: Centred) -> tuple[Centred, float]:
    """Centred moments with one scale for all entries, which keeps the shape of matrices; returns it as well."""
    scale = np.where(known.constant, 0.0, known.scale[:-1])
    common = float(np.sqrt(np.mean(scale**2))) or 1.0
    return rotated(known, np.diag(scale / common)), common


def fit_matrix(
    known: Centred, dimension: int, labels: list, *, significance: float, tolerance: float, orders: int, seed: int
) -> MatrixFit:
    """Wash out the part of a matrix that varies.

    Args:
        known: moments of packed measurements, evenly scaled.
        dimension: d.
        labels: of the environments.
        significance: level of the test of equal effects.
        tolerance: standard deviation of an effect over environments, as a share of it, that is too small to matter.
        orders: random orders of the environments whose runs are reported.
        seed: of the orders.
    """
    weights = known.counts / known.counts.sum()
    cells = _cells(known, weights, dimension)
    runs = _wash(known, weights, dimension, cells, SCAN_ORDERS, seed)
    entries = float(known.counts.sum())
    best: tuple[float, np.ndarray, Fitted] | None = None
    for finals in runs:
        for matrix in finals:
            values, vectors = np.linalg.eigh(matrix)
            order = np.argsort(-np.abs(values))
            for rank in range(min(LARGEST_RANK, dimension, int((np.abs(values) > SURVIVED).sum())) + 1):
                span = vectors[:, order[:rank]]
                evidence, fitted = _within(known, span, tolerance)
                test = equality(evidence, fitted, np.arange(evidence.dimension))
                if test.significance >= significance and 2 * evidence.dimension <= entries:
                    freedom = rank * (rank + 1) / 2 + rank * (dimension - rank)
                    cost = evidence.deviance(fitted) + freedom * np.log(max(entries, 2.0))
                    if best is None or cost < best[0]:
                        best = (cost, span, fitted)
    assert best is not None  # rank 0 passes every test
    _, span, fitted = best
    # of all cells, the one whose runs themselves end nearest to this matrix
    matrix = _lifted(span, fitted)
    cell = cells[int(np.argmin([np.mean(np.square(finals - matrix)) for finals in runs]))]
    return _told(known, weights, dimension, labels, cell, span, fitted, tolerance, orders, seed)


def _lifted(span: np.ndarray, fitted: Fitted) -> np.ndarray:
    """The matrix Q B Q^T."""
    rank = span.shape[1]
    return span @ unpack_symmetric(fitted.coefficients) @ span.T if rank else np.zeros((len(span), len(span)))


def _within(known: Centred, span: np.ndarray, tolerance: float) -> tuple[Evidence, Fitted]:
    """The pooled fit of matrices Q B Q^T with columns Q."""
    rank = span.shape[1]
    basis = unpack_symmetric(np.eye(symmetric_size(rank)))
    evidence = squared_evidence(rotated(known, pack_symmetric(span @ basis @ span.T).T), tolerance)
    return evidence, evidence.solve(np.arange(evidence.dimension))


def _cells(known: Centred, weights: np.ndarray, dimension: int) -> list[tuple[float, float]]:
    """Step sizes and amplifications, from the strengths at which directions of the pooled gradient would die."""
    gradients = unpack_symmetric(-known.cross)
    mean = np.tensordot(weights, gradients, 1)
    differences = gradients - mean
    largest = float(np.abs(np.linalg.eigvalsh(differences)).max())
    if len(weights) == 1 or largest == 0:
        return [(LARGEST_STEP, 0.0)]
    _, vectors = np.linalg.eigh(mean)
    along = np.einsum("ij,eik,kj->ej", vectors, differences, vectors)
    strengths = washing_strength(np.einsum("ij,ik,kj->j", vectors, mean, vectors), weights @ along**2)
    strengths = strengths[np.isfinite(strengths) & (strengths > 0)]
    low = max(float(strengths.min()) / 4, 0.1) if len(strengths) else 0.1
    cells = []
    for strength in np.geomspace(low, 300 * low, STRENGTHS):
        eta = min(LARGEST_STEP, LARGEST_CHANGE**2 / (strength * largest**2))
        cells.append((float(eta), float(max(np.sqrt(strength / eta) - 1, 0.0))))
    return cells


def _wash(
    known: Centred, weights: np.ndarray, dimension: int, cells: list[tuple[float, float]], orders: int, seed: int
) -> list[np.ndarray]:
    """For each cell (orders, dimension, dimension): medians of P over the last quarter of the runs."""
    shared = {
        "second": known.second.astype(np.float32),
        "cross": known.cross.astype(np.float32),
        "weights": weights.astype(np.float32),
        "shape": np.zeros(dimension, np.float32),
    }
    count = len(cells) * orders
    padded = np.minimum(np.arange(-(-count // SLAB) * SLAB), count - 1) // orders
    parameters = {
        name: np.array([cell[place] for cell in cells], np.float32)[padded]
        for place, name in enumerate(("step_size", "amplification"))
    }
    seeds = np.random.default_rng(seed).integers(0, 2**32, len(padded), dtype=np.uint32)
    records = run(_build, shared, parameters, seeds, steps=STEPS, every=STEPS // RECORDS, slab=SLAB)
    finals = np.median(records.values["fitted"][:count, -RECORDS // 4 :], axis=1).astype(float)
    return np.split(finals, len(cells))


def _build(shared: Any, parameters: Any) -> Run:
    second, cross, weights = (jnp.asarray(shared[name]) for name in ("second", "cross", "weights"))
    dimension, environments = len(shared["shape"]), len(weights)
    eta, k = parameters["step_size"], parameters["amplification"]

    def gradient(key: jax.Array, fitted: jax.Array, step: ArrayLike) -> jax.Array:
        slopes = second @ pack_symmetric(fitted) - cross
        mean = weights @ slopes
        chosen = jax.random.choice(key, environments, p=weights)
        amplified = unpack_symmetric(slopes[chosen] + k * (slopes[chosen] - mean))
        # one step may at most remove a direction
        return amplified * jnp.minimum(1.0, 1 / (eta * jnp.linalg.norm(amplified) + 1e-12))

    algorithm = factored(gradient, dimension, eta, INIT_SCALE, signed=True, dtype=cross.dtype)
    return Run(algorithm, _observe)


def _observe(state: Factors) -> dict[str, jax.Array]:
    return {"fitted": state.fitted}


def _told(
    known: Centred,
    weights: np.ndarray,
    dimension: int,
    labels: list,
    cell: tuple[float, float],
    span: np.ndarray,
    fitted: Fitted,
    tolerance: float,
    orders: int,
    seed: int,
) -> MatrixFit:
    rank = span.shape[1]
    matrix = _lifted(span, fitted)
    slopes = known.second @ pack_symmetric(matrix) - known.cross
    differences = unpack_symmetric(slopes - weights @ slopes)
    # outside of the kept span, the directions in which environments differ most
    outside = np.eye(dimension) - span @ span.T
    restless = outside @ np.einsum("e,eij,ekj->ik", weights, differences, differences) @ outside
    complement = np.linalg.eigh(restless + 1e-9 * outside)[1][:, ::-1][:, : dimension - rank]
    inside = span @ np.linalg.eigh(span.T @ matrix @ span)[1] if rank else span
    directions = np.column_stack([inside, complement])
    kept = np.arange(dimension) < rank
    evidence = squared_evidence(
        rotated(known, pack_symmetric(np.einsum("ik,jk->kij", directions, directions)).T), tolerance
    )
    values = Fitted(np.einsum("ik,ij,jk->k", directions, matrix, directions), 0.0)
    single = evidence.slopes(values)
    # the gradients along the directions belong to the whole matrix, not to its diagonal in their basis
    single = single._replace(gradient=np.einsum("ik,eij,jk->ek", directions, unpack_symmetric(slopes), directions))
    eta, k = cell
    mean = weights @ single.gradient
    exponents = effect_exponents(eta, single.gradient + k * (single.gradient - mean))
    finals = _wash(known, weights, dimension, [cell], orders, seed + 1)[0]
    sizes = np.abs(np.einsum("ik,rij,jk->rk", directions, finals, directions))
    names = [f"direction {number + 1}" for number in range(dimension)]
    effects = pd.DataFrame(
        values.coefficients - single.gradient / np.maximum(single.curvature, 1e-300),
        index=pd.Index(labels, name="environment"),
        columns=names,
    )
    low, high = effects.min(), effects.max()
    spread = effect_spread(single)
    stability = pd.DataFrame(
        {
            "coefficient": values.coefficients,
            "exponent": np.where(values.coefficients < 0, exponents[1], exponents[0]),
            "lowest_effect": low,
            "highest_effect": high,
            "effect_range": high - low,
            "spread": spread,
            "varies": spread > 0,
            "survived": (sizes > SURVIVED).mean(0),
        },
        index=pd.Index(names, name="direction"),
    )
    inner, chosen = _within(known, span, tolerance)
    every = squared_evidence(known, tolerance)
    pooled = every.solve(np.arange(every.dimension))
    nothing = every.deviance(Fitted(np.zeros(every.dimension), 0.0))
    rows = known.counts.sum()
    return MatrixFit(
        matrix,
        directions,
        kept,
        eta,
        k,
        effects,
        stability,
        equality(inner, chosen, np.arange(inner.dimension)),
        equality(every, pooled, np.arange(every.dimension)),
        float(-np.expm1((inner.deviance(chosen) - nothing) / rows)),
        float(-np.expm1((every.deviance(pooled) - nothing) / rows)),
    )
