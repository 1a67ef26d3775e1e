"""Runs of a matrix completion in a terminal."""

from collections import Counter

from rich.console import Console
from rich.table import Table

from holdfast.apps.cli.terminal.trajectories import sparkline
from holdfast.completion.jumps import Jump
from holdfast.completion.summary import CompletionSummary, Stay
from holdfast.core.outcome import Code

MOST_ROWS, MOST_JUMPS = 20, 3


def show_completion(summary: CompletionSummary) -> None:
    """Print one row per run, with a small plot of s2 / s1, and what the runs have in common."""
    console, settings = Console(), summary.simulation.settings
    steps = int(summary.simulation.paths.steps[-1])
    table = Table(title=f"{settings.algorithm}, {steps:,} steps", title_justify="left")
    offshoots = ["offshoots, test"] if settings.offshoots else []
    for column in ("seed", "s2 / s1 over time", "final", "train", "test", "jumps", *offshoots):
        table.add_column(column, justify="left" if column in ("s2 / s1 over time", "jumps") else "right")
    for run in summary.runs[:MOST_ROWS]:
        diverged = run.outcome.code is Code.DIVERGED  # its last record is the state before
        table.add_row(
            f"{run.seed}",
            "diverged" if diverged else sparkline(run.ratio, 30),
            *("-" if diverged else f"{number:.2g}" for number in (run.ratio[-1], run.train_error, run.test_error)),
            _jumps(run.jumps),
            *(" ".join(f"{error:.2g}" for error in run.offshoot_errors) for _ in offshoots),
        )
    if len(summary.runs) > MOST_ROWS:
        table.caption, table.caption_justify = f"the first {MOST_ROWS} of {len(summary.runs)} runs", "left"
    console.print(table)
    endings = Counter(run.outcome.sentence for run in summary.runs)
    for sentence in (
        *summary.notes,
        *(f"{count} x {sentence}" for sentence, count in endings.items()),
        *(_about_stay(stay, len(summary.runs)) for stay in summary.stays),
    ):
        console.print(sentence, highlight=False)


def _about_stay(stay: Stay, runs: int) -> str:
    """Runs that only pass through a rank are in the table, but say nothing about how long one waits there."""
    others = ", the others are not counted" if stay.sat < runs else ""
    sentence = (
        f"rank {stay.rank}, runs that stayed for at least {stay.sitting:,.0f} steps ({stay.sat} of {runs}{others}): "
        f"{stay.jumped} jumped down ({stay.share.low:.0%} to {stay.share.high:.0%}), {stay.rose} rose later"
    )
    if not stay.rate.value:
        return sentence
    mean, low, high = 1 / stay.rate.value, 1 / stay.rate.high, 1 / stay.rate.low
    return f"{sentence}; mean waiting time {mean:,.0f} steps ({low:,.0f} to {high:,.0f})"


def _jumps(found: list[Jump]) -> str:
    text = ", ".join(f"{jump.before} to {jump.after} at {jump.step:,}" for jump in found[-MOST_JUMPS:])
    return f"... {text}" if len(found) > MOST_JUMPS else text or "none"
