"""`holdfast phase`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from holdfast.apps.cli.command import Positional
from holdfast.sensing.settings import CELLS_OF_A_MAP, SEEDS_OF_A_MAP, OrderName
from holdfast.sweeps.engines.options import EngineOptions


@dataclass(frozen=True)
class PhaseArguments:
    """Map where HeteroSGD learns both signals, the invariant one only, nothing, or is unstable.

    Planes: step_size (and heterogeneity), time (init scale and steps), sampling (batch size and dimension),
    overlap (and heterogeneity). Each is a sweep in the folder .computed: if the command is interrupted, run it again to
    resume; several commands can share one folder, and results of the same cells, seeds and code are reused.

    Examples:

        holdfast phase step_size --out phase
        holdfast phase time overlap --cells 8 --seeds 8 --out look
    """

    engine: EngineOptions
    planes: Annotated[tuple[str, ...], Positional("PLANE")] = ()
    """Planes to map; all of them if none is named."""
    out: Path = Path("phase")
    """Folder for the figures (PNG, SVG) and their numbers (CSV), named after the plane and any non-default options."""
    order: OrderName = "independent"
    """How one environment follows another."""
    cells: int = CELLS_OF_A_MAP
    """Grid points per axis."""
    seeds: int = SEEDS_OF_A_MAP
    """Runs at each grid point."""


def execute(arguments: PhaseArguments) -> int:
    """Map the planes."""
    from functools import partial

    from holdfast.apps.cli.terminal.answers import show_regions
    from holdfast.apps.cli.terminal.progress import note, say, work_bar
    from holdfast.apps.cli.terminal.sweeps import show_outcome
    from holdfast.core.writing import checked_folder
    from holdfast.plots.bands import write_figure
    from holdfast.sweeps.engines.options import default_engine
    from holdfast.sweeps.phase_diagram import PLANES, draw_phase_diagram, open_phase_diagram, phase_sweep
    from holdfast.sweeps.results import ConflictError
    from holdfast.sweeps.running import planned, run_sweep
    from holdfast.sweeps.store.store import FOLDER

    names = tuple(dict.fromkeys(arguments.planes or PLANES))
    engine = arguments.engine.engine() or default_engine()
    chosen: dict[str, Any] = {"order": arguments.order, "cells": arguments.cells, "seeds": arguments.seeds}
    sweeps = {name: phase_sweep(name, **chosen) for name in names}
    folder, diagrams = checked_folder(arguments.out) / FOLDER, {}
    for name, sweep in sweeps.items():
        say(f"[bold]{name}[/bold] {PLANES[name].title}, {arguments.seeds} seeds for each cell")
        file = f"phase_{name}{_suffix(arguments)}"
        path = folder / f"{file}.zarr"
        try:
            planned(sweep, path)
        except ConflictError:  # of holdfast 0.1
            note(f"replaces the results in {path}, which this version cannot resume")
        with work_bar(name) as report:
            outcome = run_sweep(sweep, path, engine, report, overwrite=True)
        show_outcome(sweep, outcome, str(path))
        if outcome.failed:
            return 1
        diagrams[name] = data = open_phase_diagram(name, path)
        numbers = data.to_dataframe().reset_index()
        for written in write_figure(partial(draw_phase_diagram, data), numbers, arguments.out, file):
            note(f"wrote {written}")
    show_regions(diagrams)
    return 0


def _suffix(arguments: PhaseArguments) -> str:
    """The options that are not the defaults, so that no figure overwrites one of other settings."""
    suffix = "" if arguments.order == "independent" else f"_{arguments.order}"
    suffix += "" if arguments.cells == CELLS_OF_A_MAP else f"_{arguments.cells}_cells"
    return suffix + ("" if arguments.seeds == SEEDS_OF_A_MAP else f"_{arguments.seeds}_seeds")
