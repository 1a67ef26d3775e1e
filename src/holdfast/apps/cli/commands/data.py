"""Your data: `holdfast advise`, `fit` and `predict`."""

import gzip
import itertools
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TextIO

from holdfast.apps.cli.command import Positional, answer, given
from holdfast.apps.cli.terminal import tables
from holdfast.apps.cli.terminal.progress import progress
from holdfast.core.progress import counted
from holdfast.core.writing import STANDARD_STREAM, check_output_folder
from holdfast.tables.options import FileOptions, ReadingOptions
from holdfast.tables.remote import DataFile, check_output_file, data_file, writing

# Options that apply to measurements; those that are not given are chosen by `holdfast.theory.examine`.
MEASURED = ("step_size", "steps", "init_scale", "confidence", "tolerance", "batch_size", "noise_variance")


@dataclass(frozen=True)
class FittingOptions:
    """How the table is fitted."""

    task: Literal["auto", "regression", "classification"] = "auto"
    """What to fit; auto: classification if the target is text or has two values."""
    pooling: Literal["auto"] | float = "auto"
    """From 0, features whose effects hold everywhere alone, to 1, a pooled fit of all features; auto: chosen from what
    both explain in environments that are held out."""
    significance: float = 0.001
    """Level of the tests of whether an effect varies."""
    effects: Literal["linear", "auto", "smooth"] = "linear"
    """Of a regression: straight lines; auto: curves for columns of numbers that need one; smooth: curves for all."""
    level: Literal["common", "environment"] = "common"
    """Of a regression: whether environments share an intercept, or have their own and only effects are compared."""
    invariance: Literal["auto", "effects", "class_means"] = "auto"
    """Of classes: what is compared between environments, the effects of the features on the class, or the means of the
    features in each class; auto: what explains more in environments that are held out."""
    rotation: bool = False
    """Look for coordinates first: the columns may be mixtures of what is invariant and what is not."""
    before: tuple[str, ...] = ()
    """Columns recorded before the target, which are judged by their effect on it alone."""
    after: tuple[str, ...] = ()
    """Columns recorded after the target, or because of it: they are left out unless their relation to it holds."""


@dataclass(frozen=True)
class FitArguments:
    """Fit a predictor to a table that relies on what holds in all environments, and say what that is.

    The table may be larger than memory. Columns of text become categories, dates count in days.

    Examples:

        holdfast fit wages.csv --target wage --environment region --out model.json
        holdfast fit wages.csv --target wage --environment region --held-out
        holdfast fit 'data/*.parquet' --target wage --environment region,urban
    """

    data: Annotated[str, Positional("DATA")]
    """The table: .csv, .tsv (also .gz), .parquet or .feather; a pattern such as 'data/*.csv' in quotes; an address
    such as 's3://bucket/*.parquet'; - for standard input."""
    target: str
    """Column to predict: numbers, or classes."""
    reading: ReadingOptions
    fitting: FittingOptions
    more: Annotated[tuple[str, ...], Positional("MORE")] = ()
    """More files of the same table."""
    environment: str | None = None
    """Column with the environments, or several with commas between them: region,urban; bins of a number: age:bins=4;
    periods of a date: date:year, quarter, month, week or day. Without it nothing can be washed out."""
    out: str | None = None
    """Write the model to this JSON file, or to an address (s3://...), for `holdfast predict`; - prints it instead of
    the table."""
    overwrite: bool = False
    """Replace the file if it exists."""
    tolerance: float = 0.0
    """Differences of an effect between environments (standard deviation, as a share of it) that do not matter."""
    held_out: bool = False
    """Hold out each environment in turn, and print the error on it next to that of a pooled fit; needs the table in
    memory."""
    plots: Path | None = None
    """Folder for figures: effects, danger, and with --held-out errors."""
    schema: str | None = None
    """A model of `holdfast fit`, by its path or address, whose columns, categories and imputed values are those of
    this table, which is then read only once."""
    dask: str | None = None
    """Read the table on the workers of a Dask cluster: the address of its scheduler (tcp://...), or its scheduler file.
    They must see the files under the same paths. The answer is the same as on one machine, up to rounding; classes need
    --invariance class_means."""
    format: Literal["table", "json"] = "table"
    """What to print: a table for people, or JSON."""


