"""`holdfast sweep-status`."""

import json
from dataclasses import dataclass
from typing import Annotated, Literal

from holdfast.apps.cli.command import Positional


@dataclass(frozen=True)
class SweepStatusArguments:
    """Show progress: finished cells, which process computes what, failures by reason, rate and time left.

    It reads the folder only, unless --export or --prune is given, so it works while other processes compute, from any
    machine that sees the folder. The exit code is 1 if cells have failed, or are found to be damaged.

    Examples:

        holdfast sweep-status runs
        holdfast sweep-status runs --verify
        holdfast sweep-status runs --export
        holdfast sweep-status runs --format json
    """

    folder: Annotated[str, Positional("FOLDER")]
    """Folder of the sweep, or its URL (s3://...)."""
    verify: bool = False
    """Read all values too, and say how many cells have damaged files."""
    export: bool = False
    """Write results.zarr from the cells that are finished so far."""
    prune: bool = False
    """Delete cells that were computed by other code than that of the last command."""
    format: Literal["table", "json"] = "table"
    """What to print: readable tables, or JSON."""


def execute(arguments: SweepStatusArguments) -> int:
    """Print the status."""
    from holdfast.sweeps.results import export_sweep
    from holdfast.sweeps.status import prune_sweep, sweep_status

    pruned = prune_sweep(arguments.folder) if arguments.prune else None
    exported = export_sweep(arguments.folder) if arguments.export else None
    status = sweep_status(arguments.folder, verify=arguments.verify)
    if arguments.format == "json":
        print(json.dumps(status.asdict(), allow_nan=False))
    else:
        from holdfast.apps.cli.terminal.sweeps import show_status
        from holdfast.core.progress import counted

        show_status(status, arguments.folder)
        if pruned is not None:
            print(f"deleted {counted(pruned, 'cell')} of other code")
        if exported is not None:
            print(f"wrote {exported}")
    return 1 if status.failures or status.damaged else 0
