"""The files of a grid, to compare them."""

from pathlib import Path

from holdfast.sweeps.store.header import SECONDS


def contents(folder: str | Path) -> dict[str, bytes]:
    """All files of a grid, or of the folder that it lies in, but the computing times."""
    root = Path(folder)
    found = {path.relative_to(root).as_posix(): path for path in root.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in sorted(found.items()) if f"/{SECONDS}/c." not in f"/{name}"}
