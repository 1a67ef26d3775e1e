"""Jumps between ranks along a trajectory of singular values: when, from where, to where, and after how long a stay."""

from typing import NamedTuple

import numpy as np

# A singular value is gone when it falls below the first share of the scale, and back when it rises above the second.
# In between the rank does not change, so that a value that fluctuates around one threshold makes no jumps.
GONE, BACK = 0.01, 0.1
# A run has sat at a rank, and not only passed through it on its way from the start, after this many memory times of
# the ridge.
SITTING = 20.0


class Jump(NamedTuple):
    """A change of the rank.

    Attributes:
        step: of the first record at the new rank.
        before: the rank it left.
        after: the rank it went to.
        stay: steps spent at the rank it left.

    Example, from rank 2 to rank 1 after 20 steps:
        >>> jumps(np.array([0, 10, 20, 30]), np.array([2, 2, 1, 1]))[0].after
        1
    """

    step: int
    before: int
    after: int
    stay: int


def memory(step_size: float, ridge: float) -> float:
    """Steps in which the penalty alone shrinks a layer by a factor e, 1 / (2 eta lambda)."""
    return 1 / (2 * step_size * ridge) if ridge > 0 else np.inf


def ranks(singular_values: np.ndarray, scale: float) -> np.ndarray:
    """The rank at every record, with hysteresis: a value is lost below `GONE` and found again above `BACK`.

    Args:
        singular_values: (..., records, values) of the fitted matrix.
        scale: to which they are compared; a number of the problem, not of the fit, so that the rank can become 0.

    Example:
        >>> values = np.array([[1.0, 0.5], [1.0, 0.05], [1.0, 0.001], [1.0, 0.05], [1.0, 0.2]])
        >>> ranks(values, 1.0).tolist()
        [2, 2, 1, 1, 2]
    """
    values = np.asarray(singular_values) / scale
    alive = values[..., 0, :] > GONE
    counts = [alive.sum(-1)]
    for record in range(1, values.shape[-2]):
        alive = np.where(alive, values[..., record, :] > GONE, values[..., record, :] > BACK)
        counts.append(alive.sum(-1))
    return np.stack(counts, -1)


def jumps(steps: np.ndarray, path: np.ndarray) -> list[Jump]:
    """All changes of the rank along one run.

    Args:
        steps: (records,), the number of steps done at each record.
        path: (records,), the rank at each record.

    Example:
        >>> jumps(np.array([0, 10, 20, 30]), np.array([2, 2, 1, 1]))
        [Jump(step=20, before=2, after=1, stay=20)]
    """
    changes = np.flatnonzero(np.diff(path)) + 1
    begins = np.concatenate([[0], changes])
    return [
        Jump(int(steps[at]), int(path[at - 1]), int(path[at]), int(steps[at] - steps[begin]))
        for begin, at in zip(begins, changes, strict=False)
    ]


def before_divergence(steps: np.ndarray, diverged_at: np.ndarray) -> np.ndarray:
    """Which records are from before a run diverged, (runs, records): afterwards it stays frozen at its last state.

    Args:
        steps: (records,), the number of steps done at each record.
        diverged_at: (runs,), the step at which a run diverged, -1 where it did not.

    Example:
        >>> before_divergence(np.array([0, 10, 20]), np.array([-1, 10]))
        array([[ True,  True,  True],
               [ True, False, False]])
    """
    ends = np.asarray(diverged_at)[:, None]
    return (ends < 0) | (np.asarray(steps) < ends)


class RankPaths(NamedTuple):
    """The ranks of runs over time.

    Attributes:
        rank: (runs, records), with the hysteresis of `ranks`.
        ratio: (runs, records), s2 / s1; 0 where one of them is missing or s1 is 0.
        jumps: of each run, before it diverged if it did.

    Example, one run whose second singular value vanishes:
        >>> fitted = np.array([[np.diag([1.0, 0.5]), np.diag([1.0, 0.001])]])
        >>> found = rank_paths(fitted, np.array([0, 10]), np.array([-1]), scale=1.0)
        >>> found.rank.tolist(), found.ratio.tolist()
        ([[2, 1]], [[0.5, 0.001]])
    """

    rank: np.ndarray
    ratio: np.ndarray
    jumps: list[list[Jump]]


