"""`holdfast advise`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from holdfast.apps.cli.command import Positional, answer, given
from holdfast.apps.cli.commands.fit import FittingOptions
from holdfast.tables.options import ReadingOptions

# Options that apply to measurements; those that are not given are chosen by `holdfast.theory.examine`.
MEASURED = ("step_size", "steps", "init_scale", "confidence", "tolerance", "batch_size", "noise_variance")


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


def execute(arguments: AdviseArguments) -> int:
    """Estimate, diagnose and print."""
    from holdfast.tables.measurements import SUFFIXES

    if Path(arguments.data).suffix in SUFFIXES:
        _measurements(arguments)
    else:
        _table(arguments)
    return 0


def _measurements(arguments: AdviseArguments) -> None:
    from holdfast.apps.cli.terminal.answers import show_findings
    from holdfast.tables.measurements import read_measurements
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
    from holdfast.apps.cli.terminal.progress import progress
    from holdfast.apps.cli.terminal.tables import in_options, show
    from holdfast.estimators.files import fit_table

    if arguments.target is None:
        raise ValueError(f"target must name the column to predict of the table {arguments.data!r}, got none")
    _refuse({name: each for name, each in _of_measurements(arguments).items() if name != "tolerance"}, "for a table")
    settings = vars(arguments.fitting) | {"tolerance": arguments.tolerance or 0.0}
    table = ((arguments.data, *arguments.more), arguments.target, arguments.environment, arguments.reading)
    with progress("fitting") as report:
        model, _ = fit_table(*table, progress=report, **settings)
    sentences = in_options([*model.notes, *model.advice])
    found = {"target": arguments.target, "environment": arguments.environment, "advice": sentences}
    answer(arguments.format, found, lambda: show(*map("- {}".format, sentences)))


def _of_measurements(arguments: AdviseArguments) -> dict[str, Any]:
    return {name: value for name in MEASURED if (value := getattr(arguments, name)) is not None}


def _refuse(options: dict[str, Any], reason: str) -> None:
    for name, value in options.items():
        raise ValueError(f"{name} must be left out {reason}, got {value!r}")
