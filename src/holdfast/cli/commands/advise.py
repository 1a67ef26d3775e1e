"""`holdfast advise`."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro


@dataclass(frozen=True)
class AdviseArguments:
    """Say what data tell us about invariance: what varies between environments, and whether it can be washed out.

    Measurements of matrices (.npz, .zarr): signals, strengths, assumptions, and at which step sizes HeteroSGD works.
    A table (.csv, .parquet, .feather), with --target and --environment: which features hold in all environments.
    """

    data: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="DATA")]]
    """An .npz file or a .zarr folder with X (n, d, d), y (n,) and environment (n,); or a table."""
    target: str | None = None
    """Of a table: column to predict."""
    environment: str | None = None
    """Of a table: column with the environments."""
    step_size: float = 0.05
    """Of measurements: step size eta at which exponents are computed."""
    steps: int = 200
    """Of measurements: number of steps T."""
    init_scale: float = 1e-3
    """Of measurements: scale alpha of the starting point."""
    confidence: float = 0.95
    """Of measurements: wanted probability that the spurious share ends below the tolerance."""
    tolerance: float = 0.01
    """Of measurements: largest spurious share that counts as washed out."""
    format: Literal["table", "json"] = "table"
    """What to print: tables for people, or JSON."""


def execute(arguments: AdviseArguments) -> int:
    """Estimate, diagnose and print."""
    from holdfast.io.measurements import SUFFIXES

    if arguments.data.suffix in SUFFIXES:
        return _measurements(arguments)
    return _table(arguments)


def _measurements(arguments: AdviseArguments) -> int:
    from holdfast.cli import terminal
    from holdfast.io.measurements import read_measurements
    from holdfast.theory.findings import examine

    if arguments.target is not None or arguments.environment is not None:
        raise ValueError(
            "target and environment must be left out for measurements in .npz or .zarr, whose arrays have fixed names"
        )
    findings = examine(
        *read_measurements(arguments.data),
        step_size=arguments.step_size,
        steps=arguments.steps,
        init_scale=arguments.init_scale,
        confidence=arguments.confidence,
        tolerance=arguments.tolerance,
    )
    if arguments.format == "json":
        print(json.dumps(findings.asdict(), allow_nan=False))
    else:
        terminal.show_findings(findings)
    return 0


def _table(arguments: AdviseArguments) -> int:
    from holdfast.cli import terminal
    from holdfast.estimators.files import advise_table

    if arguments.target is None:
        raise ValueError(f"target must name the column to predict of the table {str(arguments.data)!r}, got none")
    sentences = advise_table(arguments.data, arguments.target, arguments.environment)
    if arguments.format == "json":
        print(json.dumps({"target": arguments.target, "environment": arguments.environment, "advice": sentences}))
    else:
        terminal.show_advice(sentences)
    return 0