def execute_fit(arguments: FitArguments) -> int:
    """Fit, print, and write the model."""
    import msgspec

    from holdfast.estimators.files import fit_table, held_out_table

    printed = arguments.out == str(STANDARD_STREAM)
    if arguments.out is not None:
        check_output_file(data_file(arguments.out), [".json"], overwrite=arguments.overwrite)
    elif arguments.overwrite:
        raise ValueError("overwrite must be left out if no file is written: --out names one")
    if arguments.plots is not None:
        check_output_folder(arguments.plots, argument="plots")
    if arguments.held_out and arguments.environment is None:
        raise ValueError("environment must name a column, of which one value after the other is held out, got none")
    if printed and (arguments.held_out or arguments.format == "json"):
        raise ValueError("out must be a file with --held-out or --format json, which print something else, got '-'")
    if arguments.held_out and (arguments.dask or arguments.schema):
        raise ValueError("held_out must be left out with --dask and --schema, since it needs the table in one memory")
    table = ((arguments.data, *arguments.more), arguments.target, arguments.environment, arguments.reading)
    settings: dict[str, Any] = vars(arguments.fitting) | {"tolerance": arguments.tolerance}
    with progress("fitting") as report:
        model, estimator = fit_table(*table, schema=arguments.schema, dask=arguments.dask, progress=report, **settings)
    if printed:
        sys.stdout.write(model.json().decode())
    elif arguments.out is not None:
        model.save(arguments.out)  # before anything is printed: `head` may close the pipe
    if arguments.format == "table" and not printed:
        tables.show_model(model, estimator.summary())
        tables.show(f"Read the data {counted(estimator.passes_, 'time')}.")
    found = msgspec.to_builtins(model) | {name: tables.in_options(getattr(model, name)) for name in ("advice", "notes")}
    errors = None
    if arguments.held_out:
        with progress("holding out") as report:
            errors = held_out_table(*table, progress=report, **settings)
        found["held_out"] = errors.reset_index().to_dict("records")
    if arguments.format == "json":
        print(json.dumps(found, allow_nan=False))
    elif errors is not None:
        tables.show_held_out(errors, model.task)
    if arguments.plots is not None:
        from holdfast.plots.features import save_figures

        written = save_figures(estimator, arguments.plots, errors)
        print(f"wrote {', '.join(map(str, written))}", file=sys.stderr)
    if arguments.out is not None and not printed:
        print(f"wrote {arguments.out}", file=sys.stderr)
    return 0


@dataclass(frozen=True)
class AdviseArguments:
    """Say what data tell us about invariance: what varies between environments, and whether it can be washed out.

    Measurements of matrices (.npz, .zarr): signals, strengths, assumptions, and at which step sizes HeteroSGD works.
    A table (.csv, .tsv, .parquet, .feather), with --target and --environment: which features hold in all environments.

    Examples:

        holdfast advise measurements.npz --steps 500
        holdfast advise wages.csv --target wage --environment region
    """

    data: Annotated[str, Positional("DATA")]
    """An .npz file or .zarr folder with X (n, d, d), y (n,) and environment (n,); or a table, as for `holdfast fit`."""
    reading: ReadingOptions
    fitting: FittingOptions
    more: Annotated[tuple[str, ...], Positional("MORE")] = ()
    """More files of the same table."""
    target: str | None = None
    """Of a table: column to predict."""
    environment: str | None = None
    """Of a table: column with the environments, or region,urban or age:bins=4 or date:year, as for `holdfast fit`."""
    step_size: float | None = None
    """Of measurements: step size eta at which exponents are computed; 0.05 if not given."""
    steps: int | None = None
    """Of measurements: number of steps T; 200 if not given."""
    init_scale: float | None = None
    """Of measurements: scale alpha of the starting point; 0.001 if not given."""
    confidence: float | None = None
    """Of measurements: wanted probability that the spurious share ends below the tolerance; 0.95 if not given."""
    tolerance: float | None = None
    """What does not matter. Of measurements: a spurious share up to this, 0.01 if not given. Of a table: see fit."""
    batch_size: int | None = None
    """Of measurements: how many, fresh ones, make a step; as many as the smallest environment has if not given."""
    noise_variance: float | None = None
    """Of measurements: variance of the label noise; estimated if not given."""
    format: Literal["table", "json"] = "table"
    """What to print: readable tables, or JSON."""


