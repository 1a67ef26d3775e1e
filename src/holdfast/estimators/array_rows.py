"""Rows in memory: what scikit-learn checks, in words that help, and rows that passed the checks."""

import warnings
from collections.abc import Callable
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_X_y
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from holdfast.core.grouping import Grouping, group_rows
from holdfast.tables.frames import is_dask_frame
from holdfast.tables.passes import Passes

# What is added to scikit-learn's own message, whose words its users know.
_NOT_NUMBERS = (
    "Columns of text and missing values need a pipeline that turns them into numbers (OneHotEncoder, SimpleImputer); "
    "holdfast.estimators.fit_table and `holdfast fit` do so themselves."
)


# What scikit-learn is to check in a table of numbers, whose moments may be summed in single precision, and of classes.
NUMBERS: dict[str, Any] = {"y_numeric": True, "dtype": [np.float64, np.float32]}
CLASSES: dict[str, Any] = {"dtype": np.float64}


def check_rows(estimator: BaseEstimator | None, X: Any, y: Any, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    """X and y as arrays, by scikit-learn's checks; the error about text or missing values names what takes them.

    Args:
        estimator: that is fitted, and learns the names of the features; None: the rows are a part of those of a fit.
        X: (rows, features).
        y: (rows,).
        options: of scikit-learn's `check_X_y`.

    Example:
        >>> from sklearn.linear_model import LinearRegression
        >>> x, y = check_rows(LinearRegression(), [[1], [2]], [3, 4], dtype=float)
        >>> x.tolist(), y.tolist()
        ([[1.0], [2.0]], [3, 4])
    """
    check_no_dates(X)
    try:
        return check_X_y(X, y, **options) if estimator is None else validate_data(estimator, X, y, **options)
    except ValueError as error:
        if "NaN" not in str(error) and "could not convert" not in str(error):
            raise
        check_no_text(X)
        error.add_note(_NOT_NUMBERS)
        raise


def check_no_dates(X: Any) -> None:
    """Raise a ValueError that names the columns of a data frame, of pandas or Dask, that hold dates.

    Example:
        >>> check_no_dates(pd.DataFrame({"day": pd.to_datetime(["2020-01-31"])}))
        Traceback (most recent call last):
        ValueError: X must hold numbers, got dates in the column 'day': make numbers of them, such as \
(X['day'] - X['day'].min()).dt.days; holdfast.estimators.fit_table and `holdfast fit` count them in days.
    """
    rows = X._meta if is_dask_frame(X) else X
    dates = [name for name, kind in rows.dtypes.items() if kind.kind in "mM"] if isinstance(rows, pd.DataFrame) else []
    if dates:
        raise ValueError(
            f"X must hold numbers, got dates in the column {dates[0]!r}: make numbers of them, such as "
            f"(X[{dates[0]!r}] - X[{dates[0]!r}].min()).dt.days; holdfast.estimators.fit_table and `holdfast fit` "
            "count them in days."
        )


def check_no_text(X: Any) -> None:
    """Raise a ValueError that names the columns of a data frame, of pandas or Dask, that hold text.

    Example:
        >>> check_no_text(pd.DataFrame({"light": [1.0], "soil": ["clay"]}))
        Traceback (most recent call last):
        ValueError: X must hold numbers, could not convert the column 'soil' of text. Columns of text and missing \
values need a pipeline that turns them into numbers (OneHotEncoder, SimpleImputer); holdfast.estimators.fit_table and \
`holdfast fit` do so themselves.
    """
    rows = X._meta if is_dask_frame(X) else X
    if not isinstance(rows, pd.DataFrame):
        return
    # an object may be anything; in the rows of a Dask data frame, whose meta has none, a worker will tell
    words = [name for name in rows.columns if _holds_text(rows[name])]
    if words:
        named = f"{'columns' if len(words) > 1 else 'column'} {', '.join(map(repr, words[:5]))}"
        more = f" and {len(words) - 5} more" if len(words) > 5 else ""
        raise ValueError(f"X must hold numbers, could not convert the {named}{more} of text. {_NOT_NUMBERS}")


def _holds_text(column: pd.Series) -> bool:
    if isinstance(column.dtype, pd.CategoricalDtype):
        return _holds_text(pd.Series(column.dtype.categories))
    if column.dtype == object:
        return bool((pd.to_numeric(column, errors="coerce").isna() & column.notna()).any())
    return isinstance(column.dtype, pd.StringDtype)


def without_environments(X: Any, environments: Any) -> tuple[Any, Any]:
    """Features and labels; where `environments` is the name of a column of X, it is taken out of the features.

    Args:
        X: (rows, features); for a name a data frame of pandas, Dask or Polars, or a table of Arrow.
        environments: labels, or the name of a column.

    Example:
        >>> X, labels = without_environments(pd.DataFrame({"light": [1.0], "site": ["hill"]}), "site")
        >>> X.columns.tolist(), labels.tolist()
        (['light'], ['hill'])
    """
    if not isinstance(environments, str):
        return X, environments
    names = list(getattr(X, "column_names", getattr(X, "columns", ())))
    if environments not in names:
        found = f"the columns {described_names(tuple(names))}" if names else "an array without names"
        raise ValueError(
            "environments must be one label for each row, or the name of a column of the data frame X, got "
            f"{environments!r} for {found}"
        )
    others = [name for name in names if name != environments]
    if is_dask_frame(X) or isinstance(X, pd.DataFrame):
        return X[others], X[environments]
    return X.select(others), np.asarray(X[environments])


def class_codes(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The labels, sorted, and the number of the label of each row; ValueError if there are fewer than two.

    Example:
        >>> class_codes(np.array(["c", "a", "b", "c"]))
        (array(['a', 'b', 'c'], dtype='<U1'), array([2, 0, 1, 2]))
    """
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        # scikit-learn's own checks ask for the words "one class"
        raise ValueError(f"y must hold two classes or more, got one class only: {classes.tolist()}")
    return classes, codes


def two_classes(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The two labels, and 0 or 1 for each row; ValueError if there are more or fewer.

    Example:
        >>> two_classes(np.array(["b", "a", "b"]))
        (array(['a', 'b'], dtype='<U1'), array([1, 0, 1]))
    """
    classes, codes = class_codes(y)
    if len(classes) > 2:
        # scikit-learn's own checks ask for this first sentence
        raise ValueError(f"Only binary classification is supported. y must hold two classes, got {len(classes)}")
    return classes, codes


def feature_names(X: Any) -> tuple[str, ...] | None:
    """The names of the features that scikit-learn would know: the columns of a data frame, if they are text.

    Example:
        >>> feature_names(pd.DataFrame({"light": [1.0]})), feature_names(np.eye(1))
        (('light',), None)
    """
    columns = X.columns if isinstance(X, pd.DataFrame) else getattr(X, "column_names", getattr(X, "columns", ()))
    text = {isinstance(name, str) for name in columns}
    if len(text) > 1:
        found = described_names(tuple(columns))
        raise TypeError(f"X must have columns whose names are all text, or none of them, got {found}")
    return tuple(columns) if text == {True} else None


def described_names(names: tuple[str, ...] | None) -> str:
    """The names of features in an error, the first five of them.

    Example:
        >>> described_names(("light", "water")), described_names(None)
        ("'light', 'water'", 'without names')
    """
    if names is None:
        return "without names"
    return ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")


def response_name(y: Any) -> str:
    """The name of a column of responses; "y" if it has none.

    Example:
        >>> response_name(pd.Series([1.0], name="wage")), response_name([1.0])
        ('wage', 'y')
    """
    return str(y.name) if isinstance(y, pd.Series) and y.name is not None else "y"


def checked_weights(sample_weight: Any, row_count: int) -> np.ndarray:
    """One weight for each row; ValueError if they are no weights.

    Args:
        sample_weight: one number for each row, or one for all.
        row_count: the number of rows.

    Example:
        >>> checked_weights(2, 3).tolist()
        [2.0, 2.0, 2.0]
    """
    each = np.full(row_count, sample_weight) if isinstance(sample_weight, Real) else sample_weight
    weights = check_array(each, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
    if weights.shape != (row_count,):
        raise ValueError(
            f"sample_weight must be one number for each of the {row_count} rows, got shape {weights.shape}"
        )
    if weights.min() < 0:
        raise ValueError(f"sample_weight must not be negative, got {weights.min()}")
    return weights


def warn_of_small_weights(total: float, rows: int, features: int, environments: int) -> None:
    """Warn if weights add up to fewer rows than there are features or environments.

    Args:
        total: the sum of all weights.
        rows: of positive weight.
        features: in the table.
        environments: with such rows.
    """
    fewest = max(features, environments)
    if total < fewest < rows:
        factor = rows / total
        warnings.warn(
            f"sample_weight is how many rows each row stands for, and its sum is {total:.3g}, fewer than the "
            f"{fewest} {'features' if fewest == features else 'environments'}: so few rows tell nothing apart. "
            f"Weights of mean 1 (sample_weight * {factor:{'.0f' if factor >= 100 else '.3g'}}) count each row as one",
            UserWarning,
            stacklevel=4,
        )


class ArrayRows(NamedTuple):
    """Rows in memory that have passed scikit-learn's checks; those of weight zero are left out.

    Attributes:
        x: (rows, features).
        y: (rows,).
        grouping: their environments.
        weights: (rows,), how many rows each row stands for, all positive.
        names: of the features; None if they have none.
        response: its name.
        passes: how often they were read.
        name: what they are called in messages.
    """

    x: np.ndarray
    y: np.ndarray
    grouping: Grouping
    weights: np.ndarray
    names: tuple[str, ...] | None
    response: str
    passes: Passes
    name: str = "arrays"

    def sums(self, collect: Callable[..., Any]) -> Any:
        """The `RowSums` of all rows."""
        self.passes.count += 1
        named = self.x if self.names is None else pd.DataFrame(self.x, columns=self.names, copy=False)
        weights = None if (self.weights == 1).all() else self.weights  # products without weights are symmetric
        with config_context(assume_finite=True):
            return collect(named, pd.Series(self.y, name=self.response), self.grouping, None, weights)

    def all(self, statement: Callable[..., bool]) -> bool:
        """Whether a statement is true of all rows."""
        return statement(self.x, self.y)

    def together(self) -> "ArrayRows":
        """These are all rows."""
        return self


def array_rows(
    estimator: Any, X: Any, y: Any, environments: Any = None, sample_weight: Any = None, *, classes: bool = False
) -> ArrayRows:
    """The arguments of `fit`, in memory, without rows of weight zero; ValueError if they do not belong together.

    Weights are frequencies: a weight of 2 is the row twice, and their sum is the number of rows that all tests count.

    Args:
        estimator: that is fitted, and learns the names of the features; None: the rows have been checked.
        X: (rows, features).
        y: (rows,).
        environments: one label for each row, or the name of a column of X; None: one environment.
        sample_weight: one number for each row, or one for all; None: 1.
        classes: whether y holds labels of classes.

    Example:
        >>> from sklearn.linear_model import LinearRegression
        >>> rows = array_rows(LinearRegression(), np.eye(3), np.arange(3), ["a", "b", "b"], [0, 2, 1])
        >>> rows.y.tolist(), rows.grouping.labels, rows.weights.tolist()
        ([1, 2], ['b'], [2.0, 1.0])
    """
    X, environments = without_environments(X, environments)
    x, values = check_rows(estimator, X, y, **(CLASSES if classes else NUMBERS))
    names, grouping, weights = feature_names(X), group_rows(environments, len(x)), np.ones(len(x))
    if sample_weight is not None:
        weights = checked_weights(sample_weight, len(x))
        counted = weights > 0
        if not counted.any():
            raise ValueError("sample_weight must be positive for at least one row, got zeros only")
        x, values, grouping, weights = x[counted], values[counted], grouping.where(counted), weights[counted]
        warn_of_small_weights(float(weights.sum()), len(x), x.shape[1], grouping.count)
    return ArrayRows(x, values, grouping, weights, names, response_name(y), Passes())
