"""`holdfast sweep`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from holdfast.apps.cli.command import Positional
from holdfast.sweeps.engines.options import EngineOptions


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

    The result is results.zarr in the folder of --out, next to its cells. If the command is interrupted, run it again to
    resume. Add values or seeds, and only the new ones are computed. Several commands can share one folder.

    Examples:

        holdfast sweep spec.toml --dry-run
        holdfast sweep spec.toml --out runs
        holdfast sweep spec.toml --out runs --processes 2
    """

    spec: Annotated[Path, Positional("SPEC.toml")]
    """The specification, a TOML file."""
    engine: EngineOptions
    out: str | None = None
    """Folder for the result, or its URL (s3://...)."""
    dry_run: bool = False
    """Say how many runs there are, their time and disk, and stop; with --out, what is left."""


def execute(arguments: SweepArguments) -> int:
    """Check the specification, and run what is missing."""
    from holdfast.sweeps.results import results_path
    from holdfast.sweeps.specification import read_sweep

    if arguments.out is None and not arguments.dry_run:
        raise ValueError("out must be given, a folder for the result, unless it is a dry run")
    chosen = arguments.engine.engine()
    sweep = read_sweep(arguments.spec)
    path = "" if arguments.out is None else results_path(arguments.out)

    from holdfast.apps.cli.terminal.progress import work_bar
    from holdfast.apps.cli.terminal.sweeps import show_estimate, show_outcome
    from holdfast.sweeps.cost import estimate_sweep
    from holdfast.sweeps.engines.options import default_engine
    from holdfast.sweeps.running import planned, run_sweep

    engine = chosen or default_engine()
    if arguments.dry_run:
        show_estimate(sweep, estimate_sweep(sweep, planned(sweep, path) if path else None), engine)
        return 0
    with work_bar(path) as report:
        outcome = run_sweep(sweep, path, engine, report)
    show_outcome(sweep, outcome, path)
    return 1 if outcome.failed else 0