def execute_advise(arguments: AdviseArguments) -> int:
    """Estimate, diagnose and print."""
    from holdfast.tables.reading import MEASUREMENT_SUFFIXES

    if Path(arguments.data).suffix in MEASUREMENT_SUFFIXES:
        _measurements(arguments)
    else:
        _table(arguments)
    return 0


def _measurements(arguments: AdviseArguments) -> None:
    from holdfast.apps.cli.terminal.simulations import show_findings
    from holdfast.tables.reading import read_measurements
    from holdfast.theory.findings import examine

    if arguments.target is not None or arguments.environment is not None:
        raise ValueError(
            "target and environment must be left out for measurements in .npz or .zarr, whose arrays have fixed names"
        )
    if arguments.more:
        raise ValueError(f"measurements must be in one file or folder, got {arguments.more[0]!r} as well")
    _refuse(given(arguments.reading) | given(arguments.fitting), "for measurements in .npz or .zarr")
    findings = examine(*read_measurements(Path(arguments.data)), **_of_measurements(arguments))
    answer(arguments.format, findings.asdict(), lambda: show_findings(findings))


def _table(arguments: AdviseArguments) -> None:
    from holdfast.estimators.files import fit_table

    if arguments.target is None:
        raise ValueError(f"target must name the column to predict of the table {arguments.data!r}, got none")
    _refuse({name: each for name, each in _of_measurements(arguments).items() if name != "tolerance"}, "for a table")
    settings = vars(arguments.fitting) | {"tolerance": arguments.tolerance or 0.0}
    table = ((arguments.data, *arguments.more), arguments.target, arguments.environment, arguments.reading)
    with progress("fitting") as report:
        model, _ = fit_table(*table, progress=report, **settings)
    sentences = tables.in_options([*model.advice, *model.notes])
    found = {"target": arguments.target, "environment": arguments.environment, "advice": sentences}
    answer(arguments.format, found, lambda: tables.show(*map("- {}".format, sentences)))


def _of_measurements(arguments: AdviseArguments) -> dict[str, Any]:
    return {name: value for name in MEASURED if (value := getattr(arguments, name)) is not None}


def _refuse(options: dict[str, Any], reason: str) -> None:
    for name, value in options.items():
        raise ValueError(f"{name} must be left out {reason}, got {value!r}")


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
    reading: FileOptions
    more: Annotated[tuple[str, ...], Positional("MORE")] = ()
    """More files of the same table."""
    out: str | None = None
    """Write the predictions to this .csv or .tsv file (also .gz) instead of printing them; or to an address, s3://..."""
    overwrite: bool = False
    """Replace the file if it exists."""


def execute_predict(arguments: PredictArguments) -> int:
    """Predict chunk by chunk."""
    from holdfast.tables.models import TableModel, predict_table
    from holdfast.tables.reading import TEXT_SUFFIXES

    data, out = (arguments.data, *arguments.more), data_file(arguments.out or STANDARD_STREAM)
    if arguments.model == str(STANDARD_STREAM) and arguments.model in data:
        raise ValueError("model and data must not both be standard input, got '-' for both")
    if out == STANDARD_STREAM and arguments.overwrite:
        raise ValueError("overwrite must be left out if no file is written: --out names one")
    check_output_file(out, list(TEXT_SUFFIXES), overwrite=arguments.overwrite)
    predictions = predict_table(TableModel.load(arguments.model), data, arguments.reading)
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
def _opened(out: DataFile) -> Iterator[TextIO]:
    """Where predictions are written: a file that appears when it is complete, or standard output."""
    if out == STANDARD_STREAM:
        yield sys.stdout
        return
    opened = gzip.open if out.name.lower().endswith(".gz") else open
    with writing(out) as unfinished, opened(unfinished, "wt", encoding="utf-8", newline="") as file:
        yield file
