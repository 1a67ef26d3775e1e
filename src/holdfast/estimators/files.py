"""Invariant predictors for tables in files: fit, advise, hold out."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils import Tags

from holdfast.core.progress import Progress, stages
from holdfast.estimators.classifier import HeteroClassifier
from holdfast.estimators.held_out import held_out_errors
from holdfast.estimators.mixed import MixedRegressor
from holdfast.estimators.regressor import HeteroRegressor
from holdfast.estimators.spline import HeteroSplineRegressor
from holdfast.estimators.surveyed_rows import SurveyedRows
from holdfast.tables.columns import Column, encode, features_of, groups_of
from holdfast.tables.frames import TableFrames, is_dask_frame
from holdfast.tables.missing import about_dropped, complete_survey, refilled
from holdfast.tables.models import EnvironmentEffects, TableModel
from holdfast.tables.options import ReadingOptions, named_columns
from holdfast.tables.passes import Passes, passes_on
from holdfast.tables.reading import CHUNK_ROWS, TableData, open_table
from holdfast.tables.survey import Survey, survey, survey_as

TableTask = Literal["auto", "regression", "classification"]
TableEffects = Literal["linear", "auto", "smooth", "mixed"]
TableEstimator = HeteroRegressor | HeteroSplineRegressor | HeteroClassifier
# Of a progress bar: understanding the columns, reading their values, and the search for what is invariant.
STAGES = (45, 25, 30)


class FittedTable(NamedTuple):
    """The model of a file, and the estimator that it came from.

    Example, the causes x0, x1 and x2 of y are found:
        >>> import tempfile
        >>> from holdfast.datasets import toy_dataset
        >>> rows, path = toy_dataset(1.0, 0.5, seed=0, samples=200).train, Path(tempfile.mkdtemp()) / "table.csv"
        >>> table = pd.DataFrame(rows.inputs).add_prefix("x").assign(y=rows.targets, e=rows.environments)
        >>> table.to_csv(path, index=False)
        >>> found = fit_table(path, target="y", environment="e")
        >>> found.estimator.invariant_.nonzero()[0].tolist()
        [0, 1, 2]
    """

    model: TableModel
    estimator: TableEstimator | Any  # with effects="mixed" a MixedRegressor, which has no stability to show


def fit_table(
    data: TableData | pd.DataFrame | Any,
    target: str,
    environment: str | None = None,
    options: ReadingOptions | None = None,
    *,
    task: TableTask = "auto",
    effects: TableEffects = "linear",
    schema: TableModel | str | Path | None = None,
    dask: Any = None,
    chunk_rows: int = CHUNK_ROWS,
    progress: Progress | None = None,
    **settings: Any,
) -> FittedTable:
    """Fit the table of one or several files, or of a data frame, which is read two to four times as a rule.

    A regression, and a classification with invariance="class_means", need memory for one chunk only, for a million
    rows of the columns that are imputed or binned, and with curves for 131,072 rows. They can be read by the workers of
    a Dask cluster: the answer is the same, up to rounding. `estimator.passes_` says how often the table was read: once
    to see what its columns are, unless a schema says so, and once for the fit; once more for bins and imputation
    together, once more for curves, and once more for classes that seem to be separated.

    Args:
        data: .csv, .tsv (also .gz), .parquet or .feather; a path, a pattern, "-" or several of them; or a data frame of
            pandas or Dask.
        target: name of the column to predict.
        environment: what the environments are, as in `environment_labels`: "region", "region,urban", "age:bins=4",
            "date:year"; None: one environment.
        options: how the files are read, and what happens to missing values.
        task: "auto" is classification for text and for a target of two values, regression for other numbers.
        effects: of a regression: "linear"; "auto": curves for columns that need one, as in `HeteroSplineRegressor`;
            "smooth": curves for all columns of numbers; or "mixed", as in `MixedRegressor`, whose fixed part the model
            predicts with.
        schema: a model of `fit_table`, or its file, whose columns are those of this table, so that it is read once;
            None: what the columns are is found in a pass of its own.
        dask: the cluster whose workers read the table: the address of a scheduler, its file, or a client of Dask; None:
            this process, or for a Dask data frame what Dask is set to use.
        chunk_rows: rows in a chunk.
        progress: called with (done, total) while the files are read and the features are selected.
        settings: of `HeteroRegressor`, `HeteroSplineRegressor`, `MixedRegressor` or `HeteroClassifier`; `before` and
            `after` name columns, or features, which stand for their columns.

    Example, the causes x0, x1 and x2 of y are found:
        >>> import tempfile
        >>> from holdfast.datasets import toy_dataset
        >>> rows, path = toy_dataset(1.0, 0.5, seed=0, samples=200).train, Path(tempfile.mkdtemp()) / "table.csv"
        >>> table = pd.DataFrame(rows.inputs).add_prefix("x").assign(y=rows.targets, e=rows.environments)
        >>> table.to_csv(path, index=False)
        >>> model = fit_table(path, target="y", environment="e").model
        >>> [name for name, weight in zip(model.features, model.coefficients[0], strict=True) if weight]
        ['x0', 'x1', 'x2']
    """
    understanding, reading, selecting = stages(progress, STAGES)
    with passes_on(dask) as passes, np.errstate(over="ignore", invalid="ignore"):  # the model checks its coefficients
        found = _understood(data, target, environment, options, chunk_rows, understanding, passes, schema)
        kind = _task(task, found)
        model = _estimator(kind, found, settings, effects)
        if not isinstance(model, MixedRegressor):
            model.set_params(verbose=selecting)
        reports = stages(reading, (1, 1) if isinstance(model, HeteroSplineRegressor) else (1,))
        rows = SurveyedRows(found, passes, kind == "classification", reports)
        model._fit_rows(rows)
    model.passes_ = passes.count
    linear, columns = model, found.columns
    if isinstance(model, HeteroSplineRegressor):
        linear, columns = model.regressor_, _with_knots(found, model)
    about: dict[str, Any]
    if isinstance(model, MixedRegressor):
        about = {"relations": tuple(_records(model.fixed_effects_, ()))}
    else:
        model.set_params(verbose=0)
        relations = tuple(_records(model.findings_.relations, model.findings_.of_class))
        about = {"relations": relations, "advice": tuple(model.advice_), "pooling": float(model.pooling_)}
    saved = TableModel(
        task=kind,
        target=target,
        environment=environment,
        id=found.options.id,
        columns=columns,
        coefficients=tuple(map(tuple, np.atleast_2d(linear.coef_).astype(float).tolist())),
        intercepts=tuple(np.atleast_1d(linear.intercept_).astype(float).tolist()),
        classes=tuple(str(label) for label in model.classes_) if isinstance(model, HeteroClassifier) else (),
        effects=tuple(_effects(model.effects_)),
        notes=(*found.notes, *about_dropped(found, rows.used), *model.notes_),
        rows=rows.used.complete,
        **about,
    )
    return FittedTable(saved, model)


def held_out_table(
    data: TableData,
    target: str,
    environment: str | None,
    options: ReadingOptions | None = None,
    *,
    task: TableTask = "auto",
    effects: TableEffects = "linear",
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
        effects: as in `fit_table`; the pooled fit has straight lines.
        progress: called with (fits done, fits in all).
        settings: as in `fit_table`.

    Returns:
        environments x (hetero, pooled): mean squared errors, or shares of wrong classes.
    """
    # linear models of scikit-learn take a while to import, and a fit alone does without
    from holdfast.estimators.baselines.linear import PooledClassifier, PooledRegressor

    if options is not None:
        options.refuse(("weights",), "where environments are held out, whose errors have none")
    understanding, reading, fitting = stages(progress, (20, 10, 70))
    found = _understood(data, target, environment, options, CHUNK_ROWS, understanding, Passes())
    kind = _task(task, found)
    rows = SurveyedRows(found, Passes(), kind == "classification", [reading])
    cells, response, labels, _ = rows.encoded(encoded=False)
    compared = {
        "hetero": _estimator(kind, found, settings, effects),
        "pooled": PooledRegressor() if kind == "regression" else PooledClassifier(),
    }
    imputed = {name: _ImputedFit(estimator, found) for name, estimator in compared.items()}
    return held_out_errors(imputed, cells, response, labels, fitting)


