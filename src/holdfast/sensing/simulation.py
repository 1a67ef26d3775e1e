"""From settings to results: choose the parts by name, compose them, run them."""

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from holdfast import batching, ensembles, environments, oracles
from holdfast.algorithms import factored, sampled
from holdfast.core.linear_algebra import orthonormal_frame
from holdfast.core.progress import Progress
from holdfast.core.run import Records, Run, run
from holdfast.environments import Environments
from holdfast.measurements import FixedDataSet, collect
from holdfast.problems import MatrixSensing, matrix_sensing
from holdfast.sensing.settings import SWEPT, Settings
from holdfast.sensing.signals import signals

if TYPE_CHECKING:
    from holdfast.sensing.trajectory import Trajectory

ENSEMBLES = {"gaussian": ensembles.gaussian, "symmetric": ensembles.symmetric_gaussian}
ENVIRONMENTS: dict[str, Callable[..., Environments]] = {
    "two-point": environments.two_point,
    "uniform": environments.uniform,
    "gaussian": environments.gaussian,
}
BATCHINGS = {"hetero": batching.hetero, "pooled": batching.pooled, "full": batching.full}

# Runs in one compiled program. On a CPU 8 matrices of 100 x 100 and their temporaries stay in the second-level cache of
# a core; explicit measurements fill a core with a single run; an accelerator wants to be filled, up to its memory.
SLAB_ON_CPU, SLAB_ON_ACCELERATOR, SLAB_OF_MEASUREMENTS = 8, 2048, 1
ENTRIES_ON_ACCELERATOR = 2**28  # in all matrices of a slab
# Numbers in a record besides the singular values, matrices that a step of one run holds, and the most bytes of either.
RECORDED, MATRICES_OF_A_RUN, LARGEST_MEMORY = 9, 6, 2**36


def simulate(
    settings: Settings,
    *,
    environments: Environments | None = None,
    progress: Progress | None = None,
) -> "Trajectory":
    """Simulate SGD on multi-environment matrix sensing.

    Args:
        settings: what to simulate.
        environments: a law of S(e) of your own (see `holdfast.environments.table`) in place of the one that the
            settings describe by bias and heterogeneity.
        progress: called with (steps done, steps in all), summed over runs.

    Example:
        >>> from holdfast import Settings, simulate
        >>> result = simulate(Settings(dimension=10, steps=200, seeds=4, oracle="population"))
        >>> bool((result.final["invariant"] > 0.9).all())
        True
    """
    from holdfast.sensing.trajectory import Trajectory

    records = execute(settings, environments=environments, progress=progress)
    return Trajectory.of(settings, records, environments)


