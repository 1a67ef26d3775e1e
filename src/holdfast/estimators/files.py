"""Models of tables in files: fitted, saved as JSON, loaded and applied. Loading runs no code from the file."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from holdfast import __version__
from holdfast.core.progress import Progress
from holdfast.estimators.baselines import PooledClassifier, PooledRegressor
from holdfast.estimators.classifier import HeteroClassifier
from holdfast.estimators.held_out import held_out_errors
from holdfast.estimators.regressor import HeteroRegressor
from holdfast.io.tables import CHUNK_ROWS, Column, Survey, check_loss, complete_rows, encode, read_chunks, survey

FORMAT = "holdfast linear model 1"
Task = Literal["auto", "regression", "classification"]


@dataclass
class TableModel:
    """An invariant linear predictor for the columns of a file.

    Attributes:
        task: regression or classification.
        target, environment: names of columns.
        columns: the columns that it reads, and what becomes of them.
        coefficients, intercept: of the features.
        classes: the two labels of a classification, as text.
        stability, effects: the tables of the estimator, as lists of rows.
        advice, notes: sentences about the result and about the file.
        choice: why this amplification and step size.
        amplification, step_size: the choice.
        rows: that were used.
        version: of holdfast.
    """

    task: str
    target: str
    environment: str | None
    columns: list[Column]
    coefficients: list[float]
    intercept: float
    classes: list[str]
    stability: list[dict]
    effects: list[dict]
    advice: list[str]
    notes: list[str]
    choice: str
    amplification: float
    step_size: float
    rows: int
    version: str = __version__

    @property
    def features(self) -> list[str]:
        """Names of the features."""
        return [feature for column in self.columns for feature in column.features]

    def save(self, path: Path) -> None:
        """Write the model as JSON."""
        with Path(path).open("w", encoding="utf-8") as file:
            json.dump({"format": FORMAT} | asdict(self), file, indent=1, allow_nan=False)

    @classmethod
    def load(cls, path: Path) -> "TableModel":
        """Read a model; refuses what is none."""
        if not Path(path).exists():
            raise ValueError(f"model must be an existing file, got {path}")
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
            if content.pop("format") != FORMAT:
                raise ValueError("another format")
            content["columns"] = [Column(**column) for column in content["columns"]]
            model = cls(**content)
            np.asarray(model.coefficients, float)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"model must be a file written by `holdfast fit`, got {path} ({error})") from error
        return model

    def predict(self, chunk: pd.DataFrame) -> pd.DataFrame:
        """Predictions for the rows of a table; empty where a value is missing or a category is new.

        Columns whose coefficients are all zero are not asked for.
        """
        weights = dict(zip(self.features, self.coefficients, strict=True))
        used = [column for column in self.columns if any(weights[feature] for feature in column.features)]
        features = encode(chunk, used)
        scores = features.to_numpy(float) @ np.array([weights[name] for name in features.columns]) + self.intercept
        if self.task == "regression":
            return pd.DataFrame({"prediction": scores}, index=chunk.index)
        known = np.isfinite(scores)
        labels = np.where(scores > 0, self.classes[1], self.classes[0])
        probability = 1 / (1 + np.exp(-np.clip(scores, -700, 700)))
        return pd.DataFrame(
            {
                "prediction": pd.Series(labels, chunk.index).where(known),
                f"probability of {self.classes[1]}": probability,
            },
            index=chunk.index,
        )


class FittedTable(NamedTuple):
    """The model of a file, and the estimator that it came from."""

    model: TableModel
    estimator: HeteroRegressor | HeteroClassifier


def fit_table(
    path: Path,
    target: str,
    environment: str | None = None,
    *,
    task: Task = "auto",
    exclude: Sequence[str] = (),
    chunk_rows: int = CHUNK_ROWS,
    **settings: Any,
) -> FittedTable:
    """Fit the table of a file, which is read two or three times, in chunks; a regression needs no more memory than one.

    Args:
        path: .csv, .parquet or .feather.
        target: name of the column to predict.
        environment: name of the column with the environments; None: one environment.
        task: "auto" is classification for a target of two values, regression for other numbers.
        exclude: names of columns to leave out.
        chunk_rows: rows in a chunk.
        settings: of `HeteroRegressor` or `HeteroClassifier`.
    """
    found = survey(path, target, environment, exclude, chunk_rows=chunk_rows)
    task = _task(task, found, target)
    used = _Rows(complete_rows(path, found, target, environment, chunk_rows=chunk_rows))
    model = _estimator(task, settings)
    if isinstance(model, HeteroRegressor):
        _refuse_if_empty(found, used)
        model.fit_chunks((x, y.astype(float), labels) for x, y, labels in used)
    else:
        features, response, labels = _together(found, used)
        model.fit(features, response, environments=labels)
    notes = [*found.notes, *check_loss(found, used.count)]
    classes = [str(label) for label in model.classes_] if isinstance(model, HeteroClassifier) else []
    stored = TableModel(
        task,
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
    return FittedTable(stored, model)


def advise_table(path: Path, target: str, environment: str | None, *, exclude: Sequence[str] = ()) -> list[str]:
    """What the table of a file can say about invariance: notes on its columns, then the advice of a fit.

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
    task: Task = "auto",
    exclude: Sequence[str] = (),
    progress: Progress | None = None,
    **settings: Any,
) -> pd.DataFrame:
    """Errors in each environment of a file when all others are fitted: of an invariant predictor and of a pooled one.

    The table is held in memory.

    Args:
        path: .csv, .parquet or .feather.
        target: name of the column to predict.
        environment: name of the column with the environments; two different ones at least.
        task: as in `fit_table`.
        exclude: names of columns to leave out.
        progress: called with (fits done, fits in all).
        settings: of `HeteroRegressor` or `HeteroClassifier`.

    Returns:
        environments x (invariant, pooled): mean squared errors, or shares of wrong classes.
    """
    found = survey(path, target, environment, exclude)
    task = _task(task, found, target)
    features, response, labels = _together(found, _Rows(complete_rows(path, found, target, environment)))
    pooled = PooledRegressor() if task == "regression" else PooledClassifier()
    compared = {"invariant": _estimator(task, settings), "pooled": pooled}
    return held_out_errors(compared, features, response, labels, progress)


