"""Which points of a sweep failed, in settings and seeds to try by hand."""

from collections.abc import Iterable, Mapping
from typing import Any

from holdfast.sweeps.blocks import seeds_in_folder, seeds_of_a_cell
from holdfast.sweeps.store.cells import Index
from holdfast.sweeps.store.grid import GridCells

# Failures that are named for each reason.
MOST_NAMED = 3


def failed_settings(cells: GridCells, failures: Mapping[str, Iterable[Index]]) -> dict[str, list[dict[str, Any]]]:
    """Settings and seeds of the first cells that failed, so that they can be tried by hand.

    Args:
        cells: of the sweep.
        failures: reason -> cells.

    Example:
        >>> import tempfile
        >>> from holdfast.sweeps.store.layout import Layout
        >>> layout = Layout.of({"bias": [0.0, 1.0]}, seeds=4, most_seeds=4)
        >>> cells = GridCells.at(f"{tempfile.mkdtemp()}/results.zarr", layout, identity={"seed": 0})
        >>> failed_settings(cells, {"ValueError: no": [(1, 0)]})
        {'ValueError: no': [{'bias': 1.0, 'seeds': [0, 3]}]}
    """
    requested = seeds_in_folder(cells)
    found: dict[str, list[dict[str, Any]]] = {}
    for reason, indices in failures.items():
        named: list[dict[str, Any]] = []
        found[reason] = named
        for index in sorted(indices):
            settings, block = cells.settings(index), seeds_of_a_cell(cells, index).tolist()
            seeds = [block[0], max(block[0], min(block[-1], requested[-1]))]  # more may have been computed
            if named and named[-1] == {**settings, "seeds": [named[-1]["seeds"][0], seeds[0] - 1]}:
                named[-1]["seeds"][1] = seeds[1]  # the next block of the same point
            elif len(named) < MOST_NAMED:
                named.append({**settings, "seeds": seeds})
            else:
                break
    return found


def describe_point(point: Mapping[str, Any]) -> str:
    """A point of `failed_settings` in words.

    Example:
        >>> describe_point({"bias": 1.0, "seeds": [0, 3]}), describe_point({"bias": 1.0, "seeds": [3, 3]})
        ('bias=1.0, seeds 0 to 3', 'bias=1.0, seed 3')
    """
    first, last = point["seeds"]
    seeds = f"seed {first}" if first == last else f"seeds {first} to {last}"
    return ", ".join([*(f"{name}={value}" for name, value in point.items() if name != "seeds"), seeds])
