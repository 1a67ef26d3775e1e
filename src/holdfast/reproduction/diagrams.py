"""Runs the phase diagrams at full size: progress, figures and numbers. What is already computed is reused."""

from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from holdfast.cli import terminal
from holdfast.execution.store import DATASETS, FOLDER, Key, Store
from holdfast.experiments.phase import PLANES, draw_diagram, numbers
from holdfast.reproduction.results import computed, written
from holdfast.theory.regions import Region


def map_planes(names: tuple[str, ...], out: Path, *, cells: int, seeds: int) -> None:
    """Simulate, draw and write phase diagrams by name (all if none is given).

    Args:
        names: keys of `PLANES`.
        out: the folder; made if it does not exist.
        cells: of a side.
        seeds: runs in each cell.
    """
    unknown = [name for name in names if name not in PLANES]
    if unknown:
        raise ValueError(f"planes must be among {', '.join(PLANES)}, got {unknown[0]!r}")
    for name, value in (("cells", cells), ("seeds", seeds)):
        if value < 2:
            raise ValueError(f"{name} must be a whole number of at least 2, got {value}")
    if out.exists() and not out.is_dir():
        raise ValueError(f"out must be a folder, got the file {str(out)!r}")
    out.mkdir(parents=True, exist_ok=True)
    console = Console()
    store = Store(out / FOLDER, DATASETS)
    table = Table(title="Share of cells in each region", title_justify="left")
    for column in ("plane", *(region.label for region in Region)):
        table.add_column(column, justify="left" if column == "plane" else "right")
    for name in dict.fromkeys(names or PLANES):
        plane = PLANES[name]
        console.print(f"[bold]{name}[/bold] {plane.title}, {seeds} seeds a cell", highlight=False)
        with terminal.progress(name) as progress:
            simulate = partial(plane.simulate, cells, seeds, progress)
            data = computed(
                store,
                Key(f"phase_{name}", {"cells": cells, "seeds": seeds}, (plane.simulate.__module__,), ("jax", "numpy")),
                simulate,
            )
        written(partial(draw_diagram, plane, data, seeds), numbers(data), out, f"phase_{name}")
        table.add_row(name, *(f"{np.mean(data['region'].values == region):.0%}" for region in Region))
    console.print(table)
