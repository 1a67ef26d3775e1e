"""Observed entries of a table of rows and columns: labels to codes, offsets, folds; the common part of completion."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

# What the offsets may be shrunk by, in observations: a row with as many of them as this goes half of the way to its
# own mean. The first one means no offsets.
SHRINKAGES = (np.inf, 30.0, 10.0, 3.0, 1.0, 0.1)
# Offsets change by less than this share of the standard deviation in the last sweep, or this many sweeps are made.
OFFSET_TOLERANCE, OFFSET_SWEEPS = 1e-6, 100
# Values that differ by at most this many units in the last place of the largest are one value.
RESOLUTION = 8


class Observations(NamedTuple):
    """Values that were observed, one or several for an entry of a matrix.

    Attributes:
        rows: (N,), codes from 0 to height - 1.
        columns: (N,), codes from 0 to width - 1.
        values: (N,).
        shape: (height, width).
    """

    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    shape: tuple[int, int]

    def at(self, chosen: np.ndarray | slice) -> "Observations":
        """Some of the observations."""
        return Observations(self.rows[chosen], self.columns[chosen], self.values[chosen], self.shape)

    def counts_and_sums(self) -> tuple[np.ndarray, np.ndarray]:
        """(height, width) each: how often an entry was observed, and the sum of its values."""
        cells = self.rows * self.shape[1] + self.columns
        size = self.shape[0] * self.shape[1]
        counts, sums = np.bincount(cells, minlength=size), np.bincount(cells, self.values, minlength=size)
        return counts.reshape(self.shape).astype(float), sums.reshape(self.shape)


class Offsets(NamedTuple):
    """What a row and a column add to the mean.

    Attributes:
        mean: a number.
        rows: (height,).
        columns: (width,).
    """

    mean: float
    rows: np.ndarray
    columns: np.ndarray

    def of(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Mean + row + column; a code of -1, an unknown label, adds nothing."""
        padded_rows, padded_columns = np.append(self.rows, 0.0), np.append(self.columns, 0.0)
        return self.mean + padded_rows[rows] + padded_columns[columns]


class Fold(NamedTuple):
    """One part of the observations held out, all values less the offsets that the rest has.

    Attributes:
        begin: the first observation that is held out.
        end: the first one after them.
        observations: all of them, with centred values.
    """

    begin: int
    end: int
    observations: Observations

    @property
    def training(self) -> Observations:
        """The observations to fit to."""
        return _split(self.observations, (self.begin, self.end))[0]

    @property
    def held_out(self) -> Observations:
        """The observations to predict."""
        return _split(self.observations, (self.begin, self.end))[1]

    def error(self, predicted: np.ndarray) -> float:
        """The sum of squares of what is left of the held-out values."""
        return float(np.square(self.held_out.values - predicted).sum())


class Centred(NamedTuple):
    """Observations in random order, less their offsets, and the same with folds held out.

    Attributes:
        observations: with centred values, in units of `scale`.
        offsets: in the units of y.
        scale: root mean square of the centred values; 0 if nothing is left.
        folds: with the offsets of their own training part, in units of `scale`; none if there are too few entries.
    """

    observations: Observations
    offsets: Offsets
    scale: float
    folds: list[Fold]


