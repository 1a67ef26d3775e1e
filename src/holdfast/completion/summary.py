"""The outcome of a matrix completion: ranks, jumps, errors, waiting times and how each run ended.

`summarise` computes all of it once; `recorded_ranks` and `recorded_matrices` are what a sweep keeps of each run.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from holdfast.completion.jumps import SITTING, Jump, memory, rank_paths, waiting
from holdfast.completion.training import Simulation
from holdfast.core.cell_result import CellResult
from holdfast.core.outcome import DIVERGED_AT, Code, Outcome, diverged
from holdfast.core.progress import counted
from holdfast.core.statistics import Estimate, event_rate, proportion

VARIABLES: dict[str, tuple[tuple[str, ...], str]] = {
    "rank": (("step",), "rank of the fitted matrix"),
    "ratio": (("step",), "second singular value over the first"),
    "train_error": (("step",), "mean square error on the observed entries"),
    "test_error": (("step",), "mean square error on the hidden entries"),
    "jumps": ((), "changes of the rank before the run diverged"),
    "offshoot_error": (("offshoot",), "test error at the end of an offshoot"),
    "diverged_at": ((), DIVERGED_AT),
    "fitted": (("step", "row", "column"), "A = W_L ... W_1"),
}
"""The dimensions of what is recorded of a run, and what it is in words."""


def recorded_ranks(simulation: Simulation) -> CellResult:
    """Rank, ratio of singular values and errors at every record, and the number of jumps.

    Example:
        >>> from holdfast.completion.settings import CompletionSettings
        >>> from holdfast.completion.training import simulate_completion
        >>> recorded = recorded_ranks(simulate_completion(CompletionSettings(steps=200, every=50, seeds=2)))
        >>> recorded.values["rank"].shape, recorded.values["jumps"].tolist()
        ((2, 5), [0, 0])
    """
    fitted, steps, diverged_at = simulation.paths.fitted, simulation.paths.steps, simulation.paths.diverged_at
    found = rank_paths(fitted, steps, diverged_at, simulation.problem.scale)
    values = {
        "rank": found.rank.astype(np.int32),
        "ratio": found.ratio,
        "train_error": simulation.problem.train_error(fitted),
        "test_error": simulation.problem.test_error(fitted),
        "jumps": np.array(list(map(len, found.jumps)), np.int32),
        "diverged_at": diverged_at,
    }
    return _recorded(simulation, values)


def bytes_of_ranks(settings: Mapping[str, Any]) -> int:
    """The size of one record of `recorded_ranks`: the rank, and three numbers of double precision.

    Example:
        >>> bytes_of_ranks({"dimension": 20})
        28
    """
    return 4 + 3 * 8


def recorded_matrices(simulation: Simulation) -> CellResult:
    """The fitted matrices themselves, from which `holdfast jumps` makes its summary.

    Example:
        >>> from holdfast.completion.settings import CompletionSettings
        >>> from holdfast.completion.training import simulate_completion
        >>> simulation = simulate_completion(CompletionSettings(steps=200, every=50, seeds=2))
        >>> recorded_matrices(simulation).values["fitted"].shape
        (2, 5, 2, 2)
    """
    return _recorded(simulation, {"fitted": simulation.paths.fitted, "diverged_at": simulation.paths.diverged_at})


def _recorded(simulation: Simulation, values: dict[str, np.ndarray]) -> CellResult:
    """With the errors of offshoots, if there are any."""
    coordinates = {"step": simulation.paths.steps}
    if len(simulation.offshoot_steps):
        values = {**values, "offshoot_error": simulation.offshoot_errors}
        coordinates["offshoot"] = simulation.offshoot_steps
    dimensions = {name: VARIABLES[name][0] for name in values}
    return CellResult(values, dimensions, coordinates, {name: VARIABLES[name][1] for name in values})


# Waiting times are given for the largest ranks from which a run jumped, at most this many.
MOST_STAYS = 3


class RunSummary(NamedTuple):
    """One run.

    Attributes:
        seed: its seed.
        ratio: (records,), s2 / s1.
        rank: at the end.
        train_error: at the end.
        test_error: at the end.
        jumps: changes of the rank, before the run diverged if it did.
        offshoot_errors: test error at the end of each offshoot.
        outcome: how it ended.

    Example:
        >>> from holdfast.completion.settings import CompletionSettings
        >>> from holdfast.completion.training import simulate_completion
        >>> (first, _) = summarise(simulate_completion(CompletionSettings(steps=100, seeds=2))).runs
        >>> first.seed, first.rank, first.jumps
        (0, 2, [])
    """

    seed: int
    ratio: np.ndarray
    rank: int
    train_error: float
    test_error: float
    jumps: list[Jump]
    offshoot_errors: np.ndarray
    outcome: Outcome


class Stay(NamedTuple):
    """The runs that sat at a rank, and how many of them left it.

    Attributes:
        rank: the rank.
        sitting: steps at the rank, without a break, that count as sitting.
        sat: number of runs that sat.
        jumped: number of them that jumped down later.
        rose: number of them whose rank rose later.
        share: that jumped, with its interval.
        rate: jumps a step, with its interval.

    Example, one run of four jumped, after 4000 steps of all of them together:
        >>> rate = event_rate([1000, 1000, 1000, 1000], [True, False, False, False])
        >>> stay = Stay(2, 20.0, sat=4, jumped=1, rose=0, share=proportion(1, 4), rate=rate)
        >>> stay.share.value, stay.rate.value
        (0.25, 0.00025)
    """

    rank: int
    sitting: float
    sat: int
    jumped: int
    rose: int
    share: Estimate
    rate: Estimate

    @property
    def sentence(self) -> str:
        """How many of the runs that sat left, and after how long; runs that only pass through say nothing about it."""
        found = (
            f"Of {counted(self.sat, 'run')} that stayed at rank {self.rank} for at least {self.sitting:,.0f} steps, "
            f"{self.jumped} jumped down ({self.share.low:.0%} to {self.share.high:.0%}) and {self.rose} rose later"
        )
        if not self.rate.value:
            return f"{found}."
        mean, low, high = 1 / self.rate.value, 1 / self.rate.high, 1 / self.rate.low
        return f"{found}; the mean waiting time is {mean:,.0f} steps (95 % interval {low:,.0f} to {high:,.0f})."


class CompletionSummary(NamedTuple):
    """All runs of a simulation.

    Attributes:
        simulation: what is summarised.
        runs: one by one.
        stays: at the largest ranks from which a run jumped.
        notes: what the shape of the network decides before any step is taken.

    Example:
        >>> from holdfast.completion.settings import CompletionSettings
        >>> from holdfast.completion.training import simulate_completion
        >>> found = summarise(simulate_completion(CompletionSettings(steps=100, seeds=2)))
        >>> len(found.runs), found.stays, found.notes
        (2, [], [])
    """

    simulation: Simulation
    runs: list[RunSummary]
    stays: list[Stay]
    notes: list[str]

    @property
    def sentences(self) -> list[str]:
        """The notes, the jumps, how the runs ended, and how long they stayed at a rank.

        Example:
            >>> from holdfast.completion.settings import CompletionSettings
            >>> from holdfast.completion.training import simulate_completion
            >>> summarise(simulate_completion(CompletionSettings(steps=100, seeds=2))).sentences
            ['No jumps down and none up.', '2 runs finished 100 steps at rank 2.']
        """
        found = [jump for run in self.runs for jump in run.jumps]
        down = [jump for jump in found if jump.after < jump.before]
        jumps = f"{counted(len(down), 'jump') if down else 'No jumps'} down and {len(found) - len(down) or 'none'} up"
        if down:
            first = min(down, key=lambda jump: jump.step)
            jumps += f"; the first down, from rank {first.before} to {first.after}, at step {first.step:,}"
        lost = self.simulation.paths.diverged_at
        first_lost = f"diverged, the first at step {lost[lost >= 0].min(initial=np.iinfo(lost.dtype).max):,}"
        endings = Counter(
            first_lost if run.outcome.code is Code.DIVERGED else run.outcome.sentence for run in self.runs
        )
        ends = [f"{counted(count, 'run')} {how}." for how, count in endings.most_common()]
        return [*self.notes, f"{jumps}.", *ends, *(stay.sentence for stay in self.stays)]

    def asdict(self) -> dict[str, Any]:
        """As plain values for JSON."""
        return {
            "settings": self.simulation.settings.asdict(),
            "observed": self.simulation.problem.count,
            "notes": self.notes,
            "runs": [
                {
                    "seed": run.seed,
                    "ratio": run.ratio[-1].item(),
                    "train_error": run.train_error,
                    "test_error": run.test_error,
                    "rank": run.rank,
                    "jumps": [jump._asdict() for jump in run.jumps],
                    "offshoots": [
                        {"step": int(step), "test_error": error.item()}
                        for step, error in zip(self.simulation.offshoot_steps, run.offshoot_errors, strict=True)
                    ],
                    "outcome": {"code": run.outcome.code.name.lower(), "sentence": run.outcome.sentence},
                }
                for run in self.runs
            ],
        }


def summarise(simulation: Simulation) -> CompletionSummary:
    """Ranks, jumps, errors, waiting times and outcomes of a simulation.

    Example:
        >>> from holdfast.completion.settings import CompletionSettings
        >>> from holdfast.completion.training import simulate_completion
        >>> found = summarise(simulate_completion(CompletionSettings(steps=100, seeds=2)))
        >>> [run.outcome.sentence for run in found.runs]
        ['finished 100 steps at rank 2', 'finished 100 steps at rank 2']
    """
    settings, problem, paths = simulation.settings, simulation.problem, simulation.paths
    fitted = paths.fitted
    path, ratio, moves = rank_paths(fitted, paths.steps, paths.diverged_at, problem.scale)
    train, test = problem.train_error(fitted[:, -1]), problem.test_error(fitted[:, -1])
    runs = [
        RunSummary(
            settings.seed + row,
            ratio[row],
            int(path[row, -1]),
            train[row].item(),
            test[row].item(),
            moves[row],
            simulation.offshoot_errors[row],
            _outcome(simulation, row, path[row]),
        )
        for row in range(settings.seeds)
    ]
    left = sorted({jump.before for run in runs for jump in run.jumps}, reverse=True)
    stays = [stay for rank in left[:MOST_STAYS] if (stay := _stay(simulation, path, rank)).sat]
    return CompletionSummary(simulation, runs, stays, _notes(simulation))


def _stay(simulation: Simulation, path: np.ndarray, rank: int) -> Stay:
    sitting = SITTING * memory(simulation.settings.step_size, simulation.settings.ridge)
    found = waiting(simulation.paths.steps, path, rank, sitting, simulation.paths.diverged_at)
    sat, jumped, rose = (int(part.sum()) for part in (found.sat, found.jumped, found.rose))
    rate = event_rate(found.waited[found.sat], found.jumped[found.sat])
    return Stay(rank, sitting, sat, jumped, rose, proportion(jumped, max(sat, 1)), rate)


def _notes(simulation: Simulation) -> list[str]:
    settings = simulation.settings
    if settings.depth == 1:
        return ["One layer is plain regression, entry by entry: no bias towards low rank, and hidden entries decay."]
    rank = int(np.linalg.matrix_rank(np.asarray(simulation.problem.truth)))
    if settings.width >= rank:
        return []
    return [f"Width {settings.width} is below the rank {rank} of the matrix: it cannot be fitted exactly."]


def _outcome(simulation: Simulation, run: int, path: np.ndarray) -> Outcome:
    """How one run ended, given its rank at every record."""
    steps, diverged_at = int(simulation.paths.steps[-1]), int(simulation.paths.diverged_at[run])
    if diverged_at >= 0:
        return diverged(diverged_at, "layers")
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
