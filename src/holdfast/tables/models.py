"""Linear models of tables in files, and their predictions, without jax or scikit-learn.

A model is JSON that is checked against its schema. Loading runs no code from the file.
"""

import re
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import pandas as pd

from holdfast import __version__
from holdfast.core.validation import one_line, require
from holdfast.core.writing import STANDARD_STREAM
from holdfast.tables.columns import Column, EncodedColumn, Finite, check_kind, encode_column, features_of, groups_of
from holdfast.tables.encoding import CellFaults, encoded_columns
from holdfast.tables.options import KNOWN_BY_MODELS, FileOptions, listed
from holdfast.tables.reading import CHUNK_ROWS, TableData, check_usable, open_table
from holdfast.tables.remote import data_file, writing
from holdfast.tables.values import as_text

FORMAT = "holdfast linear model"
FORMAT_VERSION = 3
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
            endless = [name for name, weight in zip(features, row, strict=True) if not np.isfinite(weight)]
            require(not endless, "columns must be in units that give finite coefficients", listed(endless))
        if not np.isfinite(self.intercepts).all():
            raise ValueError("columns must be in units that give finite intercepts")
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


def _of_an_old_format(old: dict[str, Any], version: int) -> dict[str, Any]:
    """An older model in the present format, without what was described in other words: the stability, first effects."""
    if version > 1:
        return {**{name: old[name] for name in old if name != "stability"}, "format": f"{FORMAT} {FORMAT_VERSION}"}
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
this one reads 1 to 3)
    """
    try:
        header = msgspec.json.decode(content, type=_Header)
        match = _FORMAT.fullmatch(header.format)
        if match is None:
            raise ValueError(f"the format is not {FORMAT!r}")
        version = int(match[1])
        if not 1 <= version <= FORMAT_VERSION:
            raise ValueError(f"format {version}, of a newer holdfast; this one reads 1 to {FORMAT_VERSION}")
        if version < FORMAT_VERSION:
            return msgspec.convert(_of_an_old_format(msgspec.json.decode(content), version), TableModel)
        return msgspec.json.decode(content, type=TableModel)
    except (ValueError, RecursionError, AttributeError, LookupError, TypeError) as error:  # msgspec has ValueErrors
        raise ValueError(
            f"{argument} must be a file written by `holdfast fit`, got {name} ({one_line(error)})"
        ) from error


class TablePredictions:
    r"""Predictions for a table, chunk by chunk; reading them counts the rows that have none.

    Attributes:
        notes: how the files were read, if in an unusual way.
        rows, empty: rows so far, and those without a prediction.
        faults: why they have none, column by column.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from holdfast.tables.columns import Column
        >>> model = TableModel(
        ...     task="regression", target="y", columns=(Column("x"),), coefficients=((2.0,),), intercepts=(1.0,)
        ... )
        >>> path = Path(tempfile.mkdtemp()) / "table.csv"
        >>> _ = path.write_text("key,x\na,1\nb,\n")
        >>> predictions = TablePredictions(model, path, FileOptions(id="key"))
        >>> [chunk["prediction"].tolist() for chunk in predictions]
        [[3.0, nan]]
        >>> predictions.about_empty()
        '1 of 2 rows have no prediction: x is missing in 1'
    """

    def __init__(
        self, model: TableModel, data: TableData, options: FileOptions | None = None, *, chunk_rows: int = CHUNK_ROWS
    ):
        options = options or FileOptions()
        options.refuse(KNOWN_BY_MODELS, "for a prediction, whose columns the model knows")
        self._table = open_table(data, options)
        self._model, self._needed, self._chunk_rows = model, model.needed, chunk_rows
        self.notes = list(self._table.notes)
        names = self._table.columns
        self._id = model.id if options.id is None else options.id
        if self._id is not None and self._id not in names:
            require(options.id is None, f"id must be one of the columns {listed(names)}", repr(options.id))
            self.notes.append(f"{self._table.name} has no column {model.id}, which identifies rows in the model.")
            self._id = None
        needed, carried = [column.name for column in self._needed], [] if self._id is None else [self._id]
        check_present(needed, names, self._table.name)
        check_usable([*needed, *carried], self._table)
        # a model without any coefficient still has a prediction for each row
        self._read = [*needed, *carried] or names[:1]
        self._text = {*carried, *(column.name for column in self._needed if column.type.reads_text)}
        self._start()

    def _start(self) -> None:
        self.rows = self.empty = 0
        self.faults = CellFaults()

    def __iter__(self) -> Iterator[pd.DataFrame]:
        self._start()
        for chunk in self._table.chunks(self._chunk_rows, self._text, self._read):
            yield self._predict(chunk)
        require(self.rows > 0, "data must have at least one row", f"{self._table.name} with none")

    def _predict(self, chunk: pd.DataFrame) -> pd.DataFrame:
        if self.rows == 0:
            for column in self._needed:
                check_kind(chunk[column.name], column, self._table.decimal, self._table.name)
        encoded, found = encoded_columns(chunk, self._needed, self._table.decimal)
        self.faults = self.faults.merge(found)
        predicted = self._model.combine(encoded, chunk)
        self.rows += len(chunk)
        self.empty += int(predicted["prediction"].isna().sum())
        if self._id is not None:
            name = self._id if self._id not in predicted else f"{self._id} (id)"
            predicted.insert(0, name, np.asarray(as_text(chunk[self._id]), dtype=object))
        return predicted

    def about_stray(self) -> list[str]:
        """Which columns hold something else than the numbers or dates of the fit, a sentence for each."""
        return self.faults.about_stray(self.rows)

    def about_empty(self) -> str | None:
        """Why rows have no prediction, in words; None if all have one."""
        if not self.empty:
            return None
        because = "; ".join(self.faults.reasons()) or "numbers are too large"
        return f"{self.empty} of {self.rows} rows have no prediction: {because}"


def predict_table(
    model: TableModel, data: TableData, options: FileOptions | None = None, *, chunk_rows: int = CHUNK_ROWS
) -> TablePredictions:
    r"""Predictions for the table of one or several files, chunk by chunk.

    Args:
        model: of `fit_table`, or loaded.
        data: the files; their columns have the names and kinds that were fitted.
        options: how the files are read.
        chunk_rows: rows in a chunk.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from holdfast.tables.columns import Column
        >>> model = TableModel(
        ...     task="regression", target="y", columns=(Column("x"),), coefficients=((2.0,),), intercepts=(1.0,)
        ... )
        >>> path = Path(tempfile.mkdtemp()) / "table.csv"
        >>> _ = path.write_text("x\n1\n3\n")
        >>> [chunk["prediction"].tolist() for chunk in predict_table(model, path)]
        [[3.0, 7.0]]
    """
    return TablePredictions(model, data, options, chunk_rows=chunk_rows)
