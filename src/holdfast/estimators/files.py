"""Invariant predictors for tables in files: fit, advise, hold out, predict."""

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from holdfast.core.progress import Progress
from holdfast.estimators.baselines.pooled import PooledClassifier, PooledRegressor
from holdfast.estimators.classifier import HeteroClassifier
from holdfast.estimators.held_out import held_out_errors
from holdfast.estimators.regressor import HeteroRegressor
from holdfast.io.models import TableModel
from holdfast.io.tables import CHUNK_ROWS, Survey, check_loss, complete_rows, read_chunks, survey

TableTask = Literal["auto", "regression", "classification"]


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
    estimator: HeteroRegressor | HeteroClassifier


def fit_table(
    path: Path,
    target: str,
    environment: str | None = None,
    *,
    task: TableTask = "auto",
    exclude: Sequence[str] = (),
    chunk_rows: int = CHUNK_ROWS,
    **settings: Any,
) -> FittedTable:
    """Fit the table of a file, which is read two or three times; a regression needs memory for one chunk only.

    Args:
        path: .csv, .parquet or .feather.
        target: name of the column to predict.
        environment: name of the column with the environments; None: one environment.
        task: "auto" is classification for a target of two values, regression for other numbers.
        exclude: names of columns to leave out.
        chunk_rows: rows in a chunk.
        settings: of `HeteroRegressor` or `HeteroClassifier`.

    Example, the causes x0, x1 and x2 of y are found:
        >>> import tempfile
        >>> from holdfast.datasets import toy_dataset
        >>> rows, path = toy_dataset(1.0, 0.5, seed=0, samples=200).train, Path(tempfile.mkdtemp()) / "table.csv"
        >>> table = pd.DataFrame(rows.inputs).add_prefix("x").assign(y=rows.targets, e=rows.environments)
        >>> table.to_csv(path, index=False)
        >>> model = fit_table(path, target="y", environment="e").model
        >>> [name for name, weight in zip(model.features, model.coefficients, strict=True) if weight]
        ['x0', 'x1', 'x2']
    """
    found = survey(path, target, environment, exclude, chunk_rows=chunk_rows)
    kind = _task(task, found, target)
    used = _Rows(complete_rows(path, found, target, environment, chunk_rows=chunk_rows))
    model = _estimator(kind, settings)
    if isinstance(model, HeteroRegressor):
        first = next(iter(used), None)
        if first is None:
            check_loss(found, 0)
            raise ValueError("data must have at least one row, got none")
        model.fit_chunks((x, y.astype(float), labels) for x, y, labels in itertools.chain([first], used))
    else:
        features, response, labels = _together(found, used)
        model.fit(features, response, environments=labels)
    notes = [*found.notes, *check_loss(found, used.count)]
    classes = [str(label) for label in model.classes_] if isinstance(model, HeteroClassifier) else []
    saved = TableModel(
        kind,
        target,
        environment,
        found.columns,
        np.ravel(model.coef_).tolist(),
        float(np.ravel(model.intercept_)[0]),
        classes,
        _records(model.stability_),
        _records(model.effects_),
        list(model.advice_),
        notes,
        model.choice_,
        float(model.amplification_),
        float(model.step_size_),
        used.count,
    )
    return FittedTable(saved, model)


def advise_table(path: Path, target: str, environment: str | None, *, exclude: Sequence[str] = ()) -> list[str]:
    """Advice on the table of a file: notes on its columns, then what a fit says about invariance.

    Args:
        path: .csv, .parquet or .feather.
        target: name of the column to predict.
        environment: name of the column with the environments.
        exclude: names of columns to leave out.
    """
    model, _ = fit_table(path, target, environment, exclude=exclude)
    return model.notes + model.advice


