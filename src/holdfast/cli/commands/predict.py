"""`holdfast predict`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro


@dataclass(frozen=True)
class PredictArguments:
    """Predict the rows of a table with a model of `holdfast fit`.

    Writes one line of CSV for each row, empty where a needed value is missing or a category is new.
    """

    model: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="MODEL")]]
    """The model."""
    data: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="DATA")]]
    """The table: .csv, .parquet or .feather, with the columns of the table that was fitted."""
    out: Path | None = None
    """Write the predictions to this CSV file instead of printing them."""
    overwrite: bool = False
    """Replace the file if it exists."""


def execute(arguments: PredictArguments) -> int:
    """Predict chunk by chunk."""
    import itertools
    import sys

    from holdfast.estimators.files import predict_table
    from holdfast.io.models import TableModel

    model = TableModel.load(arguments.model)
    if arguments.out is not None and arguments.out.exists() and not arguments.overwrite:
        raise ValueError(f"out must be a new file, got {arguments.out}, which exists; --overwrite replaces it")
    chunks = predict_table(model, arguments.data)
    first = next(chunks)  # report what is wrong with the table before anything is written
    target = sys.stdout if arguments.out is None else arguments.out.open("w", encoding="utf-8", newline="")
    rows = empty = 0
    try:
        for chunk in itertools.chain([first], chunks):
            chunk.to_csv(target, index=False, header=rows == 0)
            rows, empty = rows + len(chunk), empty + int(chunk["prediction"].isna().sum())
    finally:
        if arguments.out is not None:
            target.close()
    if empty:
        print(
            f"holdfast: {empty} of {rows} rows have no prediction: a value is missing or a category is new",
            file=sys.stderr,
        )
    return 0
