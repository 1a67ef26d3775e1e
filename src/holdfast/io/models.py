"""Linear models of tables in files: JSON that is checked against its schema. Loading runs no code from the file."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import pandas as pd
from scipy.special import expit

from holdfast import __version__
from holdfast.io.tables import Column, encode

FORMAT = "holdfast linear model 1"


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
        rows: number of rows that were used.
        version: of holdfast.

    Example:
        >>> none = {"stability": [], "effects": [], "advice": [], "notes": [], "choice": ""}
        >>> columns = [Column("light"), Column("soil", ["clay", "sand"])]
        >>> model = TableModel(
        ...     "regression", "yield", None, columns, [2.0, 0.5], 1.0, [], amplification=0, step_size=1, rows=2, **none
        ... )
        >>> model.predict(pd.DataFrame({"light": [1.0, 3.0], "soil": ["sand", "clay"]}))["prediction"].tolist()
        [3.5, 7.0]
    """

    task: Literal["regression", "classification"]
    target: str
    environment: str | None
    columns: list[Column]
    coefficients: list[float]
    intercept: float
    classes: list[str]
    stability: list[dict[str, Any]]
    effects: list[dict[str, Any]]
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
        """Read a model that `save` wrote; ValueError for any other file."""
        if not Path(path).exists():
            raise ValueError(f"model must be an existing file, got {path}")
        try:
            content = msgspec.json.decode(Path(path).read_bytes(), type=dict[str, Any])
            if content.pop("format", None) != FORMAT:
                raise ValueError(f"the format is not {FORMAT!r}")
            model = msgspec.convert(content, cls)
            if len(model.coefficients) != len(model.features):
                raise ValueError(f"{len(model.coefficients)} coefficients for {len(model.features)} features")
        except ValueError as error:  # those of msgspec are ValueErrors
            raise ValueError(f"model must be a file written by `holdfast fit`, got {path} ({error})") from error
        return model

    def predict(self, chunk: pd.DataFrame) -> pd.DataFrame:
        """Predictions for the rows of a table; empty where a value is missing or a category is new.

        Columns whose coefficients are all zero need not be in the table.
        """
        weights = dict(zip(self.features, self.coefficients, strict=True))
        used = [column for column in self.columns if any(weights[feature] for feature in column.features)]
        features = encode(chunk, used)
        scores = features.to_numpy(float) @ np.array([weights[name] for name in features.columns]) + self.intercept
        if self.task == "regression":
            return pd.DataFrame({"prediction": scores}, index=chunk.index)
        known = np.isfinite(scores)
        labels = np.where(scores > 0, self.classes[1], self.classes[0])
        return pd.DataFrame(
            {
                "prediction": pd.Series(labels, chunk.index).where(known),
                f"probability of {self.classes[1]}": expit(scores),
            },
            index=chunk.index,
        )
