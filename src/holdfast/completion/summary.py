"""What became of matrix completion runs: for a program as plain values, for people as a table."""

from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from holdfast.cli.terminal import sparkline
from holdfast.completion.jumps import SITTING, Jump, before_divergence, jumps, memory, ranks, waiting
from holdfast.completion.training import Simulation
from holdfast.core.run import DIVERGENCE_LIMIT
from holdfast.core.statistics import proportion
from holdfast.core.survival import event_rate
from holdfast.sensing.outcome import Code, Outcome

SHOWN_RUNS = 20


def summary(simulation: Simulation) -> dict[str, Any]:
    """Settings, and for each seed the final ratio s2 / s1, errors, ranks, jumps, offshoots and outcome."""
    settings, problem, paths = simulation.settings, simulation.problem, simulation.paths
    values = _singular_values(simulation)
    path = ranks(values, problem.scale)
    final = paths.fitted[:, -1]
    train, test = problem.train_error(final), problem.test_error(final)
    runs = []
    for row, seed in enumerate(range(settings.seed, settings.seed + settings.seeds)):
        outcome = ending(simulation, row, path[row])
        runs.append(
            {
                "seed": seed,
                "ratio": _ratio(values)[row, -1].item(),
                "train_error": train[row].item(),
                "test_error": test[row].item(),
                "rank": int(path[row, -1]),
                "jumps": [jump._asdict() for jump in _jumps(simulation, row, path[row])],
                "offshoots": [
                    {"step": int(step), "test_error": error.item()}
                    for step, error in zip(simulation.offshoot_steps, simulation.offshoot_errors[row], strict=True)
                ],
                "outcome": {"code": outcome.code.name.lower(), "sentence": outcome.sentence},
            }
        )
    return {"settings": settings.asdict(), "observed": problem.count, "notes": _notes(simulation), "runs": runs}


def _notes(simulation: Simulation) -> list[str]:
    """What the shape of the network decides before any step is taken."""
    settings, problem = simulation.settings, simulation.problem
    notes = []
    if settings.depth == 1:
        notes.append(
            "One layer is plain regression, entry by entry: no bias towards low rank, and hidden entries decay."
        )
    rank = int(np.linalg.matrix_rank(np.asarray(problem.truth)))
    if settings.depth > 1 and settings.width < rank:
        notes.append(f"Width {settings.width} is below the rank {rank} of the matrix: it cannot be fitted exactly.")
    return notes


def ending(simulation: Simulation, run: int, path: np.ndarray) -> Outcome:
    """How one run ended: a code and a sentence."""
    steps, diverged_at = int(simulation.paths.steps[-1]), int(simulation.paths.diverged_at[run])
    if diverged_at >= 0:
        return Outcome(
            Code.DIVERGED,
            f"diverged at step {diverged_at}: the squared norm of the layers passed {DIVERGENCE_LIMIT:.0e}",
        )
    ridge = simulation.settings.ridge > 0
    if simulation.problem.count == 0:
        effect = "the ridge shrinks every layer to 0" if ridge else "no layer moves"
        return Outcome(Code.FINISHED, f"finished {steps} steps; no entry is observed, so {effect}")
    if path[-1] == 0:
        # A run that begins at rank 0 may never have left it, and without a ridge nothing shrinks what it found.
        shrunk = ridge and path.any()
        reason = "the ridge made every singular value vanish" if shrunk else "no singular value has grown yet"
        return Outcome(Code.FINISHED, f"finished {steps} steps at rank 0: {reason}")
    return Outcome(Code.FINISHED, f"finished {steps} steps at rank {path[-1]}")


