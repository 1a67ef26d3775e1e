"""The mean and an offset for each row and column: what every completion has to beat."""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from holdfast.completion.observations import CompletionRegressor, centrings, finish, read


class TwoWayMeans(CompletionRegressor):
    """A mean, an offset for each row and an offset for each column, shrunk.

        sum_observed (y_ij - mean - a_i - b_j)^2 + k sum_i a_i^2 + l sum_j b_j^2

    k and l are chosen on held-out entries. These are the offsets that the other estimators start from with
    `center=True`.

    Args:
        center: False for the mean alone.
        folds, random_state: as in `DeepMatrixFactorization`.

    Attributes:
        mean_, row_offsets_, column_offsets_, row_labels_, column_labels_: as in `DeepMatrixFactorization`.
        rank_: 0.

    Example:
        >>> X = [[row, column] for row in "abcd" for column in range(4)]
        >>> model = TwoWayMeans().fit(X, [ord(row) - ord("a") + 10 * column for row, column in X])
        >>> model.predict([["b", 3], ["new", 3]]).round().tolist()  # 31, and the mean of the column
        [31.0, 31.0]
    """

    def __init__(self, *, center=True, folds=5, random_state=0):
        self.center = center
        self.folds = folds
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> "TwoWayMeans":
        """Fit to observed entries, as `DeepMatrixFactorization.fit`."""
        observations = read(self, X, y)
        seed = int(check_random_state(self.random_state).randint(2**30))
        centre = centrings(observations, self.center, self.folds, seed)[-1]
        height, width = observations.shape
        mean = float(observations.values.mean())
        finish(self, centre, np.zeros((height, 0)), np.zeros((width, 0)), mean)
        return self
