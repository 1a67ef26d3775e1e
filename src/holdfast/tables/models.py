"""Linear models of tables in files: JSON that is checked against its schema. Loading runs no code from the file."""

import re
import sys
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import pandas as pd

from holdfast import __version__
from holdfast.core.validation import one_line, require
from holdfast.core.writing import STANDARD_STREAM
from holdfast.tables.columns import Column, EncodedColumn, Finite, encode_column, features_of, groups_of
from holdfast.tables.remote import data_file, writing

FORMAT = "holdfast linear model"
FORMAT_VERSION = 2
_FORMAT = re.compile(rf"{FORMAT} (\d{{1,9}})")

Scalar = Finite | int | str | bool | None
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class EnvironmentEffects(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The effects of the features in one environment; None where it measures none."""

    environment: str
    effects: dict[str, Finite | None]


class TableModel(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    kw_only=True,
    tag_field="format",
    tag=f"{FORMAT} {FORMAT_VERSION}",
):
    """An invariant linear predictor for the columns of a table.

    Attributes:
        task: regression or classification.
        target: name of a column.
        environment: what the environments were, as `environment_labels` takes it.
        id: column that identifies rows, carried into predictions.
        columns: the columns that it reads, and what becomes of them.
        coefficients: one row of numbers, one for each feature; with more than two classes one row for each class.
        intercepts: one for each row of coefficients.
        classes: the labels of a classification, as text.
        relations: the table of the estimator, one entry for each feature; of more than two classes with the one
            that it is about.
        effects: the effects of the features in each environment.
        advice, notes: sentences about the result and about the table.
        pooling: weight of the pooled fit, from 0 (strict) to 1.
        rows: number of rows that were used.
        version: of holdfast.

    Example:
        >>> columns = (Column("light"), Column("soil", "category", ("clay", "sand")))
        >>> model = TableModel(
        ...     task="regression", target="yield", columns=columns, coefficients=((2.0, 0.5),), intercepts=(1.0,)
        ... )
        >>> model.predict(pd.DataFrame({"light": [1.0, 3.0], "soil": ["sand", "clay"]}))["prediction"].tolist()
        [3.5, 7.0]
    """

    task: Literal["regression", "classification"]
    target: str
    columns: tuple[Column, ...]
    coefficients: tuple[tuple[Finite, ...], ...]
    intercepts: tuple[Finite, ...]
    classes: tuple[str, ...] = ()
    environment: str | None = None
    id: str | None = None
    relations: tuple[dict[str, Scalar], ...] = ()
    effects: tuple[EnvironmentEffects, ...] = ()
    advice: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    pooling: Share | None = None
    rows: Count = 0
    version: str = __version__

    def __post_init__(self) -> None:
        features = self.features
        if self.task == "regression" and self.classes:
            raise ValueError(f"a regression has no classes, got {len(self.classes)}")
        if self.task == "classification" and len(set(self.classes)) != max(2, len(self.classes)):
            raise ValueError(f"a classification has at least two different classes, got {', '.join(self.classes)}")
        expected = 1 if len(self.classes) <= 2 else len(self.classes)
        if len(self.coefficients) != expected or len(self.intercepts) != expected:
            raise ValueError(
                f"{len(self.coefficients)} rows of coefficients and {len(self.intercepts)} intercepts, not {expected}"
            )
        for row in self.coefficients:
            if len(row) != len(features):
                raise ValueError(f"{len(row)} coefficients for {len(features)} features")
        if len(set(features)) < len(features) or len({column.name for column in self.columns}) < len(self.columns):
            raise ValueError("two columns or features have the same name")

    @property
    def features(self) -> list[str]:
        """Names of the features."""
        return features_of(self.columns)

    @property
    def groups(self) -> list[str]:
        """For each feature, the column that it comes from."""
        return groups_of(self.columns)

    @property
    def needed(self) -> list[Column]:
        """The columns that predictions depend on: those with a coefficient other than zero."""
        weights = self._weights
        return [column for column in self.columns if weights[column.name].any()]

    @property
    def _weights(self) -> dict[str, np.ndarray]:
        """Column -> its coefficients, (rows of coefficients, features of the column)."""
        ends = np.cumsum([0, *(len(column.features) for column in self.columns)])
        table = np.array(self.coefficients).reshape(len(self.coefficients), -1)
        return {column.name: table[:, a:b] for column, a, b in zip(self.columns, ends[:-1], ends[1:], strict=True)}

    def save(self, path: str | Path) -> None:
        """Write the model as JSON, whole or not at all, to a path or an address such as s3://bucket/model.json."""
        content = self.json()
        with writing(data_file(path)) as unfinished:
            unfinished.write_bytes(content)

    def json(self) -> bytes:
        """The model as JSON."""
        return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"

    @classmethod
    def load(cls, path: str | Path, *, argument: str = "model") -> "TableModel":
        """Read a model that `save` wrote; ValueError, which names the argument, for any other file.

        "-" is standard input.
        """
        file = data_file(path)
        if file == STANDARD_STREAM:
            return read_model(sys.stdin.buffer.read(), "standard input", argument)
        require(file.exists(), f"{argument} must be an existing file", repr(str(file)))
        try:
            with file.open("rb") as opened:
                content = opened.read()
        except OSError as error:
            raise ValueError(
                f"{argument} must be a file that can be read, got {str(file)!r} ({error.strerror})"
            ) from error
        return read_model(content, str(file), argument)

    def predict(self, chunk: pd.DataFrame, decimal: str = ".") -> pd.DataFrame:
        """Predictions for the rows of a table; empty where a value is missing or a category is new.

        Columns whose coefficients are all zero need not be in the table.
        """
        needed = self.needed
        check_present((column.name for column in needed), chunk.columns)
        return self.combine([encode_column(chunk[column.name], column, decimal) for column in needed], chunk)

    def combine(self, encoded: Sequence[EncodedColumn], chunk: pd.DataFrame) -> pd.DataFrame:
        """Predictions from the encoded columns that are needed, in their order."""
        weights = self._weights
        scores = np.tile(np.array(self.intercepts), (len(chunk), 1))
        with np.errstate(over="ignore", invalid="ignore"):
            for column, own in zip(self.needed, encoded, strict=True):
                scores = scores + own.values @ weights[column.name].T
        known = np.isfinite(scores).all(axis=1)
        scores[~known] = np.nan
        if self.task == "regression":
            return pd.DataFrame({"prediction": scores[:, 0]}, index=chunk.index)
        from scipy.special import softmax  # takes a while to import, and regressions do without

        if len(self.classes) == 2:  # one score, that of the second class against the first
            scores = np.column_stack([np.zeros(len(scores)), scores])
        with np.errstate(over="ignore"):
            probabilities = softmax(scores, axis=1)
        best = np.argmax(np.where(known[:, None], probabilities, 0), axis=1)
        labels = np.array(self.classes, dtype=object)[best]
        labels[~known] = None
        named = dict(zip(self.classes, probabilities.T, strict=True))
        if len(self.classes) == 2:
            del named[self.classes[0]]
        columns = {f"probability of {label}": values for label, values in named.items()}
        return pd.DataFrame({"prediction": labels, **columns}, index=chunk.index)


def check_present(needed: Iterable[str], columns: Collection[str], file: str = "data") -> None:
    """Raise a ValueError if a table lacks columns that a model needs."""
    names = [name for name in needed if name not in columns]
    what = f"{'columns' if len(names) > 1 else 'column'} {', '.join(map(repr, names))}"
    require(not names, f"data must have the {what} that the model was fitted with", f"{file} without")


class _Header(msgspec.Struct):
    format: str


def _of_the_first_format(old: dict[str, Any]) -> dict[str, Any]:
    """A model of holdfast 0.1 in the present format, without its effects, which were described in other words."""
    same = ("task", "target", "environment", "classes", "advice", "notes", "rows", "version")
    columns = [{**column, "kind": "category" if column.get("categories") else "number"} for column in old["columns"]]
    return {
        "format": f"{FORMAT} {FORMAT_VERSION}",
        **{name: old[name] for name in same},
        "columns": columns,
        "coefficients": [old["coefficients"]],
        "intercepts": [old["intercept"]],
    }


def read_model(content: bytes, name: str, argument: str = "model") -> TableModel:
    """The model that a file holds; ValueError with the reason otherwise.

    Args:
        content: of the file.
        name: of the file.
        argument: by which it was given.

    Example:
        >>> read_model(b'{"format": "holdfast linear model 9"}', "model.json")
        Traceback (most recent call last):
        ValueError: model must be a file written by `holdfast fit`, got model.json (format 9, of a newer holdfast; \
this one reads 1 to 2)
    """
    try:
        header = msgspec.json.decode(content, type=_Header)
        match = _FORMAT.fullmatch(header.format)
        if match is None:
            raise ValueError(f"the format is not {FORMAT!r}")
        version = int(match[1])
        if not 1 <= version <= FORMAT_VERSION:
            raise ValueError(f"format {version}, of a newer holdfast; this one reads 1 to {FORMAT_VERSION}")
        if version == 1:
            return msgspec.convert(_of_the_first_format(msgspec.json.decode(content)), TableModel)
        return msgspec.json.decode(content, type=TableModel)
    except (ValueError, RecursionError, AttributeError, LookupError, TypeError) as error:  # msgspec has ValueErrors
        raise ValueError(
            f"{argument} must be a file written by `holdfast fit`, got {name} ({one_line(error)})"
        ) from error
