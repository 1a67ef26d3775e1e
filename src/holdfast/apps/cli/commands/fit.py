"""`holdfast fit`."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from holdfast.apps.cli.command import Positional
from holdfast.tables.options import ReadingOptions


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
    """Folder for figures: effects, and with --held-out errors."""
    schema: str | None = None
    """A model of `holdfast fit`, by its path or address, whose columns, categories and imputed values are those of
    this table, which is then read only once."""
    dask: str | None = None
    """Read the table on the workers of a Dask cluster: the address of its scheduler (tcp://...), or its scheduler file.
    They must see the files under the same paths. The answer is the same as on one machine, up to rounding; classes need
    --invariance class_means."""
    format: Literal["table", "json"] = "table"
    """What to print: a table for people, or JSON."""


def execute(arguments: FitArguments) -> int:
    """Fit, print, and write the model."""
    import sys

    import msgspec

    from holdfast.apps.cli.terminal import tables
    from holdfast.apps.cli.terminal.progress import progress
    from holdfast.core.progress import counted
    from holdfast.core.writing import STANDARD_STREAM, check_output_folder
    from holdfast.estimators.files import fit_table, held_out_table
    from holdfast.tables.remote import check_output_file, data_file

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
    found = msgspec.to_builtins(model) | {"advice": tables.in_options(model.advice)}
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

        save_figures(estimator, arguments.plots, errors)
    if arguments.out is not None and not printed:
        print(f"wrote {arguments.out}", file=sys.stderr)
    return 0
