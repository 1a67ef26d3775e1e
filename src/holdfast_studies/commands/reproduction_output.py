"""Experiments in a terminal: lines, progress bars, claims and errors."""

import traceback
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from holdfast.apps.cli.terminal.progress import note, progress_bars, say
from holdfast_studies.claims import TONES, Claim
from holdfast_studies.runner import Reporter

COLOURS = {"good": "green", "aside": "cyan", "bad": "red", "open": "yellow"}


def _begin(name: str, title: str, seeds: int, position: str) -> None:
    say(f"[dim]{position}[/dim] [bold]{name}[/bold] {escape(title)} ({seeds} seeds)")


def show_claims(claims: Sequence[Claim], quick: bool = False) -> None:
    """Print what was measured for each claim, and the verdict."""
    if not claims:
        return
    table = Table(title="Claims (quick look)" if quick else "Claims", title_justify="left", show_lines=True)
    table.add_column("claim", ratio=1)
    table.add_column("measured, 95 % interval")
    table.add_column("verdict")
    for claim in claims:
        value, low, high = claim.measured
        colour = COLOURS[TONES[claim.verdict]]
        table.add_row(
            f"{escape(claim.source)}: {escape(claim.statement)}\n[dim]{escape(claim.why)}[/dim]",
            f"{value:.4g}\n[dim]{low:.4g} to {high:.4g}[/dim]",
            f"[{colour}]{claim.verdict}[/{colour}]",
        )
    Console().print(table)


def _show_errors(errors: Mapping[str, Exception]) -> None:
    """On stderr, each with where it happened."""
    console = Console(stderr=True)
    for name, error in errors.items():
        console.print("".join(traceback.format_exception(error)), highlight=False, markup=False, soft_wrap=True, end="")
        sentence = escape(f"{type(error).__name__}: {error}")
        console.print(f"[red]{name} failed:[/red] {sentence}", highlight=False, soft_wrap=True)


REPORTER = Reporter(_begin, note, note, progress_bars, show_claims, _show_errors)
"""Reports a run of experiments in a terminal."""
