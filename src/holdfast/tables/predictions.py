"""Predictions for tables in files, with the reasons why rows have none. Imports neither jax nor scikit-learn."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from holdfast.core.validation import require
from holdfast.tables.columns import check_kind
from holdfast.tables.encoding import CellFaults, encoded_columns
from holdfast.tables.models import TableModel, check_present
from holdfast.tables.options import KNOWN_BY_MODELS, ReadingOptions, listed
from holdfast.tables.parts import CHUNK_ROWS, check_usable
from holdfast.tables.reading import TableData, open_table
from holdfast.tables.values import as_text


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
        >>> predictions = TablePredictions(model, path, ReadingOptions(id="key"))
        >>> [chunk["prediction"].tolist() for chunk in predictions]
        [[3.0, nan]]
        >>> predictions.about_empty()
        '1 of 2 rows have no prediction: x is missing in 1'
    """

    def __init__(
        self, model: TableModel, data: TableData, options: ReadingOptions | None = None, *, chunk_rows: int = CHUNK_ROWS
    ):
        options = options or ReadingOptions()
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
    model: TableModel, data: TableData, options: ReadingOptions | None = None, *, chunk_rows: int = CHUNK_ROWS
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
