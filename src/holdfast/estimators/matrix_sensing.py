"""Invariant matrices from measurements of them, and networks with quadratic activation, on tables.

The response is <X, A* + A(e)> for a measurement matrix X, and features of the table are the entries of X. Steps are
those of `holdfast.algorithms.factored` with gradients amplified as on tables. No coordinates are given: heterogeneity
picks the directions itself, and the span of the leading eigenvectors of P = U U^T - V V^T survives. Within it the
matrix is fitted by pooled least squares, and the effects are compared between environments by the same test as those of
features.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from holdfast.algorithms.factored import Factors, factored
from holdfast.algorithms.losses import squared
from holdfast.algorithms.losses.slopes import amplify
from holdfast.algorithms.losses.squared import SecondMoments
from holdfast.core.linear_algebra import (
    pack_symmetric,
    symmetric_dimension,
    symmetric_size,
    symmetrised,
    unpack_symmetric,
)
from holdfast.core.moments import StandardizedMoments, collect_moments, standard_units, standardized
from holdfast.core.run import Run, run
from holdfast.core.statistics import random_effects
from holdfast.core.validation import Count
from holdfast.estimators.advice import advise_matrix
from holdfast.estimators.array_rows import ArrayRows, array_rows
from holdfast.estimators.contract import Significance, Tolerance, check_settings
from holdfast.estimators.description import rotated
from holdfast.estimators.pooling import LinearModel
from holdfast.estimators.search.evidence import (
    Evidence,
    SquaredEvidence,
    equality,
    explained_share,
    information_criterion,
)
from holdfast.theory.lyapunov import effect_exponents, washing_strength

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
    """The numbers that decide what is washed out: eta and k of `holdfast.algorithms.losses.slopes`; arrays of runs."""

    step_size: Any
    amplification: Any


@dataclass(kw_only=True, eq=False, repr=False)
class _MatrixRegressor(RegressorMixin, BaseEstimator):
    """What both estimators share; a subclass provides `fit` and `predict`."""

    significance: Significance = 0.001
    tolerance: Tolerance = 0.0
    n_runs: Count = 8
    random_state: Any = 0

    def _fit_packed(self, packed: np.ndarray, rows: ArrayRows) -> tuple[np.ndarray, float]:
        """The matrix and the intercept for packed measurements."""
        try:
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        except ValueError as error:
            allowed = "None, a whole number from 0 to 2**32 - 1 or a RandomState"
            raise ValueError(f"random_state must be {allowed}, got {self.random_state!r}") from error
        known = standardized(collect_moments(packed, rows.y, rows.grouping, rows.weights))
        even, scale = _evenly_scaled(known)
        candidates = _candidates(even)
        runs = _wash(even, candidates, SCAN_RUNS, seed)
        span, fitted = self._best_span(even, np.concatenate(runs))
        found = _lifted(span, fitted)
        # of all candidates, the one whose runs themselves end nearest to this matrix
        nearest = candidates[int(np.argmin([np.mean(np.square(finals - found)) for finals in runs]))]
        self.step_size_, self.amplification_ = nearest
        self.environments_ = list(rows.grouping.labels)
        self._describe(even, span, found, _wash(even, [nearest], self.n_runs, seed + 1)[0])
        matrix = found * float(known.scale[-1]) / scale
        return matrix, float(known.location[-1] - known.location[:-1] @ pack_symmetric(matrix))

    def _best_span(self, known: StandardizedMoments, washed: np.ndarray) -> tuple[np.ndarray, LinearModel]:
        """The leading directions of a washed matrix, with their fit, whose effects are equal and that predict best."""
        dimension = symmetric_dimension(known.cross.shape[1])
        passed: list[tuple[float, np.ndarray, LinearModel]] = []
        for matrix in washed:
            values, vectors = np.linalg.eigh(matrix)
            order = np.argsort(-np.abs(values))
            for rank in range(min(LARGEST_RANK, dimension, int((np.abs(values) > SURVIVED).sum())) + 1):
                span = vectors[:, order[:rank]]
                evidence, fitted = _within(known, span, self.tolerance)
                test = equality(evidence, fitted, np.arange(evidence.dimension))
                if test.significance >= self.significance and 2 * evidence.dimension <= known.counts.sum():
                    freedom = rank * (rank + 1) / 2 + rank * (dimension - rank)
                    passed.append((information_criterion(evidence, fitted, freedom), span, fitted))
        return min(passed, key=lambda entry: entry[0])[1:]  # rank 0 passes every test

    def _describe(self, known: StandardizedMoments, span: np.ndarray, matrix: np.ndarray, finals: np.ndarray) -> None:
        """Directions, their effects and their stability; `finals` is where runs with the chosen settings ended."""
        dimension, rank = span.shape
        weights = known.weights
        slopes = squared.gradient(known.moments, pack_symmetric(matrix))
        differences = unpack_symmetric(slopes - weights @ slopes)
        # outside of the selected span, the directions in which environments differ most
        outside = np.eye(dimension) - span @ span.T
        variation = outside @ np.einsum("e,eij,ekj->ik", weights, differences, differences) @ outside
        complement = np.linalg.eigh(variation + 1e-9 * outside)[1][:, ::-1][:, : dimension - rank]
        inside = span @ np.linalg.eigh(span.T @ matrix @ span)[1] if rank else span
        directions = np.column_stack([inside, complement])
        evidence = SquaredEvidence(
            rotated(known, pack_symmetric(np.einsum("ik,jk->kij", directions, directions)).T), self.tolerance
        )
        values = LinearModel(np.einsum("ik,ij,jk->k", directions, matrix, directions), 0.0)
        # the gradients along the directions belong to the whole matrix, not to its diagonal in their basis
        single = evidence.slopes(values)._replace(
            gradient=np.einsum("ik,eij,jk->ek", directions, unpack_symmetric(slopes), directions)
        )
        amplified = amplify(single.gradient, weights @ single.gradient, self.amplification_)
        exponents = effect_exponents(self.step_size_, amplified)
        sizes = np.abs(np.einsum("ik,rij,jk->rk", directions, finals, directions))
        curvature = np.where(single.curvature > 0, single.curvature, np.nan)
        own = values.coefficients - single.gradient / curvature
        spread = np.nan_to_num(random_effects(own, np.sqrt(single.variance) / curvature).between)
        index, names = (
            pd.Index(self.environments_, name="environment"),
            [f"direction {number + 1}" for number in range(dimension)],
        )
        self.effects_ = pd.DataFrame(own, index=index, columns=names)
        low, high = self.effects_.min(), self.effects_.max()
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
        self.stability_ = pd.DataFrame(columns, index=pd.Index(names, name="direction"))
        every, entries = SquaredEvidence(known, self.tolerance), np.arange(known.cross.shape[1])
        pooled = every.solve(entries)
        self.directions_, self.invariant_ = directions, np.arange(dimension) < rank
        self.advice_ = advise_matrix(
            self.invariant_,
            equality(every, pooled, entries).significance,
            len(self.environments_),
            explained_share(every, LinearModel(pack_symmetric(matrix), 0.0)),
            explained_share(every, pooled),
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()  # the way scikit-learn asks for it
        # Many tables have no matrix in their columns, or no quadratic part in the response.
        tags.regressor_tags.poor_score = True
        return tags


class HeteroMatrixSensing(_MatrixRegressor):
    """The part of a low-rank matrix that all environments share, from measurements of it.

        y = <X, A* + A(e)> + noise,    fitted: P = U U^T - V V^T

    by HeteroSGD (Xu, Gu and Fang, NeurIPS 2024, Algorithm 3) on the table with amplified heterogeneity, as
    this module explains; the surviving directions get the matrix of pooled least squares.

    Args:
        significance: level of the test whether effects vary. Smaller values select more directions.
        tolerance: standard deviation of an effect over environments, as a share of it, that is too small to matter.
        n_runs: runs of the dynamics, each with its own random order of the environments, reported in `stability_`.
        random_state: of the runs.

    Attributes:
        matrix_: (dimension, dimension), P, symmetric.
        coef_: its entries, in the order of the columns of X.
        intercept_: a number.
        directions_: (dimension, dimension), orthonormal columns, the selected ones first.
        invariant_: (dimension,), which of them survive.
        stability_, effects_: tables of directions, as for features in `HeteroRegressor`.
        amplification_, step_size_: the choice.
        advice_: sentences.

    Example:
        >>> random = np.random.default_rng(0)
        >>> X, environments = random.standard_normal((4000, 3, 3)), np.repeat([0, 1], 2000)
        >>> strength = np.where(environments == 0, 2.0, -1.0)
        >>> y = X[:, 0, 0] + strength * X[:, 1, 1] + 0.1 * random.standard_normal(4000)
        >>> model = HeteroMatrixSensing(n_runs=2).fit(X, y, environments=environments)
        >>> np.abs(model.matrix_.round(1)).tolist()
        [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """

    def fit(self, X: Any, y: Any, *, environments: Any = None, sample_weight: Any = None) -> "HeteroMatrixSensing":
        """Fit to measurements.

        Args:
            X: (rows, dimension, dimension), or (rows, columns) with the entries of a matrix in each row, row by row;
                if their number is not a square, the last entries of the matrix are zero.
            y: (rows,).
            environments: one label for each row, of any kind; None: one environment.
            sample_weight: how many rows each row stands for.
        """
        check_settings(self)
        rows = array_rows(self, _flat(X), y, environments, sample_weight)
        features = rows.x.shape[1]
        self.dimension_ = int(np.ceil(np.sqrt(features)))
        filled = np.zeros((len(rows.x), self.dimension_, self.dimension_))
        filled.reshape(len(filled), -1)[:, :features] = rows.x
        self.matrix_, self.intercept_ = self._fit_packed(pack_symmetric(symmetrised(filled)), rows)
        self.coef_ = self.matrix_.ravel()[:features]
        return self

    def predict(self, X: Any) -> np.ndarray:
        """(rows,), the predicted responses."""
        check_is_fitted(self)
        X = validate_data(self, _flat(X), reset=False, dtype=np.float64)
        return X @ self.coef_ + self.intercept_


class HeteroQuadraticRegressor(_MatrixRegressor):
    """A network with quadratic activation whose neurons hold in all environments.

        y = sum_j s_j (a_j^T z)^2 + b = <z z^T, P> + b,    P = sum_j s_j a_j a_j^T

    on standardised features z: matrix sensing with measurements z z^T. The gradient of such measurements contains the
    trace of the residual, which Algorithm 4 of Xu, Gu and Fang (NeurIPS 2024) removes by a shrinkage; with a fixed
    table the intercept removes it: it centres z z^T and y, and what is left of the gradient is 2 (P - A) for normal
    features.

    Args:
        significance, tolerance, n_runs, random_state: as in `HeteroMatrixSensing`.

    Attributes:
        matrix_: (features, features), P, for standardised features.
        location_, scale_: means and standard deviations of the features.
        coef_: (features, features), P in the units of the table.
        intercept_: b.
        directions_, invariant_, stability_, effects_, amplification_, step_size_, advice_: as in
            `HeteroMatrixSensing`; the directions are the neurons a_j.

    Example:
        >>> random = np.random.default_rng(0)
        >>> X, environments = random.standard_normal((6000, 3)), np.repeat(["a", "b"], 3000)
        >>> y = X[:, 0] ** 2 + np.where(environments == "a", 2.0, -1.0) * X[:, 1] ** 2
        >>> model = HeteroQuadraticRegressor(n_runs=2).fit(X, y, environments=environments)
        >>> bool(abs(model.matrix_[0, 0] - 1) < 0.1 > abs(model.matrix_[1, 1]))
        True
    """

    def fit(self, X: Any, y: Any, *, environments: Any = None, sample_weight: Any = None) -> "HeteroQuadraticRegressor":
        """Fit to a table.

        Args:
            X: (rows, features).
            y: (rows,).
            environments: one label for each row, of any kind; None: one environment.
            sample_weight: how many rows each row stands for.
        """
        check_settings(self)
        rows = array_rows(self, X, y, environments, sample_weight)
        self.location_, self.scale_, _ = standard_units(rows.x.astype(float), rows.weights)
        self.matrix_, self.intercept_ = self._fit_packed(self._squares(rows.x), rows)
        self.coef_ = self.matrix_ / (self.scale_[:, None] * self.scale_)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """(rows,), the predicted responses."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return self._squares(X) @ pack_symmetric(self.matrix_) + self.intercept_

    def _squares(self, X: np.ndarray) -> np.ndarray:
        z = (X - self.location_) / self.scale_
        return pack_symmetric(z[:, :, None] * z[:, None, :])


def _flat(X: Any) -> Any:
    return X.reshape(len(X), -1) if isinstance(X, np.ndarray) and X.ndim == 3 else X


def _evenly_scaled(known: StandardizedMoments) -> tuple[StandardizedMoments, float]:
    """The moments with one scale for all entries, so that matrices do not change their shape; and that scale."""
    scale = np.where(known.constant, 0.0, known.scale[:-1])
    common = float(np.sqrt(np.mean(scale**2))) or 1.0
    return rotated(known, np.diag(scale / common)), common


def _lifted(span: np.ndarray, fitted: LinearModel) -> np.ndarray:
    """The matrix Q B Q^T."""
    rank = span.shape[1]
    return span @ unpack_symmetric(fitted.coefficients) @ span.T if rank else np.zeros((len(span), len(span)))


def _within(known: StandardizedMoments, span: np.ndarray, tolerance: float) -> tuple[Evidence, LinearModel]:
    """The pooled fit of matrices Q B Q^T with columns Q."""
    rank = span.shape[1]
    basis = unpack_symmetric(np.eye(symmetric_size(rank)))
    evidence = SquaredEvidence(rotated(known, pack_symmetric(span @ basis @ span.T).T), tolerance)
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
