"""Trajectories in a terminal: tables of signals and small plots."""

import math
from collections import Counter

import numpy as np
import xarray as xr
from rich.table import Table

from holdfast.apps.cli.terminal.tables import new_table, show
from holdfast.core.outcome import Code
from holdfast.sensing.trajectory import Trajectory

SIGNALS = ("invariant", "spurious", "residual", "distance", "pooled_distance")
COMPARED = ("invariant", "spurious", "distance")  # as many columns as fit next to the swept settings
PATHS = ("invariant", "spurious", "residual")
MOST_SENTENCES = 5  # about runs that diverged
LEVELS = " ▁▂▃▄▅▆▇█"


def show_trajectory(trajectory: Trajectory) -> None:
    """Print the final signals of a trajectory, how they got to these values, and how the runs ended."""
    settings = trajectory.settings
    order = "" if settings.order == "independent" else f", {settings.order} order"
    panel = "" if settings.panel is None else f", panel of {settings.panel}"
    after = f"after {int(trajectory.data['step'][-1])} steps{order}{panel}"
    if trajectory.axes:
        tables = [_cells(trajectory, after)]
    else:
        tables = [_signals(trajectory.survivors, after), _paths(trajectory)]
    ends = Counter(each.code for each in trajectory.outcomes)
    lost = Counter(each.sentence for each in trajectory.outcomes if each.code is Code.DIVERGED)
    show(
        *tables,
        ", ".join(f"{ends[code]} {code.name.lower()}" for code in Code if ends[code]),
        *(f"  {count} x {sentence}" for sentence, count in lost.most_common(MOST_SENTENCES)),
    )


def _cells(trajectory: Trajectory, after: str) -> Table:
    """One row for each combination of swept values: medians over the runs that did not diverge."""
    axes, runs = list(trajectory.axes), trajectory.survivors
    found = runs[list(COMPARED)].median("seed").assign(runs=runs["invariant"].count("seed"))
    rows = [
        (
            *(f"{row[axis]:g}" for axis in axes),
            *(f"{row[name]:.3g}" if row["runs"] else "-" for name in COMPARED),
            f"{row['runs']} of {runs.sizes['seed']}",
        )
        for row in found.to_dataframe(axes).reset_index().to_dict("records")
    ]
    headings = [name.replace("_", " ") for name in (*axes, *COMPARED, "runs")]
    return new_table(f"Medians over seeds {after}", headings, rows, caption="runs: those that did not diverge")


def _signals(survivors: xr.Dataset, after: str) -> Table:
    left = survivors.dropna("seed", subset=["invariant"])
    caption = f"over the {left.sizes['seed']} of {survivors.sizes['seed']} runs that did not diverge"
    rows = []
    for name in SIGNALS if left.sizes["seed"] else ():
        values = left[name].values
        numbers = (*np.quantile(values, [0.5, 0.1, 0.9]), values.mean())
        rows.append((name.replace("_", " "), *map("{:.4g}".format, numbers)))
    headings = ("signal", "median", "10 %", "90 %", "mean")
    return new_table(f"Signals {after}", headings, rows, left=("signal",), caption=caption)


def _paths(trajectory: Trajectory) -> Table:
    medians = trajectory.data[list(PATHS)].median("seed")
    rows = [(str(name), sparkline(path.values), f"{path.values.max():.4g}") for name, path in medians.items()]
    title = f"Median over seeds, step 0 to {int(medians['step'][-1])}"
    return new_table(title, ("signal", "path", "highest"), rows, left=("signal", "path"))


def sparkline(values: np.ndarray, width: int = 60) -> str:
    """A line of block characters, from 0 to the larger of 1 and the highest value."""
    chosen = values[np.linspace(0, len(values) - 1, min(width, len(values))).round().astype(int)]
    top = max(1.0, float(chosen.max()))
    return "".join(LEVELS[min(8, max(0, math.ceil(8 * value / top - 0.25)))] for value in chosen)
