"""Results of experiments and phase diagrams: load or compute a data set, write a figure with its numbers."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from holdfast.core.writing import check_output_folder, replacing
from holdfast.execution.store import DamagedError, Key, Store
from holdfast.plots import save, style

# The packages that compute.
PACKAGES = ("jax", "jaxlib", "numpy", "scipy")


class Loaded(NamedTuple):
    """A data set, lines that say where it comes from, and lines that say what went wrong."""

    data: xr.Dataset
    notes: list[str]
    warnings: list[str]


def load_or_compute(store: Store[xr.Dataset], key: Key, compute: Callable[[], xr.Dataset]) -> Loaded:
    """A data set that was saved before, or that is computed now and saved for the next call."""
    notes, found = [], None
    try:
        found = store.load(key)
    except DamagedError as error:
        notes.append(f"computed again: {error}")
    except ValueError:
        pass  # code without a source file has no fingerprint; saving says so below
    if found is not None:
        return Loaded(found, [f"reused {store.find(key)}"], [])
    begin = time.monotonic()
    data = compute()
    notes.append(f"computed in {time.monotonic() - begin:.1f} s")
    try:
        return Loaded(store.save(key, data), notes, [])
    except (OSError, NotImplementedError, TypeError, ValueError) as error:
        # A full disk, or data that xarray and zarr have no form for: they raise any of the others. What cannot be saved
        # can still be drawn; only the next call has to compute it again.
        return Loaded(data, notes, [f"not saved for the next call: {error}"])


def write_figure(draw: Callable[[], Figure], numbers: pd.DataFrame, out: Path, name: str) -> list[Path]:
    """Write a figure as PNG and SVG and its numbers as CSV; returns the paths."""
    with style():
        paths = save(draw(), out, name)
    paths.append(out / f"{name}.csv")
    with replacing(paths[-1]) as unfinished:
        numbers.to_csv(unfinished, index=False)
    return paths


def checked_folder(out: Path) -> Path:
    """A folder for results, made if it does not exist."""
    check_output_folder(out)
    out.mkdir(parents=True, exist_ok=True)
    return out
