"""Runs of a matrix completion in a terminal."""

from rich.console import Console

from holdfast.apps.cli.terminal.tables import new_table
from holdfast.apps.cli.terminal.trajectories import sparkline
from holdfast.completion.jumps import Jump
from holdfast.completion.summary import CompletionSummary
from holdfast.core.outcome import Code

MOST_ROWS, MOST_JUMPS = 20, 3


def show_completion(summary: CompletionSummary) -> None:
    """Print one row per run, with a small plot of s2 / s1, and what the runs have in common."""
    console, settings = Console(), summary.simulation.settings
    steps = int(summary.simulation.paths.steps[-1])
    offshoots = ["offshoots, test"] if settings.offshoots else []
    table = new_table(
        f"{settings.algorithm}, {steps:,} steps",
        ("seed", "s2 / s1 over time", "final", "train", "test", "jumps", *offshoots),
        left=("s2 / s1 over time", "jumps"),
        caption=f"the first {MOST_ROWS} of {len(summary.runs)} runs" if len(summary.runs) > MOST_ROWS else None,
    )
    for run in summary.runs[:MOST_ROWS]:
        diverged = run.outcome.code is Code.DIVERGED  # its last record is the state before
        table.add_row(
            f"{run.seed}",
            "diverged" if diverged else sparkline(run.ratio, 30),
            *("-" if diverged else f"{number:.2g}" for number in (run.ratio[-1], run.train_error, run.test_error)),
            _jumps(run.jumps),
            *(" ".join(f"{error:.2g}" for error in run.offshoot_errors) for _ in offshoots),
        )
    console.print(table)
    for sentence in summary.sentences:
        console.print(sentence, highlight=False)


def _jumps(found: list[Jump]) -> str:
    text = ", ".join(f"{jump.before} to {jump.after} at {jump.step:,}" for jump in found[-MOST_JUMPS:])
    return f"... {text}" if len(found) > MOST_JUMPS else text or "none"
