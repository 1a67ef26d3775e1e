"""`holdfast predict`."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TextIO

from holdfast.apps.cli.command import Positional
from holdfast.tables.options import PredictionOptions

if TYPE_CHECKING:
    from holdfast.tables.remote import DataFile


@dataclass(frozen=True)
class PredictArguments:
    """Predict the rows of a table with a model of `holdfast fit`.

    Writes one line for each row, empty where a needed value is missing or a category is new; says why on stderr.

    Examples:

        holdfast predict model.json new.csv
        holdfast predict model.json new.csv --out predictions.csv --overwrite
    """

    model: Annotated[str, Positional("MODEL")]
    """The model, or its address (s3://...); - for standard input."""
    data: Annotated[str, Positional("DATA")]
    """The table, with the columns of the table that was fitted: .csv, .tsv (also .gz), .parquet or .feather; a
    pattern such as 'data/*.csv' in quotes; an address such as s3://bucket/plants.csv; - for standard input."""
    reading: PredictionOptions
    more: Annotated[tuple[str, ...], Positional("MORE")] = ()
    """More files of the same table."""
    out: str | None = None
    """Write the predictions to this .csv or .tsv file (also .gz) instead of printing them; or to an address, s3://..."""
    overwrite: bool = False
    """Replace the file if it exists."""


def execute(arguments: PredictArguments) -> int:
    """Predict chunk by chunk."""
    import itertools
    import sys

    from holdfast.core.writing import STANDARD_STREAM
    from holdfast.tables.models import TableModel
    from holdfast.tables.predictions import predict_table
    from holdfast.tables.reading import TEXT_SUFFIXES
    from holdfast.tables.remote import check_output_file, data_file

    data, out = (arguments.data, *arguments.more), data_file(arguments.out or STANDARD_STREAM)
    if arguments.model == str(STANDARD_STREAM) and arguments.model in data:
        raise ValueError("model and data must not both be standard input, got '-' for both")
    if out == STANDARD_STREAM and arguments.overwrite:
        raise ValueError("overwrite must be left out if no file is written: --out names one")
    check_output_file(out, list(TEXT_SUFFIXES), overwrite=arguments.overwrite)
    predictions = predict_table(TableModel.load(arguments.model), data, arguments.reading.reading)
    chunks = iter(predictions)
    first = next(chunks)  # report what is wrong with the table before anything is printed
    separator = "\t" if ".tsv" in out.name.lower() else ","
    with _opened(out) as file:
        for number, chunk in enumerate(itertools.chain([first], chunks)):
            chunk.to_csv(file, index=False, header=number == 0, sep=separator, lineterminator="\n")
    for note in filter(None, (*predictions.notes, *predictions.about_stray(), predictions.about_empty())):
        print(f"holdfast: {note}", file=sys.stderr)
    return 0


@contextmanager
def _opened(out: "DataFile") -> Iterator[TextIO]:
    """Where predictions are written: a file that appears when it is complete, or standard output."""
    import gzip
    import sys

    from holdfast.core.writing import STANDARD_STREAM
    from holdfast.tables.remote import writing

    if out == STANDARD_STREAM:
        yield sys.stdout
        return
    opened = gzip.open if out.name.lower().endswith(".gz") else open
    with writing(out) as unfinished, opened(unfinished, "wt", encoding="utf-8", newline="") as file:
        yield file