def _understood(
    data: TableData | pd.DataFrame | Any,
    target: str,
    environment: str | None,
    options: ReadingOptions | None,
    chunk_rows: int,
    progress: Progress | None,
    passes: Passes,
    schema: TableModel | str | Path | None = None,
) -> Survey:
    """The survey of a table, with bins of environments and with what becomes of missing values."""
    options = options or ReadingOptions()
    surveying, completing = stages(progress, (50, 50))
    if isinstance(data, pd.DataFrame) or is_dask_frame(data):
        options.refuse(("separator", "decimal", "encoding"), "for a data frame")
        table: Any = TableFrames(data)
    else:
        table = open_table(data, options)
    if schema is not None:
        model = schema if isinstance(schema, TableModel) else TableModel.load(schema, argument="schema")
        found = survey_as(model, table, target, environment, options, chunk_rows=chunk_rows)
        return complete_survey(found, passes, progress)
    found = survey(table, target, environment, options, passes=passes, chunk_rows=chunk_rows, progress=surveying)
    return complete_survey(found, passes, completing)


def _with_knots(found: Survey, model: HeteroSplineRegressor) -> tuple[Column, ...]:
    """The columns, with the knots of those that have curves: the first feature of a column of numbers is its number."""
    first = np.cumsum([0, *(len(column.features) for column in found.columns)])
    knots = {number: tuple(map(float, placed)) for number, placed in model.expansion_.knots_.items()}
    return tuple(
        msgspec.structs.replace(column, knots=knots.get(int(number), ()))
        for column, number in zip(found.columns, first, strict=False)
    )


