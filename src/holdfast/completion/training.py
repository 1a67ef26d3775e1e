"""Matrix completion by deep linear networks: from settings to the layers over time, and offshoots of the runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from jax.typing import ArrayLike

from holdfast.completion.deep_linear import deep_linear, orthogonal_layers, repeated
from holdfast.completion.oracles import weighted_entries
from holdfast.completion.problem import MatrixCompletion
from holdfast.completion.settings import ALGORITHMS, ORDERED, PROBLEMS, AlgorithmName, CompletionSettings, OrderName
from holdfast.core.order import ORDERS, Order, reshuffling
from holdfast.core.progress import Progress, stages
from holdfast.core.randomness import OFFSHOOT, derived_seeds
from holdfast.core.run import Algorithm, Run, run

# A step on small layers costs little more than launching its kernels, so many runs share a launch. But XLA splits a
# kernel of more entries than this among threads, which costs more than it gains.
ENTRIES, LARGEST_SLAB, SMALLEST_SLAB = 1600, 64, 4


@dataclass(frozen=True)
class CompletionBuilder:
    """Makes one run; equal builders are compiled once.

    Attributes:
        algorithm: by name.
        batch_size: entries in a mini-batch.
        substeps: Euler-Maruyama steps of the stochastic differential equation in one step of SGD.
        order: of the entries, by name, where a step sees one.

    Example, to be given to `train`:
        >>> CompletionBuilder("mini-batch", batch_size=3) == CompletionBuilder("mini-batch", batch_size=3)
        True
    """

    algorithm: AlgorithmName = "sgd"
    batch_size: int = 2
    substeps: int = 1
    order: OrderName = "independent"

    def __call__(self, problem: MatrixCompletion, parameters: Mapping[str, Any]) -> Run:
        """The algorithm of one run; its layers are recorded."""
        options: dict[str, tuple] = {
            "mini-batch": (self.batch_size,),
            "label-noise": (parameters["noise_variance"],),
            "sde": (self.substeps,),
        }
        seen = partial(ALGORITHMS[self.algorithm].load(), problem, *options.get(self.algorithm, ()))
        substeps = self.substeps if self.algorithm == "sde" else 1
        step_size, ridge = parameters["step_size"] / substeps, parameters["ridge"]
        entries, seed = tuple(range(problem.count)), parameters["seed"]

        def make(order: Order | None) -> Algorithm:
            gradient = seen(order=order) if self.algorithm in ORDERED else weighted_entries(problem, seen())
            return deep_linear(gradient, parameters["layers"], step_size, ridge)

        if self.order == "reshuffled" and self.algorithm in ORDERED:
            algorithm = reshuffling(make, entries, seed)
        else:
            algorithm = make(ORDERS[self.order].load()(entries, seed))
        return Run(repeated(algorithm, substeps) if substeps > 1 else algorithm, lambda layers: {"layers": layers})


class LayerPaths(NamedTuple):
    """The layers of every run at every record.

    Attributes:
        steps: (records,), the number of steps done.
        layers: W_1, ..., W_L, each (runs, records, rows, columns).
        diverged_at: (runs,), the step at which a run left the finite region, -1 where it did not.

    Example, two layers of one run at one record:
        >>> layers = (np.full((1, 1, 1, 2), 3.0), np.full((1, 1, 2, 1), 2.0))
        >>> LayerPaths(np.array([0]), layers, np.array([-1])).fitted[0, 0].tolist()
        [[6.0, 6.0], [6.0, 6.0]]
    """

    steps: np.ndarray
    layers: tuple[np.ndarray, ...]
    diverged_at: np.ndarray

    @property
    def fitted(self) -> np.ndarray:
        """A = W_L ... W_1 at every record, (runs, records, rows, columns)."""
        product = self.layers[0].astype(float)
        for layer in self.layers[1:]:
            product = layer @ product
        return product

    @property
    def final(self) -> tuple[np.ndarray, ...]:
        """The layers of all runs at the last record."""
        return tuple(layer[:, -1] for layer in self.layers)


def train(
    problem: MatrixCompletion,
    layers: tuple[np.ndarray, ...],
    seeds: ArrayLike,
    *,
    step_size: ArrayLike,
    ridge: ArrayLike,
    steps: int,
    every: int,
    build: CompletionBuilder | None = None,
    noise_variance: ArrayLike = 0.0,
    slab: int | None = None,
    progress: Progress | None = None,
) -> LayerPaths:
    """Train one network for each seed, all on one problem.

    Args:
        problem: what is observed.
        layers: the starts, each with a leading axis of runs.
        seeds: one for each run.
        step_size: eta, one for all runs or one for each.
        ridge: lambda, one for all runs or one for each.
        steps: T.
        every: steps between records.
        build: makes the runs; of SGD by default.
        noise_variance: of the labels, for the algorithm label-noise.
        slab: runs in one compiled program; by default as many as suit the size of the layers.
        progress: called with (steps done, steps in all), summed over runs.

    Example, gradient descent on the 2 x 2 example fits what is observed:
        >>> from holdfast.completion import two_by_two
        >>> start = starts((2, 3, 3, 2), 1.0, range(4))
        >>> options = {"step_size": 0.2, "ridge": 1e-4, "steps": 2000, "every": 2000}
        >>> paths = train(two_by_two(0.5), start, range(4), build=CompletionBuilder("gradient-descent"), **options)
        >>> bool((two_by_two(0.5).train_error(paths.fitted[:, -1]) < 1e-5).all())
        True
    """
    count = len(np.asarray(seeds))
    numbers = {"step_size": step_size, "ridge": ridge, "noise_variance": noise_variance}
    dtype = np.asarray(problem.targets).dtype
    parameters: dict[str, Any] = {
        name: np.broadcast_to(np.asarray(value, dtype), count) for name, value in numbers.items()
    }
    parameters["seed"] = np.asarray(seeds, np.uint32)
    parameters["layers"] = tuple(np.asarray(layer, dtype) for layer in layers)
    records = run(
        build or CompletionBuilder(), problem, parameters, seeds, steps=steps, every=every,
        slab=slab or slab_size(layers), double=dtype == np.float64, progress=progress,
    )  # fmt: skip
    recorded: Any = records.values["layers"]  # a tuple of arrays: records may be any tree
    return LayerPaths(records.steps, recorded, records.diverged_at)


def slab_size(layers: tuple[np.ndarray, ...]) -> int:
    """How many runs one compiled program holds."""
    return max(SMALLEST_SLAB, min(LARGEST_SLAB, ENTRIES // max(layer[0].size for layer in layers)))


def starts(widths: tuple[int, ...], init_scale: float, seeds: ArrayLike) -> tuple[np.ndarray, ...]:
    """The starting layers of all seeds, each with a leading axis of runs; see `orthogonal_layers`.

    Example:
        >>> [layer.shape for layer in starts((2, 3, 2), init_scale=1.0, seeds=range(4))]
        [(4, 3, 2), (4, 2, 3)]
    """
    drawn = [orthogonal_layers(widths, init_scale, int(seed)) for seed in np.asarray(seeds)]
    return tuple(np.stack(layer) for layer in zip(*drawn, strict=True))


class Simulation(NamedTuple):
    """A problem, what the runs did on it, and where their offshoots ended.

    Attributes:
        settings: what was simulated.
        problem: what was observed.
        paths: the layers of the runs.
        offshoot_steps: (branches,), the steps at which they branched off.
        offshoot_errors: (runs, branches), the test error at the end of each.

    Example:
        >>> found = simulate_completion(CompletionSettings(steps=100, seeds=2))
        >>> found.paths.fitted.shape, found.offshoot_errors.shape
        ((2, 2, 2, 2), (2, 0))
    """

    settings: CompletionSettings
    problem: MatrixCompletion
    paths: LayerPaths
    offshoot_steps: np.ndarray
    offshoot_errors: np.ndarray


def problem_of(settings: CompletionSettings) -> MatrixCompletion:
    """The problem that settings describe.

    Example:
        >>> problem_of(CompletionSettings(problem="random", dimension=5, share=0.4)).count
        10
    """
    make = PROBLEMS[settings.problem].load()
    if settings.problem == "two-by-two":
        return make(settings.epsilon)
    return make(settings.dimension, settings.dimension, settings.rank, settings.share, seed=settings.problem_seed)


def simulate_completion(settings: CompletionSettings, progress: Progress | None = None) -> Simulation:
    """Run what settings describe, with their offshoots.

    Example:
        >>> settings = CompletionSettings(steps=200, seeds=2, offshoots=2, offshoot_steps=50)
        >>> simulate_completion(settings).offshoot_errors.shape
        (2, 2)
    """
    problem = problem_of(settings)
    height, width = problem.shape
    seeds = np.arange(settings.seed, settings.seed + settings.seeds)
    hidden = (settings.width,) * (settings.depth - 1)
    build = CompletionBuilder(settings.algorithm, settings.batch_size, settings.substeps, settings.order)
    branches = np.linspace(0, settings.steps, settings.offshoots + 1)[1:]
    lengths = [settings.seeds * settings.steps, settings.seeds * settings.offshoots * settings.offshoot_steps]
    main, branching = stages(progress, lengths)
    paths = train(
        problem, starts((width, *hidden, height), settings.init_scale, seeds), seeds, build=build,
        step_size=settings.step_size, ridge=settings.ridge, noise_variance=settings.noise_variance,
        steps=settings.steps, every=settings.every, progress=main,
    )  # fmt: skip
    at = np.unique(np.searchsorted(paths.steps, branches).clip(max=len(paths.steps) - 1)).astype(int)
    errors = np.zeros((settings.seeds, 0))
    if settings.offshoots:
        ends = offshoots(
            problem, paths, np.tile(at, (settings.seeds, 1)), seeds, build=build, steps=settings.offshoot_steps,
            step_size=settings.offshoot_step_size, ridge=settings.offshoot_ridge,
            noise_variance=settings.noise_variance, progress=branching,
        )  # fmt: skip
        errors = problem.test_error(ends)
    return Simulation(settings, problem, paths, paths.steps[at], errors)


def offshoots(
    problem: MatrixCompletion,
    paths: LayerPaths,
    records: np.ndarray,
    seeds: ArrayLike,
    *,
    step_size: float,
    ridge: float,
    steps: int,
    **options: Any,
) -> np.ndarray:
    """Continue runs from some of their records with a smaller step size and ridge, until they converge.

    Args:
        problem: what is observed.
        paths: the trajectories.
        records: (runs, branches), the records at which each run branches off.
        seeds: those of the runs. Branches of a run share random numbers with each other, but not with the run.
        step_size: of the offshoots.
        ridge: of the offshoots.
        steps: of the offshoots; enough for them to converge.
        options: of `train`.

    Returns:
        The fitted matrices at the end, (runs, branches, rows, columns).

    Example, from the last record of each run:
        >>> found = simulate_completion(CompletionSettings(steps=100, seeds=2))
        >>> last = np.full((2, 1), len(found.paths.steps) - 1)
        >>> offshoots(found.problem, found.paths, last, [0, 1], step_size=0.2, ridge=2e-4, steps=50).shape
        (2, 1, 2, 2)
    """
    runs, branches = records.shape
    rows = np.arange(runs)[:, None]
    layers = tuple(layer[rows, records].reshape(runs * branches, *layer.shape[2:]) for layer in paths.layers)
    repeated_seeds = np.repeat(derived_seeds(seeds, OFFSHOOT), branches)
    ends = train(
        problem, layers, repeated_seeds, step_size=step_size, ridge=ridge, steps=steps, every=max(steps, 1), **options
    )
    return ends.fitted[:, -1].reshape(runs, branches, *problem.shape)