class CompletionRegressor(RegressorMixin, BaseEstimator):
    """Base of all estimators that predict y from a row label and a column label, by offsets and factors.

        y_ij = mean + a_i + b_j + u_i^T v_j

    A subclass has the arguments `center` and `random_state`, and its `fit` calls `read`, `centrings` and `finish`.
    """

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()  # the way scikit-learn asks for it
        tags.input_tags.string = tags.input_tags.categorical = True
        tags.regressor_tags.poor_score = True  # labels are names: a number as a label has no size
        return tags

    def predict(self, X: Any) -> np.ndarray:
        """(n,), the predicted values.

        A row or column that was not in the data gets no offset and no factors: the mean and the offset of the other
        label are predicted, or the mean if both are new. With `center=False` the prediction is the mean in all these
        cases.

        Args:
            X: (n, 2), row and column labels.
        """
        check_is_fitted(self)
        pairs = validate_data(self, _as_objects(X), reset=False, dtype=None)
        rows, columns = self.row_labels_.get_indexer(pairs[:, 0]), self.column_labels_.get_indexer(pairs[:, 1])
        known = (rows >= 0) & (columns >= 0)
        if not self.center:
            return np.where(known, self._interaction(rows, columns), self.mean_)
        offsets = Offsets(self.mean_, self.row_offsets_, self.column_offsets_)
        return offsets.of(rows, columns) + np.where(known, self._interaction(rows, columns), 0.0)

    def _interaction(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return np.einsum("nk,nk->n", self.row_factors_[rows], self.column_factors_[columns])


def read(estimator: Any, X: Any, y: Any) -> Observations:
    """Check X and y, and turn labels into codes; sets `row_labels_` and `column_labels_` of the estimator.

    The order of the observations does not matter: they are sorted.
    """
    pairs, values = validate_data(estimator, _as_objects(X), y, y_numeric=True, dtype=None)
    if pairs.shape[1] != 2:
        raise ValueError(f"X must have two columns, a row label and a column label, got {pairs.shape[1]} columns")
    codes = []
    for name, labels in zip(("row_labels_", "column_labels_"), pairs.T, strict=True):
        numbers, found = pd.factorize(labels, sort=True)
        codes.append(numbers)
        setattr(estimator, name, pd.Index(found))
    values = np.asarray(values, float)
    order = np.lexsort((values, codes[1], codes[0]))
    shape = (len(estimator.row_labels_), len(estimator.column_labels_))
    return Observations(codes[0][order], codes[1][order], values[order], shape)


def best_centring(
    centres: Sequence[Centred], held_out: Callable[[Centred], pd.DataFrame]
) -> tuple[Centred, pd.DataFrame]:
    """The way to take offsets off whose path has the lowest error on held-out entries, and that path.

    Args:
        centres: of `centrings`.
        held_out: centre -> a table with a column "error", a row for each setting of the method.
    """
    paths = [held_out(centre) for centre in centres]
    chosen = int(np.argmin([path["error"].min() for path in paths]))
    return centres[chosen], paths[chosen]


def centrings(observations: Observations, center: bool, folds: int, seed: int) -> list[Centred]:
    """The ways to take offsets off, for the method to choose between by its error on held-out entries.

    With `center` these are the mean alone, and the mean with offsets if they predict held-out entries better. Which of
    the two is better under a low-rank part depends on it: its own row means look like offsets, and taking them off
    makes its rank larger. Without `center` nothing is taken off.

    All observations of an entry are in the same fold, so that a repeated one does not give the answer away.

    Args:
        observations: as they were read.
        center: whether there is a mean, and offsets of rows and columns.
        folds: parts that are held out, one after the other.
        seed: of the order of the entries.
    """
    cells = observations.rows * observations.shape[1] + observations.columns
    number = np.unique(cells, return_inverse=True)[1]
    count = int(number.max()) + 1
    position = np.random.default_rng(seed).permutation(count)[number]
    order = np.argsort(position, kind="stable")
    shuffled = observations.at(order)
    bounds = np.searchsorted(position[order], np.linspace(0, count, folds + 1).round()).tolist()
    parts = list(pairwise(bounds)) if count >= 2 * folds else []
    if not center:
        return [_without_offsets(shuffled, parts)]
    # Far from zero, sums of squares and offsets would lose digits that the differences have.
    reference = float(shuffled.values.mean())
    near = shuffled._replace(values=shuffled.values - reference)
    resolution = RESOLUTION * np.finfo(float).eps * float(np.abs(shuffled.values).max())
    if np.ptp(near.values) <= resolution:
        near = near._replace(values=np.zeros_like(near.values))
    shrinkages = [(np.inf, np.inf)]
    if parts:
        chosen = _chosen_shrinkage([_split(near, part) for part in parts])
        shrinkages += [chosen] if chosen != shrinkages[0] else []
    return [_centred(near, parts, shrinkage, reference) for shrinkage in shrinkages]


def _without_offsets(observations: Observations, parts: list[tuple[int, int]]) -> Centred:
    nothing = Offsets(0.0, np.zeros(observations.shape[0]), np.zeros(observations.shape[1]))
    scale = float(np.sqrt(np.mean(np.square(observations.values))))
    scaled = observations._replace(values=observations.values / (scale or 1.0))
    return Centred(scaled, nothing, scale, [Fold(begin, end, scaled) for begin, end in parts])


def _centred(
    observations: Observations, parts: list[tuple[int, int]], shrinkage: tuple[float, float], reference: float
) -> Centred:
    def rest(offsets: Offsets) -> np.ndarray:
        return observations.values - offsets.of(observations.rows, observations.columns)

    offsets = _offsets(observations, shrinkage)
    scale = float(np.sqrt(np.mean(np.square(rest(offsets)))))
    unit = scale or 1.0
    own = [_offsets(_split(observations, part)[0], shrinkage) for part in parts]
    folds = [
        Fold(begin, end, observations._replace(values=rest(each) / unit))
        for (begin, end), each in zip(parts, own, strict=True)
    ]
    shifted = offsets._replace(mean=offsets.mean + reference)
    return Centred(observations._replace(values=rest(offsets) / unit), shifted, scale, folds)


def _split(observations: Observations, part: tuple[int, int]) -> tuple[Observations, Observations]:
    """What is fitted, and what is held out."""
    everything = np.arange(len(observations.values))
    return observations.at(np.delete(everything, np.s_[slice(*part)])), observations.at(slice(*part))


def finish(estimator: Any, centre: Centred, left: np.ndarray, right: np.ndarray, mean: float) -> None:
    """Set the attributes that all estimators have, with factors in the units of y.

    Args:
        estimator: to set them on.
        centre: what was fitted.
        left: (height, any), left @ right.T is fitted to the centred values.
        right: (width, any).
        mean: of y, what is predicted for new labels without offsets.
    """
    u, values, v = balanced_factors(left, right)
    share = np.sqrt(values * centre.scale)
    estimator.row_factors_, estimator.column_factors_ = u * share, v * share
    estimator.rank_ = len(values)
    estimator.mean_ = centre.offsets.mean if estimator.center else mean
    estimator.row_offsets_, estimator.column_offsets_ = centre.offsets.rows, centre.offsets.columns


def balanced_factors(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The singular value decomposition of left @ right.T, without forming it: (u, values, v), u diag(values) v^T."""
    q_left, r_left = np.linalg.qr(left)
    q_right, r_right = np.linalg.qr(right)
    u, values, v = np.linalg.svd(r_left @ r_right.T, full_matrices=False)
    return q_left @ u, values, q_right @ v.T


def _as_objects(X: Any) -> Any:
    """A list keeps the types of its labels: NumPy would make the string "1" of the number 1 in ["a", 1]."""
    if isinstance(X, Sequence) and not isinstance(X, str) and np.asarray(X, dtype=object).ndim == 2:
        return np.asarray(X, dtype=object) if np.asarray(X).dtype.kind in "US" else np.asarray(X)
    return X


def _offsets(observations: Observations, shrinkage: tuple[float, float]) -> Offsets:
    """Minimise sum (y - mean - a_i - b_j)^2 + k_row sum a_i^2 + k_column sum b_j^2, one block after the other."""
    rows, columns, values, shape = observations
    row_weights = np.bincount(rows, minlength=shape[0]) + shrinkage[0]
    column_weights = np.bincount(columns, minlength=shape[1]) + shrinkage[1]
    mean, a, b = float(values.mean()), np.zeros(shape[0]), np.zeros(shape[1])
    limit = OFFSET_TOLERANCE * float(values.std())
    for _ in range(OFFSET_SWEEPS):
        before = b
        a = np.bincount(rows, values - mean - b[columns], minlength=shape[0]) / row_weights
        b = np.bincount(columns, values - mean - a[rows], minlength=shape[1]) / column_weights
        mean = float((values - a[rows] - b[columns]).mean())
        if np.abs(b - before).max() <= limit:
            break
    return Offsets(mean, a, b)


def _chosen_shrinkage(splits: list[tuple[Observations, Observations]]) -> tuple[float, float]:
    """The shrinkage of rows and of columns with the least error on held-out entries, one after the other, twice."""

    def error(rows: float, columns: float) -> float:
        errors = (test.values - _offsets(train, (rows, columns)).of(test.rows, test.columns) for train, test in splits)
        return sum(float(each @ each) for each in errors)

    rows = columns = np.inf
    for _ in range(2):
        rows = min(SHRINKAGES, key=partial(error, columns=columns))
        columns = min(SHRINKAGES, key=partial(error, rows))
    return rows, columns
