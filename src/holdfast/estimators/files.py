"""Invariant predictors for tables in files: fit, advise, hold out."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Tags

from holdfast.core.progress import Progress, stages
from holdfast.estimators.baselines.pooled import PooledClassifier, PooledRegressor
from holdfast.estimators.classifier import HeteroClassifier
from holdfast.estimators.held_out import held_out_errors
from holdfast.estimators.regressor import HeteroRegressor
from holdfast.io.columns import encode, groups_of
from holdfast.io.missing import about_dropped, plan_missing, refilled, with_bins
from holdfast.io.models import EnvironmentEffects, TableModel
from holdfast.io.options import ReadingOptions
from holdfast.io.reading import CHUNK_ROWS, TableData, open_table
from holdfast.io.survey import Survey, class_labels, survey

TableTask = Literal["auto", "regression", "classification"]
# More different values of a target are identifiers, not classes.
MOST_CLASSES = 50
# An environment with fewer rows measures no effect: it takes a slope, an intercept, and an error to judge the slope by.
FEWEST_ROWS = 3
# Of a progress bar: understanding the columns, reading their values, and the search for what is invariant.
STAGES = (45, 25, 30)


class FittedTable(NamedTuple):
    """The model of a file, and the estimator that it came from.

    Example, the causes x0, x1 and x2 of y are found:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from holdfast.datasets import toy_dataset
        >>> rows, path = toy_dataset(1.0, 0.5, seed=0, samples=200).train, Path(tempfile.mkdtemp()) / "table.csv"
        >>> table = pd.DataFrame(rows.inputs).add_prefix("x").assign(y=rows.targets, e=rows.environments)
        >>> table.to_csv(path, index=False)
        >>> found = fit_table(path, target="y", environment="e")
        >>> found.estimator.invariant_.nonzero()[0].tolist()
        [0, 1, 2]
    """

    model: TableModel
    estimator: HeteroRegressor | HeteroClassifier


def fit_table(
    data: TableData,
    target: str,
    environment: str | None = None,
    options: ReadingOptions | None = None,
    *,
    task: TableTask = "auto",
    chunk_rows: int = CHUNK_ROWS,
    progress: Progress | None = None,
    **settings: Any,
) -> FittedTable:
    """Fit the table of one or several files, which are read two to four times.

    A regression needs memory for one chunk only, and for a million values of each column that is imputed or binned.

    Args:
        data: .csv, .tsv (also .gz), .parquet or .feather; a path, a pattern, "-" or several of them.
        target: name of the column to predict.
        environment: what the environments are, as in `environment_labels`: "region", "region,urban", "age:bins=4",
            "date:year"; None: one environment.
        options: how the files are read, and what happens to missing values.
        task: "auto" is classification for text and for a target of two values, regression for other numbers.
        chunk_rows: rows in a chunk.
        progress: called with (done, total) while the files are read and the features are selected.
        settings: of `HeteroRegressor` or `HeteroClassifier`.

    Example, the causes x0, x1 and x2 of y are found:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from holdfast.datasets import toy_dataset
        >>> rows, path = toy_dataset(1.0, 0.5, seed=0, samples=200).train, Path(tempfile.mkdtemp()) / "table.csv"
        >>> table = pd.DataFrame(rows.inputs).add_prefix("x").assign(y=rows.targets, e=rows.environments)
        >>> table.to_csv(path, index=False)
        >>> model = fit_table(path, target="y", environment="e").model
        >>> [name for name, weight in zip(model.features, model.coefficients[0], strict=True) if weight]
        ['x0', 'x1', 'x2']
    """
    understanding, reading, selecting = stages(progress, STAGES)
    found = _understood(data, target, environment, options, chunk_rows, understanding)
    kind = _task(task, found)
    model = _estimator(kind, found, settings).set_params(verbose=selecting)
    used = _Rows(found, reading)
    if isinstance(model, HeteroRegressor):
        model.fit_chunks(used)
    else:
        features, response, labels = _together(used, kind)
        model.fit(features, response, environments=labels)
    model.set_params(verbose=0)
    saved = TableModel(
        task=kind,
        target=target,
        environment=environment,
        id=found.options.id,
        columns=found.columns,
        coefficients=tuple(map(tuple, np.atleast_2d(model.coef_).astype(float).tolist())),
        intercepts=tuple(np.atleast_1d(model.intercept_).astype(float).tolist()),
        classes=tuple(str(label) for label in model.classes_) if isinstance(model, HeteroClassifier) else (),
        stability=tuple(_records(model.stability_, model.summary().of_class)),
        effects=tuple(_effects(model.effects_)),
        advice=tuple(model.advice_),
        notes=(*found.notes, *about_dropped(found, used.count)),
        pooling=float(model.pooling_),
        rows=used.count,
    )
    return FittedTable(saved, model)


def advise_table(
    data: TableData,
    target: str,
    environment: str | None = None,
    options: ReadingOptions | None = None,
    **settings: Any,
) -> list[str]:
    """Advice on the table of one or several files: notes on its columns, then what a fit says about invariance.

    Args:
        data: the files.
        target: name of the column to predict.
        environment: what the environments are, as in `fit_table`.
        options: how the files are read.
        settings: as in `fit_table`.
    """
    model, _ = fit_table(data, target, environment, options, **settings)
    return [*model.notes, *model.advice]


def held_out_table(
    data: TableData,
    target: str,
    environment: str | None,
    options: ReadingOptions | None = None,
    *,
    task: TableTask = "auto",
    progress: Progress | None = None,
    **settings: Any,
) -> pd.DataFrame:
    """Errors in each environment of a table when all others are fitted: of an invariant predictor and of a pooled one.

    The table has to fit into memory. What stands for missing values comes from the environments that are fitted.

    Args:
        data: the files.
        target: name of the column to predict.
        environment: what the environments are, as in `fit_table`; at least two different ones.
        options: how the files are read.
        task: as in `fit_table`.
        progress: called with (fits done, fits in all).
        settings: of `HeteroRegressor` or `HeteroClassifier`.

    Returns:
        environments x (hetero, pooled): mean squared errors, or shares of wrong classes.
    """
    understanding, reading, fitting = stages(progress, (20, 10, 70))
    found = _understood(data, target, environment, options, CHUNK_ROWS, understanding)
    kind = _task(task, found)
    cells, response, labels = _together(_Rows(found, reading, encoded=False), kind)
    compared = {"hetero": _estimator(kind, found, settings), "pooled": _pooled(kind, response)}
    imputed = {name: _ImputedFit(estimator, found) for name, estimator in compared.items()}
    return held_out_errors(imputed, cells, response, labels, fitting)


def _understood(
    data: TableData,
    target: str,
    environment: str | None,
    options: ReadingOptions | None,
    chunk_rows: int,
    progress: Progress | None,
) -> Survey:
    """The survey of a table, with bins of environments and with what becomes of missing values."""
    options = options or ReadingOptions()
    surveying, binning, planning = stages(progress, (50, 25, 25))
    table = open_table(data, options)
    found = survey(table, target, environment, options, chunk_rows=chunk_rows, progress=surveying)
    return plan_missing(with_bins(found, binning), planning)


class _Rows:
    """The complete rows of a table, counted as they pass; ValueError if there are none, or too few.

    They have features, or with `encoded=False` the cells of the table, from which features can be made.
    """

    def __init__(self, found: Survey, progress: Progress | None = None, *, encoded: bool = True):
        self.found, self.progress, self.encoded, self.count = found, progress, encoded, 0
        self._sizes: Counter = Counter()

    def __iter__(self) -> Iterator[tuple]:
        for part in self.found.complete(self.progress) if self.encoded else self._cells():
            self.count += len(part[0])
            if part[2] is not None:
                self._sizes.update(part[2].value_counts().to_dict())
            yield part
        about_dropped(self.found, self.count)
        largest = max(self._sizes.values(), default=0)
        if self.found.environment is not None and len(self._sizes) > 1 and largest < FEWEST_ROWS:
            raise ValueError(
                f"environment must have at least {FEWEST_ROWS} rows in some environment, or no effect can be measured, "
                f"got {', '.join(map(repr, self.found.environment.names))} with {len(self._sizes)} environments of "
                f"{'one row each' if largest == 1 else f'at most {largest} rows'}"
            )

    def _cells(self) -> Iterator[tuple]:
        names = [column.name for column in self.found.columns]
        for chunk, values, labels in self.found.labelled(self.progress):
            features = encode(chunk, self.found.columns, self.found.table.decimal)
            whole = ~np.isnan(features.to_numpy()).any(axis=1)
            yield chunk.loc[whole, names], values[whole], None if labels is None else labels[whole]


class _ImputedFit(BaseEstimator):
    """An estimator of the cells of a table, whose missing values are imputed from the rows that it is fitted to."""

    def __init__(self, estimator, found):
        self.estimator = estimator
        self.found = found

    def fit(self, X: pd.DataFrame, y: Any, *, environments: Any = None) -> "_ImputedFit":
        self.columns_ = refilled(self.found.columns, X, self.found.table.decimal)
        extra: dict[str, Any] = {}
        if isinstance(self.estimator, HeteroRegressor | HeteroClassifier):
            extra = {"environments": environments}
            if self.estimator.groups is not None:
                self.estimator.set_params(groups=groups_of(self.columns_))
        self.estimator.fit(self._features(X), y, **extra)
        return self

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        return self.estimator.predict(self._features(X))

    def _features(self, X: pd.DataFrame) -> pd.DataFrame:
        return encode(X, self.columns_, self.found.table.decimal)

    def __sklearn_tags__(self) -> Tags:
        return self.estimator.__sklearn_tags__()


def _estimator(task: TableTask, found: Survey, settings: Mapping[str, Any]) -> HeteroRegressor | HeteroClassifier:
    known = dict(settings)
    invariance = known.get("invariance", "auto")
    # class means are compared feature by feature
    if not known.get("rotation", False) and (task == "regression" or invariance != "class_means"):
        known.setdefault("groups", found.groups)
    if task == "regression":
        if known.pop("invariance", "auto") != "auto":
            raise ValueError(f"invariance must be left out for a regression, got {invariance!r}")
        return HeteroRegressor(**known)
    if known.pop("level", "common") != "common":
        raise ValueError("level must be common for a classification, got 'environment'")
    return HeteroClassifier(**known)


def _pooled(task: TableTask, response: pd.Series) -> Any:
    if task == "regression":
        return PooledRegressor()
    if response.nunique() == 2:
        return PooledClassifier()
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


def _together(rows: _Rows, task: TableTask) -> tuple[pd.DataFrame, pd.Series, pd.Series | None]:
    """Features, target and environments of all rows at once."""
    features, parts, labels = zip(*rows, strict=True)
    response = pd.concat(parts)
    if task == "classification":
        response = class_labels(response)
        count = response.nunique()
        if count > MOST_CLASSES or 2 < count > len(response) / 2:
            raise ValueError(
                f"target must hold at most {MOST_CLASSES} classes, of two rows or more on average, got "
                f"{rows.found.target!r} with {count} different values in {len(response)} rows"
            )
    return pd.concat(features), response, None if labels[0] is None else pd.concat(labels)


def _task(task: TableTask, found: Survey) -> Literal["regression", "classification"]:
    values, target = found.target_values, found.target
    if len(values) == 1:
        raise ValueError(f"target must vary, got {target!r}, which is {values[0]!r} in every row")
    if not values:
        raise ValueError(f"target must hold values, got {target!r} without any")
    if task == "auto":
        return "classification" if len(values) == 2 or not found.target_numeric else "regression"
    if task == "regression" and not found.target_numeric:
        raise ValueError(f"target must hold numbers for a regression, got {target!r} with {values[0]!r}")
    return task


def _records(frame: pd.DataFrame, classes: Sequence[Any]) -> list[dict]:
    """The rows of a table, with the class that each is about where there are more than two."""
    table = frame.reset_index()
    if classes:
        table.insert(1, "class", [str(label) for label in classes])
    table[table.columns[0]] = table[table.columns[0]].astype(str)
    return table.astype(object).where(table.notna(), None).to_dict("records")


def _effects(frame: pd.DataFrame) -> Iterator[EnvironmentEffects]:
    names = [str(name) for name in frame.columns]
    for label, row in zip(frame.index, frame.to_numpy(float), strict=True):
        effects = {name: value if np.isfinite(value) else None for name, value in zip(names, row.tolist(), strict=True)}
        yield EnvironmentEffects(str(label), effects)
