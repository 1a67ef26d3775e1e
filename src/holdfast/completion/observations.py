"""Observed entries of a table of rows and columns: labels to codes, offsets, folds; the common part of completion."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from holdfast.core.validation import Rule, check_fields

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

    def products(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """(N,), what the matrix left @ right.T has in the place of each observation."""
        return np.einsum("nk,nk->n", left[self.rows], right[self.columns])

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
    """Observations of which one part, without a gap, is held out.

    Attributes:
        observations: all of them.
        begin: the first one that is held out.
        end: the first one after them.
    """

    observations: Observations
    begin: int
    end: int

    @property
    def training(self) -> Observations:
        """The observations to fit to."""
        return self.observations.at(np.r_[: self.begin, self.end : len(self.observations.values)])

    @property
    def held_out(self) -> Observations:
        """The observations to predict."""
        return self.observations.at(slice(self.begin, self.end))


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


@dataclass(kw_only=True, eq=False, repr=False)
class CompletionRegressor(RegressorMixin, BaseEstimator, ABC):
    """Base of all estimators that predict y from a row label and a column label, by offsets and factors.

        y_ij = mean + a_i + b_j + u_i^T v_j

    A subclass says how it completes centred observations.

    Args:
        center: whether there is a mean, and offsets of rows and columns.
        folds: parts of the entries that are held out, one after the other.
        random_state: of the folds.
    """

    center: Any = True
    folds: Annotated[int, Rule("a whole number of at least 2", lambda value: value >= 2, whole=True)] = 5
    random_state: Any = 0

    @abstractmethod
    def _completed(self, centres: list[Centred], seed: int) -> tuple[Centred, np.ndarray, np.ndarray]:
        """One of the ways to take offsets off, and factors: left @ right.T is fitted to its centred values."""

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to observed entries.

        Args:
            X: (n, 2), row and column label of each entry: strings, numbers, anything that can be told apart.
            y: (n,), their values.
        """
        check_fields(self)
        observations = self._read(X, y)
        seed = int(check_random_state(self.random_state).randint(2**30))  # other seeds are this one and a small number
        centre, left, right = self._completed(centrings(observations, self.center, self.folds, seed), seed)
        u, values, v = balanced_factors(left, right)
        share = np.sqrt(values * centre.scale)
        self.row_factors_, self.column_factors_ = u * share, v * share
        self.rank_ = len(values)
        self.mean_ = centre.offsets.mean if self.center else float(observations.values.mean())
        self.row_offsets_, self.column_offsets_ = centre.offsets.rows, centre.offsets.columns
        return self

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
        offsets = Offsets(self.mean_, self.row_offsets_, self.column_offsets_).of(rows, columns)
        interaction = np.einsum("nk,nk->n", self.row_factors_[rows], self.column_factors_[columns])
        return np.where(known, interaction + (offsets if self.center else 0.0), offsets)

    def _read(self, X: Any, y: Any) -> Observations:
        """Check X and y, turn labels into codes, and sort: the order of the observations does not matter."""
        pairs, values = validate_data(self, _as_objects(X), y, y_numeric=True, dtype=None)
        if pairs.shape[1] != 2:
            raise ValueError(f"X must have two columns, a row label and a column label, got {pairs.shape[1]} columns")
        (rows, row_labels), (columns, column_labels) = (pd.factorize(labels, sort=True) for labels in pairs.T)
        self.row_labels_, self.column_labels_ = pd.Index(row_labels), pd.Index(column_labels)
        everything = Observations(rows, columns, np.asarray(values, float), (len(row_labels), len(column_labels)))
        return everything.at(np.lexsort((everything.values, columns, rows)))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()  # the way scikit-learn asks for it
        tags.input_tags.string = tags.input_tags.categorical = True
        tags.regressor_tags.poor_score = True  # labels are names: a number as a label has no size
        return tags


def held_out_errors(centre: Centred, settings: pd.DataFrame, predicted: Iterable[Iterable[np.ndarray]]) -> pd.DataFrame:
    """Settings of a method, each with the root mean square error on the entries of all folds, in the units of y.

    Args:
        centre: the observations.
        settings: a row for each.
        predicted: for each fold, what each of the settings predicts for its held-out entries.
    """
    squares = np.zeros(len(settings))
    for fold, predictions in zip(centre.folds, predicted, strict=True):
        values = fold.held_out.values
        squares += [float(np.square(values - each).sum()) for each in predictions]
    return settings.assign(error=centre.scale * np.sqrt(squares / len(centre.observations.values)))