def rank_paths(fitted: np.ndarray, steps: np.ndarray, diverged_at: np.ndarray, scale: float) -> RankPaths:
    """The ranks of fitted matrices over time, and their jumps.

    Args:
        fitted: (runs, records, rows, columns).
        steps: (records,), the number of steps done at each record.
        diverged_at: (runs,), the step at which a run diverged, -1 where it did not.
        scale: to which singular values are compared, see `ranks`.

    Example:
        >>> fitted = np.array([[np.diag([1.0, 0.5]), np.diag([1.0, 0.001])]])
        >>> rank_paths(fitted, np.array([0, 10]), np.array([-1]), scale=1.0).jumps
        [[Jump(step=10, before=2, after=1, stay=10)]]
    """
    values = np.linalg.svd(fitted, compute_uv=False)
    path, moving = ranks(values, scale), before_divergence(steps, diverged_at)
    found = [jumps(steps[row], each[row]) for each, row in zip(path, moving, strict=True)]
    first, second = values[..., 0], values[..., 1] if values.shape[-1] > 1 else np.zeros(values.shape[:-1])
    return RankPaths(path, second / np.where(first > 0, first, 1), found)


class Waiting(NamedTuple):
    """How long each run waited for a jump down from a rank at which it sat.

    Attributes:
        sat: (runs,), whether it sat at the rank before it diverged, if it did.
        jumped: (runs,), whether it left the rank downwards after sitting at it.
        waited: (runs,), steps from the moment it had sat until the jump, or else until the last record before the
            end or the divergence.
        jump_step: (runs,), the step of the jump, or -1.
        rose: (runs,), whether the rank ever rose after a run had sat.
    """

    sat: np.ndarray
    jumped: np.ndarray
    waited: np.ndarray
    jump_step: np.ndarray
    rose: np.ndarray


def waiting(steps: np.ndarray, paths: np.ndarray, rank: int, sitting: float, diverged_at: np.ndarray) -> Waiting:
    """When runs leave a rank downwards, counted from the moment they have sat at it.

    A run that reaches a lower rank without a stay of `sitting` steps at this one has not jumped: it only passed through
    on its way from the start. Records after a run diverged are left out: its frozen state would look like sitting.

    Args:
        steps: (records,), the number of steps done at each record.
        paths: (runs, records), the rank at each record.
        rank: the rank that they leave.
        sitting: steps at the rank, without a break, that count as sitting.
        diverged_at: (runs,), the step at which a run diverged, -1 where it did not.

    Example, the second run diverges before it has sat:
        >>> paths = np.array([[3, 2, 2, 2, 1], [2, 2, 2, 2, 2]])
        >>> waiting(np.arange(0, 50, 10), paths, rank=2, sitting=20, diverged_at=np.array([-1, 15]))[:3]
        (array([ True, False]), array([ True, False]), array([10,  0]))
    """
    rows = []
    for whole, moving in zip(np.asarray(paths), before_divergence(steps, diverged_at), strict=True):
        path, times = whole[moving], np.asarray(steps)[moving]
        # The record at which the stay began that a record belongs to, or the next one where it is not at the rank.
        begins = np.maximum.accumulate(np.where(path == rank, 0, np.arange(len(path)) + 1))
        sits = np.flatnonzero((path == rank) & (times - times[np.minimum(begins, len(path) - 1)] >= sitting))
        if not len(sits):
            rows.append((False, False, 0, -1, False))
            continue
        settled = sits[0]
        later = path[settled:]
        left = np.flatnonzero(later < rank)
        end = settled + (left[0] if len(left) else len(later) - 1)
        step = int(times[end]) if len(left) else -1
        rows.append((True, bool(len(left)), int(times[end] - times[settled]), step, bool((np.diff(later) > 0).any())))
    return Waiting(*(np.array(column) for column in zip(*rows, strict=True)))