def table(simulation: Simulation) -> None:
    """Print one row a run, with a small plot of s2 / s1, and what the runs have in common."""
    settings, problem, paths = simulation.settings, simulation.problem, simulation.paths
    values = _singular_values(simulation)
    path, ratio = ranks(values, problem.scale), _ratio(values)
    final = paths.fitted[:, -1]
    train, test = problem.train_error(final), problem.test_error(final)
    console = Console()
    shown = Table(title=f"{settings.algorithm}, {int(paths.steps[-1]):,} steps", title_justify="left")
    columns = (
        "seed",
        "s2 / s1 over time",
        "final",
        "train",
        "test",
        "jumps",
        *(["offshoots, test"] if settings.offshoots else []),
    )
    for column in columns:
        shown.add_column(column, justify="left" if column in ("s2 / s1 over time", "jumps") else "right")
    for row in range(min(SHOWN_RUNS, settings.seeds)):
        gone = paths.diverged_at[row] >= 0  # what is left of it is the state before
        cells = [
            f"{settings.seed + row}",
            "diverged" if gone else sparkline(ratio[row], 30),
            *("-" if gone else f"{number[row]:.2g}" for number in (ratio[:, -1], train, test)),
        ]
        cells.append(_told(_jumps(simulation, row, path[row])))
        if settings.offshoots:
            cells.append(" ".join(f"{error:.2g}" for error in simulation.offshoot_errors[row]))
        shown.add_row(*cells)
    if settings.seeds > SHOWN_RUNS:
        shown.caption, shown.caption_justify = f"the first {SHOWN_RUNS} of {settings.seeds} runs", "left"
    console.print(shown)
    for sentence in _sentences(simulation, path):
        console.print(sentence, highlight=False)


def _sentences(simulation: Simulation, path: np.ndarray) -> list[str]:
    settings, paths = simulation.settings, simulation.paths
    ends = [ending(simulation, row, path[row]) for row in range(settings.seeds)]
    told = _notes(simulation) + [
        f"{sum(end.sentence == text for end in ends)} x {text}" for text in dict.fromkeys(end.sentence for end in ends)
    ]
    sitting = SITTING * memory(settings.step_size, settings.ridge)
    for rank in sorted(
        {jump.before for row, own in enumerate(path) for jump in _jumps(simulation, row, own)}, reverse=True
    )[:3]:
        found = waiting(paths.steps, path, rank, sitting, paths.diverged_at)
        if not found.sat.any():
            continue
        sat, jumped, rose = (int(part.sum()) for part in (found.sat, found.jumped, found.rose))
        share = proportion(jumped, sat)
        rate = event_rate(found.waited[found.sat], found.jumped[found.sat])
        sentence = (
            f"rank {rank}: {sat} runs sat there for {sitting:,.0f} steps, {jumped} of them jumped down "
            f"({share.low:.0%} to {share.high:.0%}), {rose} rose later"
        )
        if rate.value:
            sentence += f"; mean waiting time {1 / rate.value:,.0f} steps ({1 / rate.high:,.0f} to {1 / rate.low:,.0f})"
        told.append(sentence)
    return told


def _jumps(simulation: Simulation, run: int, path: np.ndarray) -> list[Jump]:
    """The jumps of one run, up to where it diverged if it did."""
    steps, diverged_at = simulation.paths.steps, simulation.paths.diverged_at[run : run + 1]
    (moving,) = before_divergence(steps, diverged_at)
    return jumps(steps[moving], path[moving])


def _told(found: list[Jump]) -> str:
    text = ", ".join(f"{jump.before} to {jump.after} at {jump.step:,}" for jump in found[-3:])
    return f"... {text}" if len(found) > 3 else text or "none"


def _singular_values(simulation: Simulation) -> np.ndarray:
    return np.linalg.svd(simulation.paths.fitted, compute_uv=False)


def _ratio(values: np.ndarray) -> np.ndarray:
    """s2 / s1, and 0 where there is no second or no first one."""
    if values.shape[-1] < 2:
        return np.zeros(values.shape[:-1])
    return values[..., 1] / np.where(values[..., 0] > 0, values[..., 0], 1)
