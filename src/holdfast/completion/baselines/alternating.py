"""Matrix completion by alternating least squares: the baseline with a rank of its own."""

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

# Penalties on the factors of standardised values: next to none, and two with which weak factors shrink.
PENALTIES = (0.01, 0.3, 3.0)


@dataclass(kw_only=True, eq=False, repr=False)
class AlternatingLeastSquares(CompletionRegressor):
    """Factors of a given rank by alternating ridge regressions, the rank and the ridge chosen on held-out entries.

        sum_observed (y_ij - u_i^T v_j)^2 + penalty (||U||^2 + ||V||^2)

    All u_i are the solution for fixed V, then all v_j for fixed U, so the objective never rises. The start are the
    leading singular vectors of the observed values, 0 elsewhere.

    Args:
        max_rank: ranks from 0 to this are tried.
        tolerance: sweeps end when the objective falls by less than this share.
        max_iter: most sweeps for one rank and penalty.
        center, folds, random_state: as in `DeepMatrixFactorization`.

    Attributes:
        penalty_: the choice.
        rank_, row_factors_, column_factors_, mean_, row_offsets_, column_offsets_, row_labels_, column_labels_: as in
            `DeepMatrixFactorization`.
        path_: table of ranks, penalties and root mean square errors on held-out entries.

    Reference: Koren, Bell and Volinsky (Computer 2009), the section on alternating least squares.

    Example:
        >>> X = np.array([[i, j] for i in range(12) for j in range(12) if (i + 2 * j) % 3 > 0])
        >>> model = AlternatingLeastSquares(max_rank=3).fit(X, (X[:, 0] - 5.5) * (X[:, 1] - 5.5))
        >>> round(float(model.predict([[2, 2]])[0]), 1)  # 12.25
        12.2
    """

    max_rank: Count = 8
    tolerance: Annotated[float, POSITIVE] = 1e-5
    max_iter: Count = 100

    def _completed(self, centres: list[Centred], seed: int) -> tuple[Centred, np.ndarray, np.ndarray]:
        centre, self.path_, best = best_centring(centres, self._held_out_errors)
        self.penalty_ = float(self.path_["penalty"][best])
        return centre, *self._factors(centre.observations, int(self.path_["rank"][best]), self.penalty_)

    def _held_out_errors(self, centre: Centred) -> pd.DataFrame:
        largest = min(self.max_rank, *centre.observations.shape) if centre.folds else 0
        grid = [(rank, penalty) for rank in range(largest + 1) for penalty in (PENALTIES if rank else PENALTIES[:1])]
        predicted = (
            [fold.held_out.products(*self._factors(fold.training, *setting)) for setting in grid]
            for fold in centre.folds
        )
        return held_out_errors(centre, pd.DataFrame(grid, columns=["rank", "penalty"]), predicted)

    def _factors(self, observations: Observations, rank: int, penalty: float) -> tuple[np.ndarray, np.ndarray]:
        before = np.inf
        for sweep, (left, right, objective) in enumerate(alternate(observations, rank, penalty), 1):
            if sweep >= self.max_iter or before - objective <= self.tolerance * objective:
                return left, right
            before = objective
        raise AssertionError("the sweeps never end")


def alternate(observations: Observations, rank: int, penalty: float) -> Iterator[tuple[np.ndarray, np.ndarray, float]]:
    """Sweep after sweep: the factors, (height, rank) and (width, rank), and the objective. Never ends.

    Args:
        observations: what is fitted.
        rank: of the factors.
        penalty: on their squared norms.
    """
    counts, sums = observations.counts_and_sums()
    share = np.count_nonzero(counts) / counts.size
    _, values, v = np.linalg.svd(sums / np.maximum(counts, 1) / share, full_matrices=False)
    right = v[:rank].T * np.sqrt(values[:rank])
    while True:
        left = _ridge_regressions(counts, sums, right, penalty)
        right = _ridge_regressions(counts.T, sums.T, left, penalty)
        residual = observations.values - observations.products(left, right)
        yield left, right, float(residual @ residual + penalty * (np.square(left).sum() + np.square(right).sum()))


def _ridge_regressions(counts: np.ndarray, sums: np.ndarray, factors: np.ndarray, penalty: float) -> np.ndarray:
    """One for each row, on the factors of the columns in which it was observed."""
    rank = factors.shape[1]
    products = (factors[:, :, None] * factors[:, None, :]).reshape(len(factors), rank * rank)
    curvature = (counts @ products).reshape(len(counts), rank, rank) + penalty * np.eye(rank)
    return np.linalg.solve(curvature, (sums @ factors)[..., None])[..., 0]
