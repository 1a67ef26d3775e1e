"""`holdfast phase`."""

from dataclasses import dataclass
from pathlib import Path

import tyro


@dataclass(frozen=True)
class PhaseArguments:
    """Map where HeteroSGD learns both signals, the invariant one only, nothing, or is unstable.

    Planes: step_size (and heterogeneity), time (init scale and steps), sampling (batch size and dimension), overlap
    (and heterogeneity). What was already computed with the same cells, seeds and version is reused.
    """

    planes: tyro.conf.Positional[tuple[str, ...]] = ()
    """Planes to map; all of them if none is named."""
    out: Path = Path("phase")
    """Folder for the figures (PNG and SVG) and their numbers (CSV)."""
    cells: int = 40
    """Cells of a side."""
    seeds: int = 64
    """Runs in each cell."""


def execute(arguments: PhaseArguments) -> int:
    """Map the planes."""
    from holdfast.reproduction.diagrams import map_planes

    map_planes(arguments.planes, arguments.out, cells=arguments.cells, seeds=arguments.seeds)
    return 0
