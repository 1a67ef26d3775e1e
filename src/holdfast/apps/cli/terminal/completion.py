"""Runs of a matrix completion in a terminal."""

from holdfast.apps.cli.terminal.tables import new_table, show
from holdfast.apps.cli.terminal.trajectories import sparkline
from holdfast.completion.jumps import Jump
from holdfast.completion.summary import CompletionSummary, RunSummary
from holdfast.core.outcome import Code

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
