"""Jumps: a deep linear network completes a matrix, loses a rank at times, and never finds it again."""

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.apps.cli.command import given
from holdfast.apps.lab.inputs import choice, meaningful, number
from holdfast.apps.lab.view import Context, View, as_call, as_command
from holdfast.completion.settings import ALGORITHMS, PROBLEMS, CompletionSettings
from holdfast.core.order import ORDERS
from holdfast.core.progress import stages

if TYPE_CHECKING:
    from holdfast.completion.training import Simulation

# Records of a trajectory: as many as a chart of this width can show.
RECORDS = 200
# The curves of this fraction of the steps are sent before the rest is computed, which costs that fraction again.
EARLY = 8
# What has to be chosen for a setting to mean something.
TWO_BY_TWO, RANDOM = ("problem", ("two-by-two",)), ("problem", ("random",))
MINI_BATCH, LABEL_NOISE = ("algorithm", ("mini-batch",)), ("algorithm", ("label-noise",))
MOST_OFFSHOOTS = 8
of_offshoots = partial(number, group="Offshoots", only_for=("offshoots", tuple(range(1, MOST_OFFSHOOTS + 1))))
# Singular values of a single run, and ranks, that are told apart in a chart.
LINES = 4


@dataclass(frozen=True)
class JumpsSettings:
    """A matrix completion that takes a moment, so that it can follow a slider.

    The defaults are those of `CompletionSettings`, with fewer runs and steps.
    """

    problem: str = choice("two-by-two", "Matrix", PROBLEMS, group="Matrix")
    epsilon: float = number(
        0.25, "ε of the matrix", 0.05, 1.0, step=0.02, logarithmic=True, group="Matrix", only_for=TWO_BY_TWO
    )
    dimension: int = number(10, "Dimension", 4, 20, step=1, group="Matrix", only_for=RANDOM)
    rank: int = number(2, "Rank", 1, 4, step=1, group="Matrix", only_for=RANDOM)
    share: float = number(0.5, "Share of entries observed", 0.1, 0.95, step=0.05, group="Matrix", only_for=RANDOM)
    problem_seed: int = number(0, "Seed of the matrix", 0, 9999, step=1, group="Matrix", only_for=RANDOM)
    depth: int = number(3, "Depth L", 1, 6, step=1, group="Network")
    width: int = number(6, "Width", 1, 20, step=1, group="Network")
    init_scale: float = number(1.0, "Initial scale", 0.01, 2.0, step=0.02, logarithmic=True, group="Network")
    algorithm: str = choice("sgd", "Algorithm", ALGORITHMS, group="Training")
    order: str = choice("independent", "Order of entries", ORDERS, group="Training")
    step_size: float = number(0.4, "Step size η", 0.01, 1.0, step=0.01, logarithmic=True, group="Training")
    ridge: float = number(0.0245, "Ridge λ", 1e-4, 0.1, step=0.01, logarithmic=True, group="Training")
    batch_size: int = number(2, "Entries in a mini-batch", 1, 16, step=1, group="Training", only_for=MINI_BATCH)
    noise_variance: float = number(
        0.01, "Variance of label noise", 1e-4, 1.0, step=0.1, logarithmic=True, group="Training", only_for=LABEL_NOISE
    )
    steps: int = number(50_000, "Steps T", 1000, 100_000, step=1000, group="Training")
    offshoots: int = number(0, "Offshoots of each run", 0, MOST_OFFSHOOTS, step=1, group="Offshoots")
    offshoot_step_size: float = of_offshoots(0.2, "Step size of offshoots", 0.01, 1.0, step=0.01, logarithmic=True)
    offshoot_ridge: float = of_offshoots(2e-4, "Ridge of offshoots", 1e-5, 0.1, step=0.1, logarithmic=True)
    offshoot_steps: int = of_offshoots(50_000, "Steps of offshoots", 1000, 100_000, step=1000)
    seeds: int = choice(8, "Runs", {8: "quickest", 16: "slower", 32: "slowest"}, group="Runs")
    seed: int = number(0, "First seed", 0, 9999, step=1, group="Runs")

    def simulated(self) -> CompletionSettings:
        """What is simulated; fields that do not matter for it have their defaults, so that copied code is short."""
        return CompletionSettings(**meaningful(self), every=max(1, self.steps // RECORDS))


def compute(settings: JumpsSettings, context: Context) -> dict[str, Any]:
    """The curves of the first steps, then those of all, with the offshoots."""
    from holdfast.completion.training import simulate_completion

    simulated = settings.simulated()
    context.send("code", code(settings))
    early = replace(simulated, steps=simulated.steps // EARLY, offshoots=0)
    branching = simulated.offshoots * simulated.offshoot_steps
    first, whole = stages(context.progress, (early.steps, simulated.steps + branching))
    context.send("curves", _curves(simulate_completion(early, progress=first))[0])
    curves, words = _curves(simulate_completion(simulated, progress=whole))
    return {"curves": curves, "summary": words}


def _curves(simulation: "Simulation") -> tuple[dict[str, Any], str]:
    """Singular values, ranks and errors of all runs, where their offshoots end, and the result in words."""
    from holdfast.completion.jumps import before_divergence, ranks
    from holdfast.completion.summary import summarise

    summary = summarise(simulation)
    paths, problem = simulation.paths, simulation.problem
    fitted = paths.fitted
    values = np.linalg.svd(fitted, compute_uv=False)
    rank = ranks(values, problem.scale)
    # From the step of its divergence on a run only repeats its last finite state.
    moving = before_divergence(paths.steps, paths.diverged_at)
    at = np.searchsorted(paths.steps, simulation.offshoot_steps)
    # The run that jumps last has stayed longest.
    last = [max((jump.step for jump in run.jumps), default=-1) for run in summary.runs]
    single = last.index(max(last))
    test = np.where(moving, problem.test_error(fitted), np.nan)
    ends = np.where(moving[:, at], simulation.offshoot_errors, np.nan)
    curves = {
        "steps": paths.steps,
        "ratio": np.where(moving, np.stack([run.ratio for run in summary.runs]), np.nan),
        "test_error": test,
        "train_error": np.where(moving, problem.train_error(fitted), np.nan),
        "single": {
            "seed": summary.runs[single].seed,
            "singular_values": np.where(moving[single, :, None], values[single], np.nan)[:, :LINES].T,
        },
        "ranks": {str(value): (moving & (rank == value)).mean(0) for value in np.unique(rank[moving])[:LINES]},
        "offshoots": {
            "steps": simulation.offshoot_steps,
            "true_rank": int(np.linalg.matrix_rank(np.asarray(problem.truth))),
            "length": simulation.settings.offshoot_steps,
            "rank": rank[:, at],
            "begin": test[:, at],
            "end": ends,
        },
    }
    return curves, " ".join([*summary.sentences, *_about_offshoots(rank[:, at], ends)])


def _about_offshoots(rank: np.ndarray, ends: np.ndarray) -> list[str]:
    """The test errors at the ends of offshoots, by the rank at which they branched off."""
    errors = {value: ends[(rank == value) & np.isfinite(ends)] for value in np.unique(rank)}
    return [
        f"Offshoots from rank {value} end with a median test error of {np.median(found):.2g}."
        for value, found in errors.items()
        if len(found)
    ]


def code(settings: JumpsSettings) -> dict[str, str]:
    """The same simulation, with its jumps in words."""
    changed = given(settings.simulated())
    python = f"""import holdfast as hf

settings = {as_call("hf.completion.CompletionSettings", changed)}
summary = hf.completion.summarise(hf.completion.simulate_completion(settings))
print(*summary.sentences, sep="\\n")
for run in summary.runs:
    print(run.seed, run.test_error, run.jumps, run.offshoot_errors)
"""
    return {"python": python, "command": as_command(["jumps"], changed)}


VIEW = View(JumpsSettings, compute)
