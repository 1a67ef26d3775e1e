"""`holdfast fit`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro


@dataclass(frozen=True)
class FitArguments:
    """Fit a predictor that relies on what holds in all environments to a table, and say what that is.

    The table may be larger than memory. Rows with missing values are left out; columns of text become categories.
    """

    data: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="DATA")]]
    """The table: .csv, .parquet or .feather."""
    target: str
    """Column to predict: numbers, or two classes."""
    environment: str | None = None
    """Column with the environments; without it nothing can be washed out."""
    out: Path | None = None
    """Write the model to this JSON file, for `holdfast predict`."""
    overwrite: bool = False
    """Replace the file if it exists."""
    exclude: tuple[str, ...] = ()
    """Columns to leave out."""
    task: Literal["auto", "regression", "classification"] = "auto"
    """What to fit; auto: classification if the target has two values."""
    tolerance: float = 0.0
    """Differences of an effect between environments (standard deviation, as a share of it) that do not matter."""
    significance: float = 0.001
    """Level of the tests whether an effect varies."""
    level: Literal["common", "environment"] = "common"
    """Whether environments share an intercept, or have their own and only effects are compared."""
    rotation: bool = False
    """Look for coordinates first: the columns may be mixtures of what is invariant and what is not."""
    seed: int = 0
    """Of the random orders of environments."""
    held_out: bool = False
    """Leave out one environment after the other, and print the error on it next to that of a pooled fit; needs the
    table in memory."""
    plots: Path | None = None
    """Folder for figures of effects and survival, and with --held-out of the errors."""
    format: Literal["table", "json"] = "table"
    """What to print: a table for people, or JSON."""


def execute(arguments: FitArguments) -> int:
    """Fit, print, and write the model."""
    import json
    from dataclasses import asdict

    from holdfast.cli import terminal
    from holdfast.estimators.files import fit_table, held_out_table

    if arguments.out is not None and arguments.out.exists() and not arguments.overwrite:
        raise ValueError(f"out must be a new file, got {arguments.out}, which exists; --overwrite replaces it")
    if arguments.held_out and arguments.environment is None:
        raise ValueError("environment must name a column, of which one value after the other is held out, got none")
    table = (arguments.data, arguments.target, arguments.environment)
    settings: dict[str, Any] = {
        "task": arguments.task,
        "exclude": arguments.exclude,
        "tolerance": arguments.tolerance,
        "significance": arguments.significance,
        "level": arguments.level,
        "rotation": arguments.rotation,
        "random_state": arguments.seed,
    }
    model, estimator = fit_table(*table, **settings)
    if arguments.format == "table":
        terminal.show_model(model)
    if arguments.out is not None:
        model.save(arguments.out)
    errors = None
    if arguments.held_out:
        with terminal.progress("holding out") as progress:
            errors = held_out_table(*table, progress=progress, **settings)
    if arguments.format == "json":
        held_out = {} if errors is None else {"held_out": errors.reset_index().to_dict("records")}
        print(json.dumps(asdict(model) | held_out, allow_nan=False))
    elif errors is not None:
        terminal.show_held_out(errors, model.task)
    if arguments.plots is not None:
        from holdfast.plots.features import save_figures

        save_figures(estimator, arguments.plots, errors)
    return 0
