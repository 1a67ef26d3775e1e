"""What experiments and phase diagrams do alike: compute or reuse, draw, and write, saying so in the terminal."""

import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from rich.markup import escape

from holdfast.cli import terminal
from holdfast.execution.store import DamagedError, Key, Store
from holdfast.plots import save, style


def computed(
    store: Store[xr.Dataset], key: Key, compute: Callable[[], xr.Dataset], say: Callable[[str], None] = terminal.say
) -> xr.Dataset:
    """A data set that was kept, or that is computed now and kept for the next call.

    Args:
        store: where data sets are kept.
        key: what decides the data set.
        compute: the data set.
        say: called with lines, in the markup of rich, on where the data set comes from.
    """
    try:
        kept = store.load(key)
    except DamagedError as error:
        say(f"  [yellow]computed again:[/yellow] {escape(str(error))}")
        kept = None
    if kept is not None:
        say(f"  reused {escape(str(store.find(key)))}")
        return kept
    begin = time.monotonic()
    data = compute()
    say(f"  computed in {time.monotonic() - begin:.1f} s")
    try:
        return store.save(key, data)
    except (OSError, NotImplementedError, TypeError, ValueError) as error:
        # A full disk, or data that xarray and zarr have no form for: they raise any of the others. What cannot be kept
        # can still be shown; only the next call has to compute it again.
        say(f"  [yellow]not kept for the next call:[/yellow] {escape(str(error))}")
        return data


def written(draw: Callable[[], Figure], numbers: pd.DataFrame, out: Path, name: str) -> list[Path]:
    """Write a figure as PNG and SVG and its numbers as CSV; returns the paths."""
    with style():
        paths = save(draw(), out, name)
    paths.append(out / f"{name}.csv")
    numbers.to_csv(paths[-1], index=False)
    for path in paths:
        terminal.say(f"  wrote {escape(str(path))}")
    return paths
