"""Sweeps: `holdfast sweep`, `sweep-status` and `sweep-plot`."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from holdfast.apps.cli.command import Positional, answer, fixed_axes
from holdfast.apps.cli.terminal.progress import work_bar
from holdfast.core.progress import counted
from holdfast.core.validation import require
from holdfast.core.writing import check_output_folder
from holdfast.sweeps.engines.local import EngineOptions, default_engine

if TYPE_CHECKING:
    from holdfast.sweeps.summary import SweepSummary


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


def execute_sweep(arguments: SweepArguments) -> int:
    """Check the specification, and run what is missing."""
    from holdfast.sweeps.results import results_path
    from holdfast.sweeps.specification import read_sweep

    if arguments.out is None and not arguments.dry_run:
        raise ValueError("out must be given, a folder for the result, unless it is a dry run")
    chosen = arguments.engine.engine()
    sweep = read_sweep(arguments.spec)
    path = "" if arguments.out is None else results_path(arguments.out)

    from holdfast.apps.cli.terminal.sweeps import show_estimate, show_outcome
    from holdfast.sweeps.cost import estimate_sweep
    from holdfast.sweeps.results import planned
    from holdfast.sweeps.running import run_sweep

    engine = chosen or default_engine()
    if arguments.dry_run:
        show_estimate(sweep, estimate_sweep(sweep, planned(sweep, path) if path else None), engine)
        return 0
    with work_bar(path) as report:
        outcome = run_sweep(sweep, path, engine, report)
    show_outcome(sweep, outcome, path)
    return 1 if outcome.failed else 0


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


def execute_sweep_status(arguments: SweepStatusArguments) -> int:
    """Print the status."""
    from holdfast.apps.cli.terminal.sweeps import show_status
    from holdfast.sweeps.results import export_sweep
    from holdfast.sweeps.status import prune_sweep, sweep_status

    pruned = prune_sweep(arguments.folder) if arguments.prune else None
    exported = export_sweep(arguments.folder) if arguments.export else None
    status = sweep_status(arguments.folder, verify=arguments.verify)
    answer(arguments.format, status.asdict(), lambda: show_status(status, arguments.folder))
    if pruned is not None and arguments.format == "table":
        print(f"deleted {counted(pruned, 'cell')} of other code")
    if exported is not None and arguments.format == "table":
        print(f"wrote {exported}")
    return 1 if status.failures or status.damaged else 0


@dataclass(frozen=True)
class SweepPlotArguments:
    """Draw the result of a sweep: lines along one setting with a band over seeds, or a heat map over two settings.

    Further settings become lines or panels, unless --at fixes them.

    Examples:

        holdfast sweep-plot runs --x heterogeneity --quantity spurious
        holdfast sweep-plot runs --x heterogeneity --at step_size=0.05 --over mean
        holdfast sweep-plot runs --x step_size --y heterogeneity --quantity diverged
    """

    folder: Annotated[str, Positional("FOLDER")]
    """Folder of the sweep, or its URL (s3://...)."""
    x: str
    """Setting on the x axis; `step` if trajectories or quantiles were recorded, `point` for a list or random design."""
    y: str | None = None
    """Setting on the y axis; draws a heat map."""
    quantity: str | None = None
    """What is drawn: a variable of the result, diverged or converged; spurious if there is one."""
    over: Literal["median", "mean", "share"] = "median"
    """Statistic over seeds; share: the share of seeds above the threshold."""
    threshold: float = 0.5
    """With --over share: the number that seeds must exceed to count."""
    at: tuple[str, ...] = ()
    """Fix other settings, seeds or steps at the nearest available value: --at step_size=0.05 bias=1."""
    scale: Literal["linear", "log"] | None = None
    """Scale of the quantity; by default log if its numbers span more than a factor of 100."""
    out: Path | None = None
    """Folder for the figure (PNG and SVG); by default that of the sweep, or the one in which NAME.zarr lies."""


def execute_sweep_plot(arguments: SweepPlotArguments) -> int:
    """Draw and write the figure."""
    from holdfast.plots.bands import save
    from holdfast.sweeps.figures import draw_summary
    from holdfast.sweeps.results import SUFFIX, open_sweep
    from holdfast.sweeps.summary import summarise_sweep

    # A zarr group takes no other files: figures go next to it.
    given = Path(arguments.folder)
    folder = arguments.out or (given.parent if given.suffix.lower() == SUFFIX else given)
    require("://" not in str(folder), "out must be a folder of this machine", repr(str(folder)))
    check_output_folder(folder)
    at = fixed_axes(arguments.at)
    found = summarise_sweep(
        open_sweep(arguments.folder), arguments.x, arguments.y,
        quantity=arguments.quantity, over=arguments.over, threshold=arguments.threshold, at=at,
    )  # fmt: skip
    figure = draw_summary(found, arguments.scale)
    folder.mkdir(parents=True, exist_ok=True)
    for path in save(figure, folder, _name(found, arguments)):
        print(f"wrote {path}")
    return 0


def _name(found: "SweepSummary", arguments: SweepPlotArguments) -> str:
    """Of the files: all that decides the figure, so that one does not replace another."""
    words = [found.quantity, "over", found.x, *([found.y] if found.y else [])]
    words += [
        f"at_{name}_{value:.6g}" if isinstance(value, float) else f"at_{name}_{value}"
        for name, value in found.fixed.items()
    ]
    if found.over == arguments.over != "median":  # a quantity that is a share of runs by itself needs no statistic
        words += ["share", f"above_{arguments.threshold:g}"] if found.over == "share" else [found.over]
    words += [arguments.scale] if arguments.scale else []
    return re.sub(r"[^\w.+-]+", "_", "_".join(words))
