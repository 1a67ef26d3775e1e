"""`holdfast sweep`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from holdfast.execution.engines.options import EngineOptions


@dataclass(frozen=True)
class SweepArguments:
    """Run a simulation, or a function of your own, over a grid of settings times seeds.

    SPEC.toml has [settings], which all points share, and [sweep] with lists of values and the number of seeds:

        [settings]
        dimension = 20

        [sweep]
        step_size = [0.02, 0.05]
        heterogeneity = { start = 1.0, stop = 9.0, count = 9 }
        seeds = 32

    The result is results.zarr in the folder of --out. Whatever ends the command, the same command goes on where it
    stopped; with more values or seeds it computes what is new. Several of them share the work.

    Examples:

        holdfast sweep spec.toml --dry-run
        holdfast sweep spec.toml --out runs
        holdfast sweep spec.toml --out runs --processes 2
    """

    spec: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="SPEC.toml")]]
    """The specification, a TOML file."""
    engine: tyro.conf.OmitArgPrefixes[EngineOptions]
    out: str | None = None
    """Folder for the result, or its URL (s3://...)."""
    dry_run: bool = False
    """Say how many runs there are, their time and disk, and stop; with --out, what is left."""


def execute(arguments: SweepArguments) -> int:
    """Check the specification, and run what is missing."""
    from holdfast.core.addresses import is_address
    from holdfast.core.writing import check_output_folder
    from holdfast.sweeps.running import default_engine, is_finished, planned, results_path, run_sweep
    from holdfast.sweeps.specification import read_sweep

    if arguments.out is None and not arguments.dry_run:
        raise ValueError("out must be given, a folder for the result, unless it is a dry run")
    chosen = arguments.engine.engine()
    sweep = read_sweep(arguments.spec)
    path = "" if arguments.out is None else results_path(arguments.out)
    if path and not is_address(path) and not arguments.dry_run:
        try:
            check_output_folder(Path(str(arguments.out)))
        except ValueError:
            if not is_finished(sweep, path):
                raise
    import jax

    from holdfast.cli.terminal.progress import work_bar
    from holdfast.cli.terminal.sweeps import show_outcome, show_plan
    from holdfast.sweeps.planning import plan

    engine = chosen or default_engine()
    if arguments.dry_run:
        cells = planned(sweep, path) if path else None
        show_plan(sweep, plan(sweep, jax.default_backend(), cells), engine.name)
        return 0
    with work_bar(path) as report:
        outcome = run_sweep(sweep, path, engine, report)
    show_outcome(outcome, path)
    return 1 if outcome.failed else 0
