"""What experiments and phase diagrams do alike: compute or reuse, draw, and write, saying so in the terminal."""

import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from rich.console import Console
from rich.markup import escape

from holdfast import terminal
from holdfast.experiments.store import DamagedError, Store
from holdfast.plots import save, style

Compute = Callable[[Callable[[int, int], None]], xr.Dataset]


def computed(store: Store, name: str, seeds: int, compute: Compute, console: Console) -> xr.Dataset:
    """A data set that was kept, or that is computed now and kept for the next call.

    Args:
        store: where data sets are kept.
        name: of the data set.
        seeds: of each curve or cell.
        compute: progress -> data set.
        console: for what is to be said.
    """
    try:
        kept = store.load(name, seeds)
    except DamagedError as error:
        console.print(f"  [yellow]computed again:[/yellow] {escape(str(error))}", highlight=False, soft_wrap=True)
        kept = None
    if kept is not None:
        console.print(f"  reused {store.path(name, seeds)}", highlight=False, markup=False, soft_wrap=True)
        return kept
    begin = time.monotonic()
    with terminal.progress(name) as progress:
        data = compute(progress)
    console.print(f"  computed in {time.monotonic() - begin:.1f} s", highlight=False)
    try:
        return store.keep(name, seeds, data)
    except (OSError, NotImplementedError, TypeError, ValueError) as error:
        # What cannot be stored can still be shown; only the next call has to compute it again.
        console.print(f"  [yellow]not kept for the next call:[/yellow] {escape(str(error))}", highlight=False)
        return data


def written(draw: Callable[[], Figure], numbers: pd.DataFrame, out: Path, name: str, console: Console) -> list[Path]:
    """Write a figure as PNG and SVG and its numbers as CSV; returns the paths."""
    with style():
        paths = save(draw(), out, name)
    paths.append(out / f"{name}.csv")
    numbers.to_csv(paths[-1], index=False)
    for path in paths:
        console.print(f"  wrote {path}", highlight=False, markup=False, soft_wrap=True)
    return paths
