"""Keeps the data sets of experiments, so that what was computed with the same code and seeds is not computed again."""

import hashlib
import json
import os
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import holdfast
from holdfast.trajectory import versions

# The folder, inside that of the results, in which data sets are kept for the next call. It can be deleted at any time.
COMPUTED = ".computed"


@dataclass(frozen=True)
class Store:
    """Data sets of experiments, by name, seeds and whatever else decides the numbers.

    Attributes:
        folder: in which they are kept.
        fingerprint: of the code and the packages.
    """

    folder: Path
    fingerprint: str

    def path(self, name: str, seeds: int) -> Path:
        """Where the data set of an experiment is kept."""
        key = hashlib.sha256(json.dumps([name, seeds, self.fingerprint]).encode()).hexdigest()
        return self.folder / f"{name}-{key[:16]}.zarr"

    def load(self, name: str, seeds: int) -> xr.Dataset | None:
        """A data set that was kept, or None."""
        path = self.path(name, seeds)
        return _read(path) if path.is_dir() else None

    def keep(self, name: str, seeds: int, data: xr.Dataset) -> xr.Dataset:
        """Write a data set, and return it as `load` will, so that a reused result looks like a fresh one."""
        self.folder.mkdir(exist_ok=True)
        # Renamed when complete: a call that is killed leaves nothing that looks like a result.
        with tempfile.TemporaryDirectory(prefix="unfinished-", dir=self.folder) as unfinished:
            temporary = Path(unfinished) / "data.zarr"
            # Format 2, because format 3 has no settled way to store text coordinates yet.
            _plain(data).to_zarr(temporary, zarr_format=2, consolidated=False)
            read = _read(temporary)
            if not read.equals(data):
                raise ValueError(f"the data set of {name} changes when it is stored")
            path = self.path(name, seeds)
            if not path.exists():  # a call that ran beside this one may have been faster
                os.rename(temporary, path)
        return read


def _read(path: Path) -> xr.Dataset:
    return xr.open_zarr(path, chunks=None, consolidated=False).load()


def _plain(data: xr.Dataset) -> xr.Dataset:
    """The data set with attributes that can be stored: what JSON does not know becomes text."""
    plain = data.copy()
    parts: list[xr.Dataset | xr.Variable] = [plain, *plain.variables.values()]
    for part in parts:
        part.attrs = {str(name): _plain_value(value) for name, value in part.attrs.items()}
        part.encoding = {}
    return plain


def _plain_value(value: Any) -> Any:
    value = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return str(value)
    return value


def fingerprint() -> str:
    """Of all that decides the numbers besides the settings: the source of this package, and the packages it uses."""
    package = Path(holdfast.__file__).parent
    source = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        content = path.read_bytes()
        # With its length, so that text moved from one file to the next counts as a change.
        source.update(f"{path.relative_to(package).as_posix()} {len(content)}\n".encode() + content)
    # xarray and zarr decide whether what is stored can be read.
    used = {**versions(), "xarray": version("xarray"), "zarr": version("zarr")}
    return json.dumps([source.hexdigest(), used], sort_keys=True)
