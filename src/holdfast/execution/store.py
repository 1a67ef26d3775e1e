"""Keeps the data sets of experiments, so that what was computed with the same code and seeds is not computed again."""

import hashlib
import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import holdfast
from holdfast.sensing.trajectory import versions

# The folder, inside that of the results, in which data sets are kept for the next call. It can be deleted at any time.
COMPUTED = ".computed"
# What an entry of the store holds: the data set, and the digest by which damage is seen.
DATA, SEAL = "data.zarr", "sha256"


class DamagedError(Exception):
    """A data set is not what was kept."""


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
        return self.folder / f"{name}-{self._code}-{seeds}"

    @property
    def _code(self) -> str:
        return hashlib.sha256(self.fingerprint.encode()).hexdigest()[:16]

    def load(self, name: str, seeds: int) -> xr.Dataset | None:
        """A data set that was kept, or None.

        Raises:
            DamagedError: if it is not what was kept. It is gone then, and the next call finds nothing.
        """
        path = self.path(name, seeds)
        if not path.is_dir():
            return None
        # Reading alone would not tell: zarr takes a file that is missing for zeros.
        seal = path / SEAL
        if not seal.is_file() or seal.read_bytes() != _digest(path / DATA).encode():
            shutil.rmtree(path, ignore_errors=True)
            raise DamagedError(f"{path} is damaged")
        return _read(path / DATA)

    def keep(self, name: str, seeds: int, data: xr.Dataset) -> xr.Dataset:
        """Write a data set, and return it as `load` will, so that a reused result looks like a fresh one."""
        self.folder.mkdir(exist_ok=True)
        # Renamed when complete: a call that is killed leaves nothing that looks like a result.
        with tempfile.TemporaryDirectory(prefix="unfinished-", dir=self.folder) as unfinished:
            temporary = Path(unfinished) / name
            # Format 2, because format 3 has no settled way to store text coordinates yet.
            _plain(data).to_zarr(temporary / DATA, zarr_format=2, consolidated=False)
            (temporary / SEAL).write_text(_digest(temporary / DATA))
            read = _read(temporary / DATA)
            if not read.equals(data):
                raise ValueError(f"the data set of {name} changes when it is stored")
            path = self.path(name, seeds)
            if not path.exists():  # a call that ran beside this one may have been faster
                os.rename(temporary, path)
        self._forget_other_code(name)
        return read

    def _forget_other_code(self, name: str) -> None:
        """Delete what other code made of an experiment: nothing will ask for it, and it would pile up."""
        for path in self.folder.glob(f"{name}-*"):
            if path.name.rpartition("-")[0] != f"{name}-{self._code}":
                shutil.rmtree(path, ignore_errors=True)


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
    # xarray and zarr decide whether what is stored can be read.
    used = {**versions(), "xarray": version("xarray"), "zarr": version("zarr")}
    return json.dumps([_digest(package, "*.py"), used], sort_keys=True)


def _digest(folder: Path, pattern: str = "*") -> str:
    """Of the names and the content of all files in a folder."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob(pattern) if path.is_file()):
        content = path.read_bytes()
        # With its length, so that text moved from one file to the next counts as a change.
        digest.update(f"{path.relative_to(folder).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()
