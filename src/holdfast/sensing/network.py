"""Two-layer networks with quadratic activation from settings to records: Algorithm 4 as matrix sensing is simulated."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import numpy as np

from holdfast.algorithms.factored import sampled, shrinkage
from holdfast.core.names import Choice, Named
from holdfast.core.progress import Progress
from holdfast.core.run import Records, Run, run
from holdfast.core.validation import NOT_NEGATIVE, NUMBER, POSITIVE, Count, CountOrZero, Seed, check_settings
from holdfast.sensing.environments import two_point
from holdfast.sensing.oracles.quadratic import rank_one
from holdfast.sensing.problem import MatrixSensing, quadratic_network
from holdfast.sensing.settings import BATCHINGS, BatchingName
from holdfast.sensing.signals import signals

TRACES = {
    "estimated": Named("holdfast.algorithms.factored:estimated_trace", "the mean of the responses"),
    "known": Named("holdfast.algorithms.factored:known_trace", "the exact trace of A* + A(e)"),
    "operator-norm": Named("holdfast.algorithms.factored:operator_norm", "||A* + A(e)||, as the paper prints"),
    "none": Named("holdfast.algorithms.factored:no_shrinkage", "no shrinkage"),
}
"""Choices of tau in the shrinkage of Algorithm 4, functions of the gradient and the fitted matrix."""
NEURONS = {
    "orthonormal": Named("holdfast.core.linear_algebra:orthonormal_frame", "orthonormal vectors"),
    "random": Named("holdfast.sensing.problem:random_neurons", "N(0, I / d) vectors, as in Theorem 7"),
}
"""The neurons of the network that is learned, functions of (dimension, count, seed)."""
TraceName = Annotated[str, Choice("The trace that the shrinkage removes", TRACES)]
NeuronsName = Annotated[str, Choice("The neurons of the network that is learned", NEURONS)]
LARGEST_RADIUS = 1e11  # no sample of any network reaches it


@dataclass(frozen=True)
class QuadraticNetworkSettings:
    """A two-layer network with quadratic activation, trained by Algorithm 4 of Xu, Gu and Fang (NeurIPS 2024).

    The defaults are those of our reproduction; the paper gives none.

    Example:
        >>> QuadraticNetworkSettings(dimension=10).trace
        'estimated'
        >>> QuadraticNetworkSettings(truncation=0.0)
        Traceback (most recent call last):
        ValueError: truncation must be a positive number, got 0.0
    """

    dimension: Count = 30
    """Inputs d of the network."""
    invariant_rank: Count = 2
    """Neurons r1 that all environments share."""
    spurious_rank: Count = 2
    """Neurons r2 whose weights change."""
    neurons: NeuronsName = "orthonormal"
    """The neurons, one of `holdfast.sensing.network.NEURONS`."""
    batch_size: Count = 20_000
    """Samples m in a batch."""
    step_size: Annotated[float, POSITIVE] = 0.04
    """Step size eta; a step on the signal is 2 eta."""
    init_scale: Annotated[float, POSITIVE] = 1e-2
    """Scale alpha of the starting point U = alpha I."""
    steps: CountOrZero = 160
    """Number of steps T."""
    heterogeneity: Annotated[float, NOT_NEGATIVE] = 4.0
    """Spread M of the spurious weights around the bias."""
    bias: Annotated[float, NUMBER] = 0.5
    """Mean s of the spurious weights."""
    batching: BatchingName = "hetero"
    """Environments that a batch comes from, one of `holdfast.sensing.settings.BATCHINGS`."""
    trace: TraceName = "estimated"
    """The tau of the shrinkage, one of `holdfast.sensing.network.TRACES`."""
    truncation: Annotated[float, POSITIVE] = LARGEST_RADIUS
    """Leave out samples x with x' P x above this."""
    seeds: Count = 16
    """Number of runs, with consecutive seeds."""
    seed: Seed = 0
    """First seed."""
    problem_seed: Seed = 0
    """Seed of the neurons."""
    every: Count = 10
    """Steps between records."""

    def __post_init__(self) -> None:
        check_settings(self)
        rank = self.invariant_rank + self.spurious_rank
        if rank > self.dimension:
            raise ValueError(f"invariant_rank + spurious_rank must be at most dimension {self.dimension}, got {rank}")

    def asdict(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


@dataclass(frozen=True)
class NetworkBuilder:
    """Makes one run. Equal builders are compiled once; step size, init scale and truncation are numbers of a run.

    Example:
        >>> NetworkBuilder(10, 100, "hetero", "known") == NetworkBuilder(10, 100, "hetero", "known")
        True
    """

    dimension: int
    batch_size: int
    batching: BatchingName
    trace: TraceName

    def __call__(self, problem: MatrixSensing, parameters: Mapping[str, Any]) -> Run:
        """The algorithm of one run, and the signals recorded of it."""
        batches = BATCHINGS[self.batching].load()(problem.environments, self.batch_size)
        gradient = sampled(batches, rank_one(problem, self.batch_size, parameters["truncation"]))
        step_size, init_scale, trace = parameters["step_size"], parameters["init_scale"], TRACES[self.trace].load()
        algorithm = shrinkage(gradient, self.dimension, step_size, init_scale, trace, "float32")
        return Run(algorithm, lambda state: signals(problem, state))


def execute_network(settings: QuadraticNetworkSettings, *, progress: Progress | None = None) -> Records:
    """Train what settings describe: plain arrays, one row for each seed.

    Example, the invariant neurons are learned and the others are not:
        >>> settings = QuadraticNetworkSettings(dimension=10, batch_size=4000, seeds=2)
        >>> records = execute_network(settings)
        >>> bool((records.values["invariant"][:, -1] > 0.8).all()), records.values["spurious"].shape
        (True, (2, 17))
    """
    rank = settings.invariant_rank
    made = NEURONS[settings.neurons].load()(settings.dimension, rank + settings.spurious_rank, settings.problem_seed)
    neurons = made.astype(np.float32)
    law = two_point(settings.bias, settings.heterogeneity, rank=settings.spurious_rank)
    problem = quadratic_network(neurons[:, :rank], neurons[:, rank:], law)
    seeds = np.arange(settings.seed, settings.seed + settings.seeds)
    numbers = ("step_size", "init_scale", "truncation")
    parameters = {name: np.full(len(seeds), getattr(settings, name), np.float32) for name in numbers}
    build = NetworkBuilder(settings.dimension, settings.batch_size, settings.batching, settings.trace)
    # A run fills a core by itself.
    return run(
        build, problem, parameters, seeds, steps=settings.steps, every=settings.every,
        slab=1, progress=progress,
    )  # fmt: skip