def predict_table(model: TableModel, path: Path) -> Iterator[pd.DataFrame]:
    """Predictions for the table of a file, chunk by chunk."""
    text = {column.name for column in model.columns if column.categories}
    return (model.predict(chunk) for chunk in read_chunks(path, text=text))


class _Rows:
    """Chunks on their way into a fit, counted."""

    def __init__(self, chunks: Iterator[tuple]):
        self._chunks, self.count = chunks, 0

    def __iter__(self) -> Iterator[tuple]:
        for chunk in self._chunks:
            self.count += len(chunk[0])
            yield chunk


def _estimator(task: Task, settings: Mapping[str, Any]) -> HeteroRegressor | HeteroClassifier:
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


def _refuse_if_empty(found: Survey, rows: _Rows) -> None:
    """Look at the first chunk before the fit does, to say why there is none."""
    first = next(rows._chunks, None)
    if first is None:
        check_loss(found, 0)
        raise ValueError("data must have at least one row, got none")
    rest = rows._chunks
    rows._chunks = (chunk for part in ([first], rest) for chunk in part)


def _task(task: Task, found: Survey, target: str) -> Literal["regression", "classification"]:
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
    if task == "regression" and not found.target_numeric:
        raise ValueError(f"target must hold numbers for a regression, got {target!r} with {found.target_values[0]!r}")
    return task


def _records(frame: pd.DataFrame) -> list[dict]:
    table = frame.reset_index()
    table[table.columns[0]] = table[table.columns[0]].astype(str)
    return json.loads(table.to_json(orient="records", double_precision=15))