def held_out_table(
    path: Path,
    target: str,
    environment: str | None,
    *,
    task: TableTask = "auto",
    exclude: Sequence[str] = (),
    progress: Progress | None = None,
    **settings: Any,
) -> pd.DataFrame:
    """Errors in each environment of a file when all others are fitted: of an invariant predictor and of a pooled one.

    The table has to fit into memory.

    Args:
        path: .csv, .parquet or .feather.
        target: name of the column to predict.
        environment: name of the column with the environments; at least two different ones.
        task: as in `fit_table`.
        exclude: names of columns to leave out.
        progress: called with (fits done, fits in all).
        settings: of `HeteroRegressor` or `HeteroClassifier`.

    Returns:
        environments x (invariant, pooled): mean squared errors, or shares of wrong classes.
    """
    found = survey(path, target, environment, exclude)
    kind = _task(task, found, target)
    features, response, labels = _together(found, _Rows(complete_rows(path, found, target, environment)))
    pooled = PooledRegressor() if kind == "regression" else PooledClassifier()
    compared = {"invariant": _estimator(kind, settings), "pooled": pooled}
    return held_out_errors(compared, features, response, labels, progress)


def predict_table(model: TableModel, path: Path) -> Iterator[pd.DataFrame]:
    """Predictions for the table of a file, chunk by chunk.

    Example:
        >>> import tempfile
        >>> from holdfast.io.tables import Column
        >>> none = {"stability": [], "effects": [], "advice": [], "notes": [], "choice": ""}
        >>> model = TableModel(
        ...     "regression", "y", None, [Column("x")], [2.0], 1.0, [], amplification=0, step_size=1, rows=2, **none
        ... )
        >>> path = Path(tempfile.mkdtemp()) / "table.csv"
        >>> pd.DataFrame({"x": [1.0, 3.0]}).to_csv(path, index=False)
        >>> [chunk["prediction"].tolist() for chunk in predict_table(model, path)]
        [[3.0, 7.0]]
    """
    text = {column.name for column in model.columns if column.categories}
    return (model.predict(chunk) for chunk in read_chunks(path, text=text))


class _Rows:
    """Chunks that count the rows that pass."""

    def __init__(self, chunks: Iterator[tuple]):
        self._chunks, self.count = chunks, 0

    def __iter__(self) -> Iterator[tuple]:
        for chunk in self._chunks:
            self.count += len(chunk[0])
            yield chunk


def _estimator(task: TableTask, settings: Mapping[str, Any]) -> HeteroRegressor | HeteroClassifier:
    if task == "regression":
        return HeteroRegressor(**settings)
    known = dict(settings)
    if known.pop("level", "common") != "common":
        raise ValueError("level must be common for a classification, got 'environment'")
    return HeteroClassifier(**known)


def _together(found: Survey, rows: _Rows) -> tuple[pd.DataFrame, pd.Series, pd.Series | None]:
    """Features, target and environments of all rows at once."""
    parts = list(rows)
    if not parts:
        raise ValueError(f"data must have complete rows, got {found.rows} rows with missing values in each")
    features, response, labels = zip(*parts, strict=True)
    return pd.concat(features), pd.concat(response), None if labels[0] is None else pd.concat(labels)


def _task(task: TableTask, found: Survey, target: str) -> Literal["regression", "classification"]:
    if len(found.target_values) == 1:
        raise ValueError(f"target must vary, got {target!r}, which is {found.target_values[0]!r} in every row")
    if not found.target_values:
        raise ValueError(f"target must hold values, got {target!r} without any")
    if task == "auto":
        if len(found.target_values) == 2:
            return "classification"
        if not found.target_numeric:
            raise ValueError(
                f"target must hold numbers, or two different values, got {target!r} with "
                f"{', '.join(map(str, found.target_values[:3]))}, ..."
            )
        return "regression"
    if task == "classification" and len(found.target_values) > 2:
        raise ValueError(f"target must hold two different values for a classification, got {target!r} with more")
    if task == "regression" and not found.target_numeric:
        raise ValueError(f"target must hold numbers for a regression, got {target!r} with {found.target_values[0]!r}")
    return task


def _records(frame: pd.DataFrame) -> list[dict]:
    table = frame.reset_index()
    table[table.columns[0]] = table[table.columns[0]].astype(str)
    return json.loads(table.to_json(orient="records", double_precision=15))