def best_centring(
    centres: Sequence[Centred], held_out: Callable[[Centred], pd.DataFrame]
) -> tuple[Centred, pd.DataFrame, int]:
    """The way to take offsets off whose path has the lowest error on held-out entries, that path, and its best row.

    Args:
        centres: of `centrings`.
        held_out: centre -> the table of `held_out_errors`.
    """
    paths = [held_out(centre) for centre in centres]
    chosen = int(np.argmin([path["error"].min() for path in paths]))
    return centres[chosen], paths[chosen], int(paths[chosen]["error"].argmin())


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
        return [_centred(shuffled, parts, None)]
    # Far from zero, sums of squares and offsets would lose digits that the differences have.
    reference = float(shuffled.values.mean())
    near = shuffled._replace(values=shuffled.values - reference)
    resolution = RESOLUTION * np.finfo(float).eps * float(np.abs(shuffled.values).max())
    if np.ptp(near.values) <= resolution:
        near = near._replace(values=np.zeros_like(near.values))
    shrinkages = [(np.inf, np.inf)]
    if parts:
        shrinkages.append(_chosen_shrinkage([Fold(near, *part) for part in parts]))
    return [_centred(near, parts, shrinkage, reference) for shrinkage in dict.fromkeys(shrinkages)]


def _centred(
    observations: Observations,
    parts: list[tuple[int, int]],
    shrinkage: tuple[float, float] | None,
    reference: float = 0.0,
) -> Centred:
    """Less the offsets of all of them, and for each part less those of the others; `reference` was taken off before."""
    offsets = _offsets(observations, shrinkage)
    own = [_offsets(Fold(observations, *part).training, shrinkage) for part in parts]
    rest, *others = (observations.values - each.of(observations.rows, observations.columns) for each in (offsets, *own))
    scale = float(np.sqrt(np.mean(np.square(rest))))
    whole, *scaled = (observations._replace(values=each / (scale or 1.0)) for each in (rest, *others))
    folds = [Fold(each, *part) for each, part in zip(scaled, parts, strict=True)]
    return Centred(whole, offsets._replace(mean=offsets.mean + reference), scale, folds)


def balanced_factors(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The singular value decomposition of left @ right^T, without forming it: (u, values, v), u diag(values) v^T.

    Args:
        left: (..., height, any).
        right: (..., width, any).
    """
    q_left, r_left = np.linalg.qr(left)
    q_right, r_right = np.linalg.qr(right)
    u, values, v = np.linalg.svd(r_left @ r_right.swapaxes(-1, -2), full_matrices=False)
    return q_left @ u, values, q_right @ v.swapaxes(-1, -2)


def _as_objects(X: Any) -> Any:
    """A list keeps the types of its labels: NumPy would make the string "1" of the number 1 in ["a", 1]."""
    if isinstance(X, Sequence) and not isinstance(X, str) and np.asarray(X, dtype=object).ndim == 2:
        return np.asarray(X, dtype=object) if np.asarray(X).dtype.kind in "US" else np.asarray(X)
    return X


def _offsets(observations: Observations, shrinkage: tuple[float, float] | None) -> Offsets:
    """Minimise sum (y - mean - a_i - b_j)^2 + k_row sum a_i^2 + k_column sum b_j^2, one block after the other.

    Without a shrinkage all of them are 0, and so is the mean.
    """
    rows, columns, values, shape = observations
    a, b = np.zeros(shape[0]), np.zeros(shape[1])
    if shrinkage is None:
        return Offsets(0.0, a, b)
    row_weights = np.bincount(rows, minlength=shape[0]) + shrinkage[0]
    column_weights = np.bincount(columns, minlength=shape[1]) + shrinkage[1]
    mean = float(values.mean())
    limit = OFFSET_TOLERANCE * float(values.std())
    for _ in range(OFFSET_SWEEPS):
        before = b
        a = np.bincount(rows, values - mean - b[columns], minlength=shape[0]) / row_weights
        b = np.bincount(columns, values - mean - a[rows], minlength=shape[1]) / column_weights
        mean = float((values - a[rows] - b[columns]).mean())
        if np.abs(b - before).max() <= limit:
            break
    return Offsets(mean, a, b)


def _chosen_shrinkage(folds: list[Fold]) -> tuple[float, float]:
    """The shrinkage of rows and of columns with the least error on held-out entries, one after the other, twice."""
    splits = [(fold.training, fold.held_out) for fold in folds]

    def error(rows: float, columns: float) -> float:
        errors = (test.values - _offsets(train, (rows, columns)).of(test.rows, test.columns) for train, test in splits)
        return sum(float(each @ each) for each in errors)

    rows = columns = np.inf
    for _ in range(2):
        rows = min(SHRINKAGES, key=partial(error, columns=columns))
        columns = min(SHRINKAGES, key=partial(error, rows))
    return rows, columns