class _ImputedFit(BaseEstimator):
    """An estimator of the cells of a table, whose missing values are imputed from the rows that it is fitted to."""

    def __init__(self, estimator, found):
        self.estimator = estimator
        self.found = found

    def fit(self, X: pd.DataFrame, y: Any, *, environments: Any = None) -> "_ImputedFit":
        self.columns_ = refilled(self.found.columns, X, self.found.table.decimal)
        extra: dict[str, Any] = {}
        if isinstance(self.estimator, TableEstimator | MixedRegressor):
            extra = {"environments": environments}
            if isinstance(self.estimator, TableEstimator) and self.estimator.groups is not None:
                self.estimator.set_params(groups=groups_of(self.columns_))
        self.estimator.fit(self._features(X), y, **extra)
        return self

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        return self.estimator.predict(self._features(X))

    def _features(self, X: pd.DataFrame) -> pd.DataFrame:
        return encode(X, self.columns_, self.found.table.decimal)

    def __sklearn_tags__(self) -> Tags:
        return self.estimator.__sklearn_tags__()


def _estimator(
    task: TableTask, found: Survey, settings: Mapping[str, Any], effects: TableEffects = "linear"
) -> TableEstimator | MixedRegressor:
    known = dict(settings)
    invariance = known.get("invariance", "auto")
    rotated = known.get("rotation", False)
    owners = dict(zip(features_of(found.columns), groups_of(found.columns), strict=True))
    names = dict.fromkeys([*owners.values(), *owners])
    for argument in ("before", "after"):
        words = known.get(argument, ())
        chosen = named_columns((words,) if isinstance(words, str) else tuple(words), list(names), argument)
        known[argument] = list(dict.fromkeys(owners.get(each, each) for each in chosen))
    # class means are compared feature by feature
    if not rotated and (task == "regression" or invariance != "class_means"):
        known.setdefault("groups", list(owners.values()))
    if task == "regression":
        if effects == "mixed":
            return MixedRegressor(**settings)
        if known.pop("invariance", "auto") != "auto":
            raise ValueError(f"invariance must be left out for a regression, got {invariance!r}")
        if effects == "linear":
            return HeteroRegressor(**known)
        if known.pop("rotation", False):
            raise ValueError(f"rotation must be left out with curves of columns (effects={effects!r}), got True")
        # a table has categories and indicators, whose products are many; no model file has them
        return HeteroSplineRegressor(effects=effects, interactions=False, **known)
    if effects != "linear":
        raise ValueError(f"effects must be linear for a classification, got {effects!r}")
    if known.pop("level", "common") != "common":
        raise ValueError("level must be common for a classification, got 'environment'")
    return HeteroClassifier(**known)


def _task(task: TableTask, found: Survey) -> Literal["regression", "classification"]:
    values, target = found.target_values, found.target
    if found.known_task is not None:
        if task not in ("auto", found.known_task):
            raise ValueError(f"task must be {found.known_task} as in the schema, got {task!r}")
        return found.known_task
    if values is not None and len(values) == 1:
        raise ValueError(f"target must vary, got {target!r}, which is {values[0]!r} in every row")
    if values == ():
        raise ValueError(f"target must hold values, got {target!r} without any")
    if task == "auto":
        two = values is not None and len(values) == 2
        return "classification" if two or not found.target_numeric else "regression"
    if task == "regression" and not found.target_numeric:
        example = "too many texts to count" if values is None else repr(values[0])
        raise ValueError(f"target must hold numbers for a regression, got {target!r} with {example}")
    return task


def _records(frame: pd.DataFrame, classes: Sequence[Any]) -> list[dict]:
    """The rows of a table, with the class that each is about where there are more than two."""
    table = frame.reset_index()
    if classes:
        table.insert(1, "class", [str(label) for label in classes])
    table[table.columns[0]] = table[table.columns[0]].astype(str)
    known = table.notna() & ~table.isin([np.inf, -np.inf])
    return table.astype(object).where(known, None).to_dict("records")


def _effects(frame: pd.DataFrame) -> Iterator[EnvironmentEffects]:
    for label, effects in frame.iterrows():
        known = {str(name): float(value) if np.isfinite(value) else None for name, value in effects.items()}
        yield EnvironmentEffects(str(label), known)
