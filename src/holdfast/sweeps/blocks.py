"""Seeds in cells: a cell has a block of the seeds of a point, or all of them if it records quantiles over them."""

import numpy as np

from holdfast.sweeps.programs import program_of
from holdfast.sweeps.recording import merges_seeds
from holdfast.sweeps.specification import Sweep
from holdfast.sweeps.store.cells import Index
from holdfast.sweeps.store.grid import GridCells
from holdfast.sweeps.store.layout import Layout

# Seeds that are computed together. A cell should take long against the files it writes, and be short enough that little
# is lost with it; an accelerator has to be filled.
SEEDS_ON_CPU, SEEDS_ON_ACCELERATOR = 64, 8192


def layout_of(sweep: Sweep, platform: str) -> Layout:
    """The cells of a sweep; one that has all seeds of a point counts as one seed.

    Args:
        sweep: what is swept.
        platform: of jax, where it runs.

    Example:
        >>> from holdfast.sweeps.specification import specify
        >>> layout_of(specify({"dimension": 20}, {"bias": [0.0, 1.0], "seeds": 100}), "cpu").shape
        (2, 2)
    """
    if merges_seeds(sweep.record):
        return Layout(sweep.axes, 1, 1)
    most = sweep.seeds_per_cell or (SEEDS_ON_CPU if platform == "cpu" else SEEDS_ON_ACCELERATOR)
    return Layout.of(sweep.axes, seeds=sweep.seeds, most_seeds=most)


def runs_of_a_cell(sweep: Sweep, layout: Layout) -> int:
    """The number of seeds that a cell computes.

    Example:
        >>> from holdfast.sweeps.specification import specify
        >>> sweep = specify({"dimension": 20}, {"bias": [0.0, 1.0], "seeds": 100}, record="quantiles")
        >>> runs_of_a_cell(sweep, layout_of(sweep, "cpu"))
        100
    """
    return sweep.seeds if merges_seeds(sweep.record) else layout.seeds_per_cell


def cells_together(sweep: Sweep, platform: str) -> int:
    """Cells that are computed in one call: on an accelerator as many as fill it, if the program can do that.

    Args:
        sweep: what is swept.
        platform: of jax, where it runs.

    Example:
        >>> from holdfast.sweeps.specification import specify
        >>> sweep = specify({"dimension": 20}, {"bias": [0.0, 1.0], "seeds": 64})
        >>> cells_together(sweep, "cpu"), cells_together(sweep, "gpu")
        (1, 128)
    """
    if platform == "cpu" or not program_of(sweep.program).together:
        return 1
    return max(1, SEEDS_ON_ACCELERATOR // runs_of_a_cell(sweep, layout_of(sweep, platform)))


def seeds_in_folder(cells: GridCells) -> range:
    """The seeds of every point of a sweep, as they were last requested in its folder.

    Example:
        >>> import tempfile
        >>> layout = Layout.of({"bias": [0.0, 1.0]}, seeds=6, most_seeds=4)
        >>> seeds_in_folder(GridCells.at(f"{tempfile.mkdtemp()}/results.zarr", layout, identity={"seed": 10}))
        range(10, 16)
    """
    first = cells.identity.get("seed", 0)
    return range(first, first + cells.identity.get("seeds", cells.seeds))  # in the identity if cells have all of them


def seeds_of_a_cell(cells: GridCells, index: Index) -> np.ndarray:
    """The seeds that a cell computes; the last block of a point may reach beyond those that were requested.

    Example:
        >>> import tempfile
        >>> layout = Layout.of({"bias": [0.0, 1.0]}, seeds=6, most_seeds=4)
        >>> cells = GridCells.at(f"{tempfile.mkdtemp()}/results.zarr", layout, identity={"seed": 10})
        >>> seeds_of_a_cell(cells, (1, 1)).tolist()
        [13, 14, 15]
    """
    if "seeds" in cells.identity:
        return np.array(seeds_in_folder(cells))
    return cells.identity.get("seed", 0) + cells.block(index)
