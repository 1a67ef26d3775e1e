"""Answers of the theory in a terminal: exponents, windows, assumptions and advice."""

import math
from collections.abc import Mapping

import numpy as np
import xarray as xr
from rich.markup import escape

from holdfast.apps.cli.terminal.tables import new_table, show
from holdfast.theory.assumptions import Check
from holdfast.theory.diagnosis import Diagnosis, Region
from holdfast.theory.findings import Findings
from holdfast.theory.window import Window


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
