"""Answers of the theory in a terminal: exponents, windows, assumptions and advice."""

import math
from collections.abc import Mapping

import numpy as np
import xarray as xr
from rich.console import Console
from rich.markup import escape

from holdfast.apps.cli.terminal.tables import new_table
from holdfast.theory.diagnosis import Diagnosis
from holdfast.theory.findings import Findings
from holdfast.theory.regions import Region
from holdfast.theory.window import Window


def show_diagnosis(diagnosis: Diagnosis, threshold: float | None = None) -> None:
    """Print exponents, windows and advice, and from which heterogeneity on the step size is in the window."""
    console = Console()
    top, window, paper = diagnosis.top_exponent, diagnosis.window, diagnosis.paper
    interval = "" if top.low == top.high else f" ({top.low:.4g} to {top.high:.4g})"
    needed = {"heterogeneity needed at this step size": threshold} if threshold is not None else {}
    rows = {
        f"exponent at step size {diagnosis.step_size:g}": f"{top.value:.4g}{interval}",
        "spurious share, median over runs": "-" if diagnosis.median is None else f"{diagnosis.median:.3g}",
        "spurious share, mean over runs": "-" if diagnosis.mean is None else f"{diagnosis.mean:.3g}",
        **{name: "none" if math.isnan(value) else f"{value:.4g}" for name, value in needed.items()},
        "sharp window of step sizes": _interval(window),
        "sufficient window of the paper": _interval(paper),
    }
    table = new_table("Will heterogeneity wash the spurious signal out?", ("", "value"), left=("",), show_header=False)
    for name, value in rows.items():
        table.add_row(name, value)
    console.print(table)
    for sentence in diagnosis.sentences:
        console.print(sentence, highlight=False)


def _interval(window: Window) -> str:
    return "empty" if window.empty else f"{window.low:.4g} to {window.high:.4g}"


def show_findings(findings: Findings) -> None:
    """Print what was found from measurements: environments, assumptions, exponents and advice."""
    console = Console()
    estimated = findings.estimated
    if findings.diagnosis is not None:
        strengths = np.asarray(estimated.problem.environments.strengths)  # type: ignore[union-attr]
        directions = [f"direction {number}" for number in range(1, strengths.shape[1] + 1)]
        headings = ("environment", "measurements", *directions, "standard error")
        table = new_table("Strength of each spurious direction", headings, left=("environment",))
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
        title = "Assumptions of the paper, with universal constants of one"
        headings = ("assumption", "asks for", "found", "limit", "")
        table = new_table(title, headings, left=("assumption", "asks for", ""))
        for check in findings.checks:
            verdict = "[green]holds[/green]" if check.holds else "[yellow]fails[/yellow]"
            statement = escape(check.statement) + (f"\n[dim]{escape(check.note)}[/dim]" if check.note else "")
            table.add_row(check.name, statement, f"{check.value:.3g}", f"{check.limit:.3g}", verdict)
        console.print(table)
    for sentence in findings.sentences:
        console.print(sentence, highlight=False)


def show_regions(diagrams: Mapping[str, xr.Dataset]) -> None:
    """Print the share of cells in each region of some phase diagrams, by the names of their planes."""
    table = new_table("Share of cells in each region", ("plane", *(each.label for each in Region)), left=("plane",))
    for name, data in diagrams.items():
        table.add_row(name, *(f"{float((data['region'] == region).mean()):.0%}" for region in Region))
    Console().print(table)
