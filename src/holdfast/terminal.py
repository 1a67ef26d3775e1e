"""What people see in a terminal: progress, tables and small plots."""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import xarray as xr
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from holdfast.outcome import Code
from holdfast.theory.diagnosis import Diagnosis
from holdfast.theory.findings import Findings
from holdfast.theory.window import Window
from holdfast.trajectory import Trajectory

SHOWN = ("invariant", "spurious", "residual", "distance", "pooled_distance")
COMPARED = ("invariant", "spurious", "distance")  # as many columns as fit beside the swept settings
PATIENCE = 1.0  # seconds of work before a progress bar appears
LEVELS = " ▁▂▃▄▅▆▇█"


@contextmanager
def progress(label: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on stderr that appears when the work takes more than a second."""
    columns = (TextColumn(label), BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(label)
    begin = time.monotonic()

    def report(done: int, total: int) -> None:
        if bar.console.is_terminal and not bar.live.is_started and time.monotonic() - begin > PATIENCE:
            bar.start()
        bar.update(task, completed=done, total=total)

    try:
        yield report
    finally:
        if bar.live.is_started:
            bar.stop()


def show(trajectory: Trajectory) -> None:
    """Print the final signals of a trajectory, how they came about, and how the runs ended."""
    console = Console()
    survivors = trajectory.survivors
    if trajectory.settings.axes:
        console.print(_cells(trajectory))
    else:
        console.print(_table(f"Signals after {_steps(trajectory)} steps", survivors))
        console.print(_paths(trajectory.data))
    ends = [outcome.code for outcome in trajectory.outcomes]
    console.print(", ".join(f"{ends.count(code)} {code.name.lower()}" for code in Code if code in ends))
    for sentence, count in Counter(o.sentence for o in trajectory.outcomes if o.code is Code.DIVERGED).most_common(5):
        console.print(f"  {count} x {sentence}", highlight=False)


def show_diagnosis(diagnosis: Diagnosis, more: Mapping[str, float] | None = None) -> None:
    """Print exponents, windows and advice, with further numbers by name."""
    console = Console()
    top, window, paper = diagnosis.top_exponent, diagnosis.window, diagnosis.paper
    interval = "" if top.low == top.high else f" ({top.low:.4g} to {top.high:.4g})"
    rows = {
        f"exponent at step size {diagnosis.step_size:g}": f"{top.value:.4g}{interval}",
        "predicted median spurious share": "-" if diagnosis.median is None else f"{diagnosis.median:.3g}",
        **{name: "none" if math.isnan(value) else f"{value:.4g}" for name, value in (more or {}).items()},
        "sharp window of step sizes": _interval(window),
        "sufficient window of the paper": _interval(paper),
    }
    table = Table(title="Will heterogeneity wash the spurious signal out?", title_justify="left", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    for name, value in rows.items():
        table.add_row(name, value)
    console.print(table)
    for sentence in diagnosis.sentences:
        console.print(sentence, highlight=False)


def _interval(window: Window) -> str:
    return "empty" if window.empty else f"{window.low:.4g} to {window.high:.4g}"


def show_findings(findings: Findings) -> None:
    """Print what measurements tell: environments, assumptions, exponents and advice."""
    console = Console()
    estimated = findings.estimated
    if findings.diagnosis is not None:
        strengths = np.asarray(estimated.problem.environments.strengths)  # type: ignore[union-attr]
        table = Table(title="Strength of each spurious direction", title_justify="left")
        directions = range(1, strengths.shape[1] + 1)
        for column in ("environment", "measurements", *(f"direction {i}" for i in directions), "standard error"):
            table.add_column(column, justify="left" if column == "environment" else "right")
        for label, count, strength, error in zip(
            estimated.labels, estimated.counts, strengths, estimated.standard_error, strict=True
        ):
            table.add_row(str(label), str(count), *(f"{s:.4g}" for s in np.diagonal(strength)), f"{error:.2g}")
        table.add_section()
        each = findings.diagnosis.exponents
        if len(each) == strengths.shape[1]:
            table.add_row("exponent", "", *(f"{value:.4g}" for value in each), "")
        console.print(table)
    if findings.checks:
        table = Table(title="Assumptions of the paper, with universal constants of one", title_justify="left")
        for column in ("assumption", "asks for", "found", "limit", ""):
            table.add_column(column, justify="right" if column in ("found", "limit") else "left")
        for check in findings.checks:
            verdict = "[green]holds[/green]" if check.holds else "[yellow]fails[/yellow]"
            statement = escape(check.statement) + (f"\n[dim]{escape(check.note)}[/dim]" if check.note else "")
            table.add_row(check.name, statement, f"{check.value:.3g}", f"{check.limit:.3g}", verdict)
        console.print(table)
    for sentence in findings.sentences:
        console.print(sentence, highlight=False)


def _cells(trajectory: Trajectory) -> Table:
    """One row for each combination of swept settings: medians over the runs that did not diverge."""
    axes = list(trajectory.settings.axes)
    table = Table(title=f"Medians over seeds after {_steps(trajectory)} steps", title_justify="left")
    for column in (*axes, *COMPARED, "runs"):
        table.add_column(column.replace("_", " "), justify="right")
    cells = trajectory.survivors.stack(cell=axes)
    for number in range(cells.sizes["cell"]):
        cell = cells.isel(cell=number).dropna("seed", subset=["invariant"])
        medians = [f"{float(cell[name].median()):.3g}" if cell.sizes["seed"] else "-" for name in COMPARED]
        place = [f"{float(cell[axis]):g}" for axis in axes]
        table.add_row(*place, *medians, f"{cell.sizes['seed']} of {cells.sizes['seed']}")
    table.caption, table.caption_justify = "runs: those that did not diverge", "left"
    return table


def _steps(trajectory: Trajectory) -> int:
    return int(trajectory.data["step"][-1])


def _table(title: str, survivors: xr.Dataset) -> Table:
    table = Table(title=title, title_justify="left")
    for column in ("signal", "median", "10 %", "90 %", "mean"):
        table.add_column(column, justify="left" if column == "signal" else "right")
    left = survivors.dropna("seed", subset=["invariant"])
    for name in SHOWN if left.sizes["seed"] else ():
        values = left[name].values
        numbers = (*np.quantile(values, [0.5, 0.1, 0.9]), values.mean())
        table.add_row(name.replace("_", " "), *(f"{number:.4g}" for number in numbers))
    table.caption = f"over the {left.sizes['seed']} of {survivors.sizes['seed']} runs that did not diverge"
    table.caption_justify = "left"
    return table


def _paths(data: xr.Dataset) -> Table:
    steps = data["step"].values
    table = Table(title=f"Median over seeds, step 0 to {steps[-1]}", title_justify="left")
    for column in ("signal", "path", "highest"):
        table.add_column(column, justify="right" if column == "highest" else "left")
    for name in ("invariant", "spurious", "residual"):
        median = data[name].median("seed").values
        table.add_row(name, sparkline(median), f"{median.max():.4g}")
    return table


def sparkline(values: np.ndarray, width: int = 60) -> str:
    """A line of block characters, from 0 to the larger of 1 and the highest value."""
    chosen = values[np.linspace(0, len(values) - 1, min(width, len(values))).round().astype(int)]
    top = max(1.0, float(chosen.max()))
    return "".join(LEVELS[min(8, max(0, math.ceil(8 * value / top - 0.25)))] for value in chosen)
