"""Sweeps in a terminal: what they will cost, how far they are, and what became of them."""

from collections.abc import Iterable, Mapping
from typing import Any

from rich.filesize import decimal
from rich.markup import escape
from rich.table import Table

from holdfast.apps.cli.terminal.progress import duration, say
from holdfast.apps.cli.terminal.tables import show
from holdfast.core.addresses import is_address
from holdfast.core.progress import counted
from holdfast.sweeps.cells import describe_point, failed_settings
from holdfast.sweeps.cost import BLOCK, SweepEstimate
from holdfast.sweeps.engines.local import CountedEngine, Engine
from holdfast.sweeps.specification import Sweep
from holdfast.sweeps.status import SweepStatus
from holdfast.sweeps.store.work import WorkOutcome

MOST_REASONS = 5


def show_estimate(sweep: Sweep, estimate: SweepEstimate, engine: Engine) -> None:
    """Print what a sweep will cost."""
    design = " x ".join(f"{axis.name} {axis.size:,}" for axis in sweep.axes)
    facts = {
        "program": f"{sweep.program}, recording {sweep.record}",
        "points": f"{estimate.points:,} ({design})",
        "runs": f"{estimate.runs:,} ({sweep.seeds:,} seeds for each point)",
        "cells": f"{estimate.cells:,} (of {estimate.runs_per_cell:,} runs each, saved one by one)",
    }
    if estimate.missing < estimate.cells:
        left = f"{counted(estimate.missing, 'cell')}; the others are finished" if estimate.missing else "none"
        facts["left"] = f"{left} (not verified)"
    if estimate.missing:
        facts |= {"time": _time(estimate, engine), "disk": _disk(estimate)}
    _show_facts(facts)


def _time(estimate: SweepEstimate, engine: Engine) -> str:
    if estimate.seconds is None or estimate.compilation is None:
        return "not estimated for a program of your own"
    probed = f"an estimate from {counted(estimate.probed_steps, 'step')} of {counted(estimate.probed_cells, 'cell')}"
    computation, compilation = duration(estimate.seconds), duration(estimate.compilation)
    whole = estimate.wall_seconds(engine.count) if isinstance(engine, CountedEngine) else None
    if whole is None:
        shared = f"{computation} of computation, shared by the workers of {engine.name}"
        return f"{shared}, and {compilation} to compile on each; {probed}"
    parts = f"{computation} of computation, {compilation} to compile"
    return f"about {duration(whole)} with {engine.name} ({parts}); {probed}"


def _disk(estimate: SweepEstimate) -> str:
    if estimate.size is None or estimate.disk is None:
        return "known after the first cell"
    values = f"{decimal(estimate.size)} of values in {estimate.missing:,} files"
    return f"about {decimal(estimate.disk)}: {values}, in blocks of {BLOCK:,} bytes"


def show_outcome(sweep: Sweep, outcome: WorkOutcome, path: str) -> None:
    """Print what a command did, and why cells failed."""
    if outcome.damaged:
        say(f"[yellow]{counted(outcome.damaged, 'cell')} had damaged files and had to be computed again[/yellow]")
    if outcome.computed or outcome.computed_elsewhere:
        done = f"{counted(outcome.computed, 'cell')} computed in {duration(outcome.seconds)} of work"
        if outcome.computed_elsewhere:
            done += f", {outcome.computed_elsewhere:,} by other processes"
        if outcome.finished_before:
            done += f", {outcome.finished_before:,} {'was' if outcome.finished_before == 1 else 'were'} finished"
        say(escape(f"{done}; result in {path}"))
    else:
        up_to_date = escape(f"{path} is up to date; nothing to compute")
        say("no cell could be computed" if outcome.failed else up_to_date)
    failures = {reason: len(cells) for reason, cells in outcome.failures.items()}
    _show_trouble(failures, failed_settings(sweep, outcome.failures), "The same command", outcome.notes)


def show_status(status: SweepStatus, folder: str) -> None:
    """Print how far the sweep in a folder is."""
    facts = {"finished": f"{status.finished:,} of {status.cells:,} cells ({status.share:.1%})"}
    if status.damaged is not None:
        again = "; `holdfast sweep` computes them again" if status.damaged else ""
        facts["damaged"] = f"{status.damaged:,}{again}"
    running = [f"{count} by {process}" for process, count in status.running.items()]
    if running or status.finished < status.cells:
        none = "not known on an object store" if is_address(folder) else "none; `holdfast sweep` resumes"
        facts["running"] = "\n".join(running) or none
    if status.seconds_left:
        facts["rate"] = f"{status.rate:.3g} cells/s, {duration(status.seconds_left)} left"
    _show_facts(facts | {"failed": f"{sum(status.failures.values()):,}"})
    _show_trouble(status.failures, status.failed, "`holdfast sweep`", status.notes)


def _show_trouble(
    failures: Mapping[str, int], failed: Mapping[str, list[dict[str, Any]]], remedy: str, notes: Iterable[str]
) -> None:
    """Why cells failed, with settings of some; and notes."""
    for reason, count in sorted(failures.items(), key=lambda each: -each[1])[:MOST_REASONS]:
        say(f"  [red]{counted(count, 'cell')} failed[/red]: {escape(reason)}")
        for point in failed.get(reason, []):
            say(f"    at {escape(describe_point(point))}")
    if failures:
        say(f"{remedy} tries them again.")
    for each in notes:
        say(f"[yellow]{escape(each)}[/yellow]")


def _show_facts(facts: Mapping[str, str]) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for fact in facts.items():
        table.add_row(*fact)
    show(table)
