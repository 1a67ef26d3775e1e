"""`holdfast phase`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from holdfast.sensing.names import OrderName

CELLS, SEEDS = 40, 64


@dataclass(frozen=True)
class PhaseArguments:
    """Map where HeteroSGD learns both signals, the invariant one only, nothing, or is unstable.

    Planes: step_size (and heterogeneity), time (init scale and steps), sampling (batch size and dimension),
    overlap (and heterogeneity). What was already computed with the same cells, seeds and code is reused.
    """

    planes: tyro.conf.Positional[Annotated[tuple[str, ...], tyro.conf.arg(metavar="[PLANE ...]")]] = ()
    """Planes to map; all of them if none is named."""
    out: Path = Path("phase")
    """Folder for the figures (PNG, SVG) and their numbers (CSV), named after the plane and what is not by default."""
    order: OrderName = "independent"
    """How one environment follows another."""
    cells: int = CELLS
    """Cells of a side."""
    seeds: int = SEEDS
    """Runs in each cell."""


def execute(arguments: PhaseArguments) -> int:
    """Map the planes."""
    from functools import partial

    from holdfast.cli import terminal
    from holdfast.cli.terminal.reproduction import note, show_regions
    from holdfast.execution.store import DATASETS, FOLDER, Key, Store
    from holdfast.experiments.phase import PLANES, draw_phase_diagram, numbers, phase_diagram
    from holdfast.reproduction.results import PACKAGES, checked_folder, load_or_compute, write_figure
    from holdfast.sensing.trajectory import versions

    names = tuple(dict.fromkeys(arguments.planes or PLANES))
    unknown = [name for name in names if name not in PLANES]
    if unknown:
        raise ValueError(f"planes must be among {', '.join(PLANES)}, got {unknown[0]!r}")
    chosen: dict[str, Any] = {"order": arguments.order, "cells": arguments.cells, "seeds": arguments.seeds}
    settings = {**chosen, "platform": versions()["platform"]}
    store = Store(checked_folder(arguments.out) / FOLDER, DATASETS)
    diagrams = {}
    for name in names:
        terminal.say(f"[bold]{name}[/bold] {PLANES[name].title}, {arguments.seeds} seeds for each cell")
        key = Key(f"phase_{name}_{arguments.order}", settings, ("holdfast.experiments.phase:phase_diagram",), PACKAGES)
        with terminal.progress(name) as progress:
            compute = partial(phase_diagram, name, progress=progress, **chosen)
            data, notes, warnings = load_or_compute(store, key, compute)
        file = f"phase_{name}{_suffix(arguments)}"
        paths = write_figure(partial(draw_phase_diagram, data), numbers(data), arguments.out, file)
        for line in (*notes, *warnings, *(f"wrote {path}" for path in paths)):
            note(line)
        diagrams[name] = data
    show_regions(diagrams)
    return 0


def _suffix(arguments: PhaseArguments) -> str:
    """What is not by default, so that no figure overwrites one of other settings."""
    suffix = "" if arguments.order == "independent" else f"_{arguments.order}"
    suffix += "" if arguments.cells == CELLS else f"_{arguments.cells}_cells"
    return suffix + ("" if arguments.seeds == SEEDS else f"_{arguments.seeds}_seeds")
