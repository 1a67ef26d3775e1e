"""`holdfast phase`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from holdfast.sensing.names import OrderName


@dataclass(frozen=True)
class PhaseArguments:
    """Map where HeteroSGD learns both signals, the invariant one only, nothing, or is unstable.

    Planes: step_size (and heterogeneity), time (init scale and steps), sampling (batch size and dimension), overlap
    (and heterogeneity). What was already computed with the same cells, seeds and code is reused.
    """

    planes: tyro.conf.Positional[tuple[str, ...]] = ()
    """Planes to map; all of them if none is named."""
    out: Path = Path("phase")
    """Folder for the figures (PNG and SVG) and their numbers (CSV)."""
    order: OrderName = "independent"
    """How one environment follows another."""
    cells: int = 40
    """Cells of a side."""
    seeds: int = 64
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
        file = f"phase_{name}" if arguments.order == "independent" else f"phase_{name}_{arguments.order}"
        paths = write_figure(partial(draw_phase_diagram, data), numbers(data), arguments.out, file)
        for line in (*notes, *warnings, *(f"wrote {path}" for path in paths)):
            note(line)
        diagrams[name] = data
    show_regions(diagrams)
    return 0
