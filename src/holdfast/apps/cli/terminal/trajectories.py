"""Trajectories in a terminal: tables of signals and small plots."""

import math
from collections import Counter

import numpy as np
import xarray as xr
from rich.console import Console
from rich.table import Table

from holdfast.apps.cli.terminal.tables import new_table
from holdfast.core.outcome import Code
from holdfast.sensing.trajectory import Trajectory

SIGNALS = ("invariant", "spurious", "residual", "distance", "pooled_distance")
COMPARED = ("invariant", "spurious", "distance")  # as many columns as fit next to the swept settings
LEVELS = " ▁▂▃▄▅▆▇█"


def show(trajectory: Trajectory) -> None:
    """Print the final signals of a trajectory, how they got to these values, and how the runs ended."""
    console = Console()
    survivors = trajectory.survivors
    if trajectory.axes:
        console.print(_cells(trajectory))
    else:
        console.print(_table(f"Signals after {_steps(trajectory)} steps{_visits(trajectory)}", survivors))
        console.print(_paths(trajectory.data))
    ends = [outcome.code for outcome in trajectory.outcomes]
    console.print(", ".join(f"{ends.count(code)} {code.name.lower()}" for code in Code if code in ends))
    for sentence, count in Counter(o.sentence for o in trajectory.outcomes if o.code is Code.DIVERGED).most_common(5):
        console.print(f"  {count} x {sentence}", highlight=False)


def _cells(trajectory: Trajectory) -> Table:
    """One row for each combination of swept values: medians over the runs that did not diverge."""
    axes = list(trajectory.axes)
    headings = [name.replace("_", " ") for name in (*axes, *COMPARED, "runs")]
    title = f"Medians over seeds after {_steps(trajectory)} steps{_visits(trajectory)}"
    table = new_table(title, headings, caption="runs: those that did not diverge")
    cells = trajectory.survivors.stack(cell=axes)
    for number in range(cells.sizes["cell"]):
        cell = cells.isel(cell=number).dropna("seed", subset=["invariant"])
        medians = [f"{float(cell[name].median()):.3g}" if cell.sizes["seed"] else "-" for name in COMPARED]
        position = [f"{float(cell[axis]):g}" for axis in axes]
        table.add_row(*position, *medians, f"{cell.sizes['seed']} of {cells.sizes['seed']}")
    return table


def _steps(trajectory: Trajectory) -> int:
    return int(trajectory.data["step"][-1])


def _visits(trajectory: Trajectory) -> str:
    """How the environments are visited, where that is not by default."""
    settings = trajectory.settings
    order = "" if settings.order == "independent" else f", {settings.order} order"
    return order + ("" if settings.panel is None else f", panel of {settings.panel}")


def _table(title: str, survivors: xr.Dataset) -> Table:
    left = survivors.dropna("seed", subset=["invariant"])
    caption = f"over the {left.sizes['seed']} of {survivors.sizes['seed']} runs that did not diverge"
    table = new_table(title, ("signal", "median", "10 %", "90 %", "mean"), left=("signal",), caption=caption)
    for name in SIGNALS if left.sizes["seed"] else ():
        values = left[name].values
        numbers = (*np.quantile(values, [0.5, 0.1, 0.9]), values.mean())
        table.add_row(name.replace("_", " "), *(f"{number:.4g}" for number in numbers))
    return table


def _paths(data: xr.Dataset) -> Table:
    title = f"Median over seeds, step 0 to {data['step'].values[-1]}"
    table = new_table(title, ("signal", "path", "highest"), left=("signal", "path"))
    for name in ("invariant", "spurious", "residual"):
        median = data[name].median("seed").values
        table.add_row(name, sparkline(median), f"{median.max():.4g}")
    return table


def sparkline(values: np.ndarray, width: int = 60) -> str:
    """A line of block characters, from 0 to the larger of 1 and the highest value."""
    chosen = values[np.linspace(0, len(values) - 1, min(width, len(values))).round().astype(int)]
    top = max(1.0, float(chosen.max()))
    return "".join(LEVELS[min(8, max(0, math.ceil(8 * value / top - 0.25)))] for value in chosen)
