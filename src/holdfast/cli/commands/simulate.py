"""`holdfast simulate`."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from holdfast.sensing.settings import Settings


@dataclass(frozen=True)
class SimulateArguments:
    """Simulate SGD on multi-environment matrix sensing and say what it learned.

    Give a number such as --heterogeneity several values to run them side by side.
    """

    settings: tyro.conf.OmitArgPrefixes[Settings]
    out: Path | None = None
    """Write the whole trajectory to this file: NAME.zarr or NAME.csv."""
    overwrite: bool = False
    """Replace the file if it exists."""
    format: Literal["table", "json"] = "table"
    """What to print: tables for people, or JSON."""


def execute(arguments: SimulateArguments) -> int:
    """Simulate, print, and write the trajectory if a file is named."""
    from holdfast.cli import terminal
    from holdfast.core.writing import check_output
    from holdfast.sensing.simulation import simulate
    from holdfast.sensing.trajectory import SUFFIXES

    if arguments.out is not None:
        check_output(arguments.out, SUFFIXES, overwrite=arguments.overwrite)
    with terminal.progress("simulating") as progress:
        trajectory = simulate(arguments.settings, progress=progress)
    if arguments.format == "json":
        print(json.dumps(trajectory.summary(), allow_nan=False))
    else:
        terminal.show(trajectory)
    if arguments.out is not None:
        trajectory.save(arguments.out, overwrite=arguments.overwrite)
    return 0
