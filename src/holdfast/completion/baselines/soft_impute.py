"""Matrix completion by the nuclear norm: the convex baseline."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pandas as pd

from holdfast.completion.observations import (
    Centred,
    CompletionRegressor,
    Observations,
    best_centring,
    held_out_errors,
)
from holdfast.core.validation import POSITIVE, Count

# The path goes from the smallest penalty that gives 0 down to this share of it.
SMALLEST_SHARE = 0.01
# A singular value is 0 below this share of the largest penalty: shrinkage leaves rounding errors only.
ZERO = 1e-9


@dataclass(kw_only=True, eq=False, repr=False)
class SoftImpute(CompletionRegressor):
    """Least squares with a penalty on the nuclear norm, along a warm-started path of penalties.

        1/2 sum_observed (y_ij - A_ij)^2 + penalty ||A||_*
        A <- S(A + (weight / largest weight) (mean of y - A), penalty / largest weight)

    S takes the second argument off all singular values. With every entry observed once this is the iteration of the
    paper: missing entries are filled with the fit, then singular values are shrunk. An entry observed several times has
    that weight. The penalty is chosen on held-out entries.

    Args:
        penalties: length of the path.
        tolerance: the iteration ends when A changes by this share of its size.
        max_iter: most iterations for one penalty.
        center, folds, random_state: as in `DeepMatrixFactorization`.

    Attributes:
        penalty_: the choice, for standardised values.
        rank_, row_factors_, column_factors_, mean_, row_offsets_, column_offsets_, row_labels_, column_labels_: as in
            `DeepMatrixFactorization`.
        path_: table of penalties and root mean square errors on held-out entries.

    Reference: Mazumder, Hastie and Tibshirani (JMLR 2010), Algorithm 1.

    Example:
        >>> X = np.array([[i, j] for i in range(12) for j in range(12) if (i + 2 * j) % 3 > 0])
        >>> model = SoftImpute().fit(X, (X[:, 0] - 5.5) * (X[:, 1] - 5.5))
        >>> round(float(model.predict([[2, 2]])[0]))  # 12.25
        12
    """

    penalties: Count = 15
    tolerance: Annotated[float, POSITIVE] = 1e-4
    max_iter: Count = 300

    def _completed(self, centres: list[Centred], seed: int) -> tuple[Centred, np.ndarray, np.ndarray]:
        centre, self.path_, best = best_centring(centres, self._held_out_errors)
        penalties = self.path_["penalty"].to_numpy()[: best + 1]
        self.penalty_ = float(penalties[-1])
        *_, fitted = self._path(centre.observations, penalties)
        u, values, v = np.linalg.svd(fitted, full_matrices=False)
        alive = values > ZERO * penalties[0]
        return centre, (u * values)[:, alive], v[alive].T

    def _held_out_errors(self, centre: Centred) -> pd.DataFrame:
        largest = float(np.linalg.norm(centre.observations.counts_and_sums()[1], 2))
        penalties = largest * np.geomspace(1.0, SMALLEST_SHARE, self.penalties)
        predicted = (
            [fitted[fold.held_out.rows, fold.held_out.columns] for fitted in self._path(fold.training, penalties)]
            for fold in centre.folds
        )
        return held_out_errors(centre, pd.DataFrame({"penalty": penalties}), predicted)

    def _path(self, observations: Observations, penalties: np.ndarray) -> Iterator[np.ndarray]:
        fitted = np.zeros(observations.shape)
        for penalty in penalties:
            fitted = soft_impute(observations, penalty, fitted, tolerance=self.tolerance, max_iter=self.max_iter)
            yield fitted


def soft_impute(
    observations: Observations, penalty: float, start: np.ndarray, *, tolerance: float, max_iter: int
) -> np.ndarray:
    """The minimiser for one penalty, from a start, as a matrix of exactly low rank.

    Args:
        observations: what is fitted.
        penalty: on the nuclear norm.
        start: (height, width).
        tolerance: the iteration ends when the matrix changes by this share of its norm.
        max_iter: most iterations.
    """
    counts, sums = observations.counts_and_sums()
    heaviest = max(counts.max(), 1.0)
    fitted = start
    for _ in range(max_iter):
        before = fitted
        fitted = _shrunk(before + (sums - counts * before) / heaviest, penalty / heaviest)
        if np.linalg.norm(fitted - before) <= tolerance * max(float(np.linalg.norm(before)), 1e-12):
            break
    return fitted


def _shrunk(matrix: np.ndarray, amount: float) -> np.ndarray:
    """`amount` taken off all singular values, by eigenvectors of the smaller Gram matrix: Z V (1 - amount / s)+ V^T.

    Four times faster than a singular value decomposition, and as exact: only values above `amount` are used.
    """
    if matrix.shape[0] < matrix.shape[1]:
        return _shrunk(matrix.T, amount).T
    squares, v = np.linalg.eigh(matrix.T @ matrix)
    large = squares > amount**2
    return matrix @ (v[:, large] * (1 - amount / np.sqrt(squares[large]))) @ v[:, large].T