def execute(
    settings: Settings,
    *,
    environments: Environments | None = None,
    slab: int | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Records:
    """As `simulate`, but with plain arrays as the result, one row for each run: needs jax and numpy only.

    Runs are ordered by the swept settings (first axis slowest) and then by seed.
    """
    _check_environments(settings, environments)
    _check_memory(settings)
    cells = list(itertools.product(*settings.axes.values()))
    seeds = np.arange(settings.seed, settings.seed + settings.seeds)
    swept = dict(zip(settings.axes, np.array(cells).T, strict=True))
    parameters = {
        name: np.broadcast_to(swept.get(name, getattr(settings, name)), len(cells))
        .astype(settings.dtype)
        .repeat(len(seeds))
        for name in SWEPT
    }
    frame = orthonormal_frame(
        settings.dimension, settings.invariant_rank + settings.spurious_rank, settings.problem_seed
    )
    build = SensingBuilder.of(settings, environments)
    with jax.enable_x64(settings.dtype == "float64"):
        # Cast by NumPy: in jax each shape is a program to compile.
        cast = lambda leaf: jnp.asarray(np.asarray(leaf, settings.dtype))  # noqa: E731
        shared = Shared(cast(frame), jax.tree.map(cast, environments), None)
        if settings.samples_per_environment is not None:
            first = {name: float(values[0]) for name, values in parameters.items()}
            data = collect(
                build.problem(shared, first),
                ENSEMBLES[settings.ensemble],
                settings.samples_per_environment,
                noise_variance=first["noise_variance"],
                seed=settings.problem_seed,
            )
            build.rows(data)  # refuses a batch larger than the data
            shared = shared._replace(data=data)
    return run(
        build,
        shared,
        parameters,
        np.tile(seeds, len(cells)),
        steps=settings.steps,
        every=settings.every,
        slab=slab or slab_size(settings),
        workers=workers,
        double=settings.dtype == "float64",
        progress=progress,
    )


def _check_memory(settings: Settings) -> None:
    """Refuse what no machine of today holds, before anything is computed."""
    runs = settings.seeds * math.prod(len(values) for values in settings.axes.values())
    numbers = RECORDED + settings.invariant_rank
    needs = {
        "the records of all runs (fewer seeds, or a larger every, need less)": (
            runs * (settings.steps // settings.every + 2) * numbers
        ),
        "the matrices of one slab (a smaller dimension needs less)": (
            MATRICES_OF_A_RUN * min(slab_size(settings), runs) * settings.dimension**2
        ),
    }
    for what, count in needs.items():
        size = count * np.dtype(settings.dtype).itemsize
        if size > LARGEST_MEMORY:
            raise ValueError(f"{what} must fit into {LARGEST_MEMORY / 2**30:.0f} GiB, got {size / 2**30:,.0f} GiB")


def slab_size(settings: Settings) -> int:
    """How many runs one compiled program holds."""
    if settings.oracle == "data":
        return SLAB_OF_MEASUREMENTS
    if jax.default_backend() == "cpu":
        return SLAB_ON_CPU
    return max(1, min(SLAB_ON_ACCELERATOR, ENTRIES_ON_ACCELERATOR // settings.dimension**2))


def _is_finite(settings: Settings, own: Environments | None) -> bool:
    return settings.environments == "two-point" if own is None else isinstance(own, environments.FiniteEnvironments)


def _check_environments(settings: Settings, own: Environments | None) -> None:
    if own is not None:
        if own.rank != settings.spurious_rank:
            raise ValueError(
                f"spurious_rank must be {own.rank}, the rank of the environments, got {settings.spurious_rank}"
            )
        for name in ("bias", "heterogeneity", "off_diagonal"):
            if name in settings.axes:
                raise ValueError(f"{name} must be one number when environments are given, got {settings.axes[name]}")
    finite, largest = _is_finite(settings, own), max(settings.values("batch_size"))
    if not finite and settings.batching == "full" and settings.oracle != "population":
        raise ValueError("batching must be hetero or pooled for a continuum of environments, got 'full'")
    if settings.batching == "pooled" and settings.oracle != "population":
        if not finite and "batch_size" in settings.axes:
            raise ValueError(
                f"batch_size must be one number for pooled batches of a continuum, got {settings.batch_size}"
            )
        if finite and largest > batching.LARGEST_POOL:
            raise ValueError(f"batch_size must be at most {batching.LARGEST_POOL} for pooled batches, got {largest}")


class Shared(NamedTuple):
    """What all runs of a simulation see."""

    frame: jax.Array
    environments: Environments | None
    data: FixedDataSet | None


Parameters = Mapping[str, ArrayLike]


@dataclass(frozen=True)
class SensingBuilder:
    """Makes the experiment of one run. Equal structures are equal builds, so they are compiled once."""

    structure: Settings
    noisy: bool

    @classmethod
    def of(cls, settings: Settings, own: Environments | None = None) -> "SensingBuilder":
        """The build of some settings, without the numbers that do not shape the program."""
        plain = {field: getattr(Settings, field) for field in ("seeds", "seed", "problem_seed", "steps", "every")}
        numbers = {name: getattr(Settings, name) for name in SWEPT}
        each_sample_drawn = settings.batching == "pooled" and not _is_finite(settings, own)
        if settings.oracle == "data" or (settings.oracle == "law" and each_sample_drawn):
            numbers["batch_size"] = settings.batch_size
        return cls(replace(settings, **plain, **numbers), any(settings.values("noise_variance")))

    @property
    def batch_size(self) -> int:
        """m, where it shapes the program: there it is one number."""
        return int(self.structure.values("batch_size")[0])

    def problem(self, shared: Shared, parameters: Parameters) -> MatrixSensing:
        """The problem of one run."""
        law = shared.environments
        if law is None:
            law = ENVIRONMENTS[self.structure.environments](
                parameters["bias"],
                parameters["heterogeneity"],
                rank=self.structure.spurious_rank,
                off_diagonal=parameters["off_diagonal"],
                shared=not self.structure.independent,
            )
        return matrix_sensing(
            shared.frame,
            self.structure.invariant_rank,
            law,
            overlap=parameters["overlap"],
            condition_number=parameters["condition_number"],
        )

    def __call__(self, shared: Shared, parameters: Parameters) -> Run:
        """The algorithm of one run, and the signals recorded of it."""
        structure = self.structure
        problem = self.problem(shared, parameters)
        algorithm = factored(
            self._gradient(shared, problem, parameters),
            structure.dimension,
            parameters["step_size"],
            parameters["init_scale"],
            signed=structure.parameterisation == "signed",
            dtype=structure.dtype,
        )
        return Run(algorithm, lambda state: signals(problem, state))

    def _gradient(self, shared: Shared, problem: MatrixSensing, parameters: Parameters):
        structure, ensemble = self.structure, ENSEMBLES[self.structure.ensemble]
        batches = BATCHINGS[structure.batching]
        if structure.oracle == "population":
            return sampled(batches(problem.environments, None), oracles.population(problem))
        noise = parameters["noise_variance"] if self.noisy else None
        if shared.data is not None:
            return sampled(self.rows(shared.data), oracles.fixed(shared.data, ensemble))
        if structure.oracle == "data":
            batch = batches(problem.environments, self.batch_size)
            return sampled(batch, oracles.online(problem, ensemble, self.batch_size, noise))
        counted = isinstance(problem.environments, environments.FiniteEnvironments) or structure.batching == "hetero"
        size = parameters["batch_size"] if counted else self.batch_size
        return sampled(batches(problem.environments, size), oracles.law(problem, ensemble, noise))

    def rows(self, data: FixedDataSet) -> batching.RowBatching:
        """How batches are drawn from a fixed data set."""
        structure = self.structure
        everything = self.batch_size == structure.samples_per_environment and not structure.replacement
        return {
            "hetero": lambda: batching.hetero_rows(
                data, None if everything else self.batch_size, replacement=structure.replacement
            ),
            "pooled": lambda: batching.pooled_rows(data, self.batch_size, replacement=structure.replacement),
            "full": lambda: batching.full_rows(data),
        }[structure.batching]()
