"""`holdfast simulate`."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from holdfast.apps.cli.command import answer
from holdfast.sensing.settings import Settings


@dataclass(frozen=True)
class SimulateArguments:
    """Simulate SGD on multi-environment matrix sensing and say what it learned.

    Give a number such as --heterogeneity several values to run them side by side.

    Examples:

        holdfast simulate --heterogeneity 6 --seeds 64
        holdfast simulate --heterogeneity 1 3 5 7 --batching pooled --format json
        holdfast simulate --heterogeneity 7 --order reshuffled --out runs.zarr
    """

    settings: Settings
    out: Path | None = None
    """Write the whole trajectory to this file: NAME.zarr, from which the same command resumes if it was interrupted, or
    NAME.csv."""
    overwrite: bool = False
    """Replace results of other settings."""
    format: Literal["table", "json"] = "table"
    """What to print: readable tables, or JSON."""


def execute(arguments: SimulateArguments) -> int:
    """Simulate, print, and write the trajectory if a file is named."""
    from holdfast.apps.cli.terminal.progress import progress, saving_bar
    from holdfast.apps.cli.terminal.trajectories import show_trajectory
    from holdfast.core.writing import check_output
    from holdfast.sensing.simulation import simulate
    from holdfast.sensing.trajectory import SUFFIXES

    out, overwrite = arguments.out, arguments.overwrite
    zarr = out is not None and out.suffix.lower() == ".zarr"
    if out is not None:
        check_output(out, SUFFIXES, overwrite=overwrite or zarr)
    if out is not None and zarr:
        from holdfast.sweeps.simulations import saved_trajectory

        with saving_bar(out) as saving:
            trajectory = saved_trajectory(arguments.settings, out, overwrite=overwrite, report=saving)
    else:
        with progress("simulating") as report:
            trajectory = simulate(arguments.settings, progress=report)
    answer(arguments.format, trajectory.summary(), lambda: show_trajectory(trajectory))
    if out is not None and not zarr:
        trajectory.save(out, overwrite=overwrite)
        print(f"wrote {out}", file=sys.stderr)
    return 0
