"""The cells of a sweep as files, to compare and to damage them."""

from pathlib import Path

from holdfast.sweeps.store.packing import unpack
from holdfast.sweeps.store.store import is_result


def cell_files(folder: str | Path) -> list[Path]:
    """The files of all results below a folder."""
    return sorted(path for path in Path(folder).rglob("*-*") if is_result(path.name))


def contents(folder: str | Path) -> dict[str, tuple]:
    """What the cells below a folder hold, to the last bit, but for the computing times."""
    found = {}
    for path in cell_files(folder):
        packed = unpack(path.name, path.read_bytes())
        assert packed is not None, f"{path} is damaged"
        arrays = {name: (each.dtype.str, each.shape, each.tolist()) for name, each in packed.arrays.items()}
        found[path.name] = (packed.head["value"], {name: repr(each) for name, each in arrays.items()})
    return found


def notes(folder: str | Path, suffix: str) -> list[str]:
    """The names of the leases or failures below a folder."""
    return sorted(path.name for path in Path(folder).rglob(f"*{suffix}"))
