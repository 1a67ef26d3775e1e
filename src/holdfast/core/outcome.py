"""How a run ended: a code and a sentence."""

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from holdfast.core.run import DIVERGENCE_LIMIT, Records

# A run in phase 2 has converged when none of these moved by more than this over the last quarter of its steps.
SETTLING = ("invariant", "spurious", "residual")
TOLERANCE = 0.01
LATE = 0.75  # the last quarter begins after this share of the steps


class Code(IntEnum):
    """The ways a run can end.

    Example:
        >>> Code(2).name
        'DIVERGED'
    """

    FINISHED = 0
    CONVERGED = 1
    DIVERGED = 2


CODES_IN_WORDS = ", ".join(f"{code.value}: {code.name.lower()}" for code in Code)
"""The numbers of the codes, for the attributes of a result."""
DIVERGED_AT = "step at which the run diverged, or -1"
"""What `diverged_at` means, for the same."""


class Outcome(NamedTuple):
    """The end of one run.

    Attributes:
        code: how it ended.
        sentence: the same for a reader.

    Example, a step size at which the invariant signal is not held:
        >>> from holdfast.sensing.settings import Settings
        >>> from holdfast.sensing.simulation import simulate
        >>> settings = Settings(dimension=10, steps=200, seeds=4, oracle="population", step_size=3.0)
        >>> simulate(settings).outcomes[0].code.name
        'DIVERGED'
    """

    code: Code
    sentence: str


def diverged(step: int, parameters: str) -> Outcome:
    """The outcome of a run whose parameters passed the limit of `run` at a step.

    Example:
        >>> diverged(7, "factors").sentence
        'diverged at step 7: the squared norm of the factors passed 1e+08'
    """
    sentence = f"diverged at step {step}: the squared norm of the {parameters} passed {DIVERGENCE_LIMIT:.0e}"
    return Outcome(Code.DIVERGED, sentence)


# The ends of a run in the order in which they are told apart, each with its code and, but for the first, its sentence.
_ENDS = (
    (Code.DIVERGED, ""),
    (Code.FINISHED, "finished {steps} steps; too few records to tell whether it converged"),
    (Code.FINISHED, "finished {steps} steps; the {widest} signal still moved by {moved:.2g} in the last quarter"),
    (Code.FINISHED, "finished {steps} steps; the invariant signal is still small"),
    (Code.CONVERGED, f"converged: no signal moved by more than {TOLERANCE} in the last quarter of {{steps}} steps"),
)


def outcomes(records: Records) -> list[Outcome]:
    """The outcome of every run.

    Diverged: the squared norm of the state passed the limit of `run`. Converged: the run is in phase 2, and its
    invariant, spurious and residual signals stayed within a range of 0.01 over the records of the last quarter of the
    steps. Finished: neither.
    """
    steps, (ends, ranges) = int(records.steps[-1]), _ends(records)
    found = []
    for end, step, widest, moved in zip(ends, records.diverged_at, ranges.argmax(0), ranges.max(0), strict=True):
        code, sentence = _ENDS[end]
        told = Outcome(code, sentence.format(steps=steps, widest=SETTLING[widest], moved=moved))
        found.append(diverged(int(step), "factors") if code is Code.DIVERGED else told)
    return found


def outcome_codes(records: Records) -> np.ndarray:
    """The codes of `outcomes` as numbers, for many runs at once.

    Example, a run that diverged at step 7, and one that stayed at the invariant solution:
        >>> values = {"invariant": np.ones((2, 5)), "spurious": np.zeros((2, 5)), "residual": np.zeros((2, 5))}
        >>> values["phase"] = np.full((2, 5), 2)
        >>> outcome_codes(Records(np.arange(5), values, np.array([7, -1]))).tolist()
        [2, 1]
    """
    return np.array([code for code, _ in _ENDS], np.int8)[_ends(records)[0]]


def _ends(records: Records) -> tuple[np.ndarray, np.ndarray]:
    """The end of every run, (runs,), and the ranges of its signals in the last quarter, (signals, runs)."""
    late = records.steps >= LATE * int(records.steps[-1])
    ranges = np.array([np.ptp(records.values[name][:, late], axis=1) for name in SETTLING])
    untold = np.full(len(records.diverged_at), late.sum() < 2)
    moving, small = ~(ranges.max(axis=0) <= TOLERANCE), records.values["phase"][:, -1] == 1
    return np.select([records.diverged_at >= 0, untold, moving, small], range(4), 4), ranges
