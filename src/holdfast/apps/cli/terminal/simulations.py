"""Simulations and answers of the theory in a terminal: tables of signals and runs, small plots, windows and advice."""

import math
from collections import Counter
from collections.abc import Mapping

import numpy as np
import xarray as xr
from rich.markup import escape
from rich.table import Table

from holdfast.apps.cli.terminal.tables import new_table, show
from holdfast.completion.jumps import Jump
from holdfast.completion.summary import CompletionSummary, RunSummary
from holdfast.core.outcome import Code
from holdfast.sensing.trajectory import Trajectory
from holdfast.theory.assumptions import Check
from holdfast.theory.diagnosis import Diagnosis, Region
from holdfast.theory.findings import Findings
from holdfast.theory.window import Window

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


MOST_ROWS, MOST_JUMPS = 20, 3


def show_completion(summary: CompletionSummary) -> None:
    """Print one row per run, with a small plot of s2 / s1, and what the runs have in common."""
    settings, steps = summary.simulation.settings, int(summary.simulation.paths.steps[-1])
    offshoots = ["offshoots, test"] if settings.offshoots else []
    table = new_table(
        f"{settings.algorithm}, {steps:,} steps",
        ("seed", "s2 / s1 over time", "final", "train", "test", "jumps", *offshoots),
        map(_row, summary.runs[:MOST_ROWS]),
        left=("s2 / s1 over time", "jumps"),
        caption=f"the first {MOST_ROWS} of {len(summary.runs)} runs" if len(summary.runs) > MOST_ROWS else None,
    )
    show(table, *summary.sentences)


def _row(run: RunSummary) -> tuple[str, ...]:
    numbers = [f"{number:.2g}" for number in (run.ratio[-1], run.train_error, run.test_error)]
    path = sparkline(run.ratio, 30)
    if run.outcome.code is Code.DIVERGED:  # its last record is the state before
        path, numbers = "diverged", ["-", "-", "-"]
    ends = [" ".join(f"{error:.2g}" for error in run.offshoot_errors)] if len(run.offshoot_errors) else []
    return f"{run.seed}", path, *numbers, _jumps(run.jumps), *ends


def _jumps(found: list[Jump]) -> str:
    text = ", ".join(f"{jump.before} to {jump.after} at {jump.step:,}" for jump in found[-MOST_JUMPS:])
    return f"... {text}" if len(found) > MOST_JUMPS else text or "none"


def show_diagnosis(diagnosis: Diagnosis, threshold: float | None = None) -> None:
    """Print exponents, windows and advice, and from which heterogeneity on the step size is in the window."""
    top = diagnosis.top_exponent
    interval = "" if top.low == top.high else f" ({top.low:.4g} to {top.high:.4g})"
    needed = {"heterogeneity needed at this step size": threshold} if threshold is not None else {}
    rows = {
        f"exponent at step size {diagnosis.step_size:g}": f"{top.value:.4g}{interval}",
        "spurious share, median over runs": "-" if diagnosis.median is None else f"{diagnosis.median:.3g}",
        "spurious share, mean over runs": "-" if diagnosis.mean is None else f"{diagnosis.mean:.3g}",
        **{name: "none" if math.isnan(value) else f"{value:.4g}" for name, value in needed.items()},
        "sharp window of step sizes": _interval(diagnosis.window),
        "sufficient window of the paper": _interval(diagnosis.paper),
    }
    title = "Will heterogeneity wash the spurious signal out?"
    show(new_table(title, ("", "value"), rows.items(), left=("",), show_header=False), *diagnosis.sentences)


def _interval(window: Window) -> str:
    return "empty" if window.empty else f"{window.low:.4g} to {window.high:.4g}"


def show_findings(findings: Findings) -> None:
    """Print what was found from measurements: environments, assumptions, exponents and advice."""
    estimated, diagnosis, tables = findings.estimated, findings.diagnosis, []
    if diagnosis is not None:
        strengths = np.asarray(estimated.problem.environments.strengths)  # type: ignore[union-attr]
        directions = [f"direction {number}" for number in range(1, strengths.shape[1] + 1)]
        headings = ("environment", "measurements", *directions, "standard error")
        known = zip(estimated.labels, estimated.counts, strengths, estimated.standard_error, strict=True)
        rows = [
            (escape(str(label)), str(n), *map("{:.4g}".format, each.diagonal()), f"{e:.2g}")
            for label, n, each, e in known
        ]
        table = new_table("Strength of each spurious direction", headings, rows, left=("environment",))
        table.add_section()
        if len(diagnosis.exponents) == strengths.shape[1]:
            table.add_row("exponent", "", *map("{:.4g}".format, diagnosis.exponents), "")
        tables.append(table)
    if findings.checks:
        title = "Assumptions of the paper, with universal constants of one"
        headings = ("assumption", "asks for", "found", "limit", "")
        tables.append(new_table(title, headings, map(_check, findings.checks), left=("assumption", "asks for", "")))
    show(*tables, *findings.sentences)


def _check(check: Check) -> tuple[str, ...]:
    statement = escape(check.statement) + (f"\n[dim]{escape(check.note)}[/dim]" if check.note else "")
    verdict = "[green]holds[/green]" if check.holds else "[yellow]fails[/yellow]"
    return check.name, statement, f"{check.value:.3g}", f"{check.limit:.3g}", verdict


def show_regions(diagrams: Mapping[str, xr.Dataset]) -> None:
    """Print the share of cells in each region of some phase diagrams, by the names of their planes."""
    rows = (
        (name, *(f"{float((data['region'] == region).mean()):.0%}" for region in Region))
        for name, data in diagrams.items()
    )
    headings = ("plane", *(each.label for each in Region))
    show(new_table("Share of cells in each region", headings, rows, left=("plane",)))
