"""From settings to results: look the parts up by name or take those given, compose them, run them."""

import inspect
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from holdfast import batching as batchings
from holdfast import oracles
from holdfast.algorithms import AlgorithmMaker, Gradient, sampled
from holdfast.batching import LARGEST_POOL, BatchingMaker, RowBatching
from holdfast.core.linear_algebra import orthonormal_frame
from holdfast.core.progress import Progress
from holdfast.core.run import Records, Run, run
from holdfast.environments import ContinuousEnvironments, Environments, FiniteEnvironments, Law
from holdfast.measurements import FixedDataSet, collect
from holdfast.oracles import Oracle, OracleMaker
from holdfast.problems import MatrixSensing, matrix_sensing
from holdfast.sensing.names import BATCHINGS, ENSEMBLES, LAWS, ORACLES, PARAMETERISATIONS
from holdfast.sensing.settings import SWEPT, Settings
from holdfast.sensing.signals import MEANINGS, signals

if TYPE_CHECKING:
    from holdfast.sensing.trajectory import Trajectory

# Runs in one compiled program. On a CPU 8 matrices of 100 x 100 and their temporaries stay in the second-level cache of
# a core; explicit measurements fill a core with a single run; an accelerator wants to be filled, up to its memory.
SLAB_ON_CPU, SLAB_ON_ACCELERATOR, SLAB_OF_MEASUREMENTS = 8, 2048, 1
ENTRIES_ON_ACCELERATOR = 2**28  # in all matrices of a slab
# Numbers in a record besides the singular values, matrices that a step of one run holds, and the most bytes of either.
RECORDED, MATRICES_OF_A_RUN, LARGEST_MEMORY = 9, 6, 2**36

Sweep = Mapping[str, Sequence[float]]


def simulate(
    settings: Settings,
    *,
    environments: Environments | Law | None = None,
    batching: BatchingMaker | None = None,
    oracle: OracleMaker | None = None,
    algorithm: AlgorithmMaker | None = None,
    sweep: Sweep | None = None,
    progress: Progress | None = None,
) -> "Trajectory":
    """Simulate SGD on multi-environment matrix sensing.

    Objects of your own take the place of the parts that the settings name. A function among them identifies the
    compiled program, so define it once and not anew for each call.

    Args:
        settings: what to simulate.
        environments: the environments themselves (see `holdfast.environments.table`), in which case bias,
            heterogeneity and off_diagonal of the settings have no effect; or a law, which is given those numbers, so
            that they can be swept.
        batching: (environments, batch_size) -> `holdfast.batching.Batching`.
        oracle: problem -> `holdfast.oracles.Oracle`.
        algorithm: as `holdfast.algorithms.factored`, perhaps with keyword arguments of its own.
        sweep: values for keyword arguments of the algorithm; each becomes a dimension of the result.
        progress: called with (steps done, steps in all), summed over runs.

    Example:
        >>> from holdfast import Settings, simulate
        >>> result = simulate(Settings(dimension=10, steps=200, seeds=4, oracle="population"))
        >>> bool((result.final["invariant"] > 0.9).all())
        True
    """
    from holdfast.sensing.trajectory import Trajectory

    own: dict[str, Any] = {
        "environments": environments, "batching": batching, "oracle": oracle, "algorithm": algorithm,
    }  # fmt: skip
    records = execute(settings, **own, sweep=sweep, progress=progress)
    return Trajectory.of(settings, records, sweep, {name: part for name, part in own.items() if part is not None})


def execute(
    settings: Settings,
    *,
    environments: Environments | Law | None = None,
    batching: BatchingMaker | None = None,
    oracle: OracleMaker | None = None,
    algorithm: AlgorithmMaker | None = None,
    sweep: Sweep | None = None,
    slab: int | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Records:
    """As `simulate`, but with plain arrays as the result, one row for each run: needs jax, numpy and scipy only.

    Runs are ordered by the swept settings (first axis slowest), then by `sweep` and then by seed.
    """
    if oracle is not None:
        settings = _without_named_oracle(settings)
    if algorithm is not None and settings.parameterisation != Settings.parameterisation:
        raise ValueError(
            f"parameterisation must be left out when an algorithm is given, got {settings.parameterisation!r}"
        )
    if batching is not None and settings.samples_per_environment is not None:
        raise ValueError(
            "samples_per_environment must be left out when a batching is given, which draws fresh samples, got "
            f"{settings.samples_per_environment}"
        )
    axes = {**settings.axes, **_checked_sweep(sweep, algorithm)}
    _check_memory(settings, math.prod(map(len, axes.values())))
    build = SensingBuilder.of(settings, environments, batching, oracle, algorithm, tuple(sweep or ()))
    cells = list(itertools.product(*axes.values()))
    seeds = np.arange(settings.seed, settings.seed + settings.seeds)
    swept = dict(zip(axes, np.array(cells).T, strict=True))
    parameters = {
        name: np.broadcast_to(swept[name] if name in swept else getattr(settings, name), len(cells))
        .astype(settings.dtype)
        .repeat(len(seeds))
        for name in (*SWEPT, *(sweep or ()))
    }
    frame = orthonormal_frame(
        settings.dimension, settings.invariant_rank + settings.spurious_rank, settings.problem_seed
    )
    with jax.enable_x64(settings.dtype == "float64"):
        # Cast by NumPy: in jax each shape is a program to compile.
        cast = lambda leaf: jnp.asarray(np.asarray(leaf, settings.dtype))  # noqa: E731
        given = environments if isinstance(environments, FiniteEnvironments | ContinuousEnvironments) else None
        shared = Shared(cast(frame), jax.tree.map(cast, given), None)
        if settings.samples_per_environment is not None:
            first = {name: float(values[0]) for name, values in parameters.items()}
            data = collect(
                build.problem(shared, first),
                ENSEMBLES[settings.ensemble].load(),
                settings.samples_per_environment,
                noise_variance=first["noise_variance"],
                seed=settings.problem_seed,
            )
            build.rows(data)  # raises an error for a batch larger than the data set
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


def _without_named_oracle(settings: Settings) -> Settings:
    """The settings for an oracle of the user's own, which sees fresh batches of the batch size as "law" does."""
    for name in ("noise_variance", "samples_per_environment", "ensemble"):
        if getattr(settings, name) != getattr(Settings, name):
            raise ValueError(
                f"{name} must be left out when an oracle is given, which decides on it, got {getattr(settings, name)!r}"
            )
    return replace(settings, oracle=Settings.oracle)


def _checked_sweep(sweep: Sweep | None, algorithm: AlgorithmMaker | None) -> dict[str, tuple[float, ...]]:
    """The values of each argument in a sweep over arguments of an algorithm."""
    if not sweep:
        return {}
    if algorithm is None:
        raise ValueError(f"sweep must be left out unless an algorithm is given, got {', '.join(sweep)}")
    taken = {*inspect.signature(Settings).parameters, *MEANINGS, "step", "direction", "outcome", "diverged_at"}
    for name, values in sweep.items():
        numbers = np.asarray(values)
        if numbers.ndim != 1 or not len(numbers) or numbers.dtype.kind not in "iuf" or not np.isfinite(numbers).all():
            raise ValueError(f"sweep must give {name} a sequence of finite numbers, got {values!r}")
        if name in taken:
            raise ValueError(f"sweep must name arguments unlike the settings and signals, got {name!r}")
    try:
        inspect.signature(algorithm).bind(None, 1, 1.0, 1.0, dtype=None, **sweep)
    except TypeError as error:
        raise ValueError(
            f"sweep must name keyword arguments of the algorithm, got {', '.join(sweep)}: {error}"
        ) from None
    return {name: tuple(np.asarray(values).tolist()) for name, values in sweep.items()}


def _check_memory(settings: Settings, cells: int) -> None:
    """Raise an error for what no machine of today holds, before anything is computed."""
    runs = settings.seeds * cells
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


def _is_finite(source: Environments | Law, settings: Settings) -> bool:
    """Whether a law makes finitely many environments, of the rank of the settings."""
    if isinstance(source, FiniteEnvironments | ContinuousEnvironments):
        made: Any = source
        for name in ("bias", "heterogeneity", "off_diagonal"):
            if name in settings.axes:
                raise ValueError(f"{name} must be one number when environments are given, got {settings.axes[name]}")
    else:
        law = partial(source, rank=settings.spurious_rank, shared=not settings.independent)
        try:
            made = jax.eval_shape(lambda bias, spread, other: law(bias, spread, off_diagonal=other), 1.0, 1.0, 1.0)
        except jax.errors.JAXTypeError as error:
            raise ValueError(f"environments must be a law that jax can trace, got {source!r}: {error}") from error
        if not isinstance(made, FiniteEnvironments | ContinuousEnvironments):
            raise ValueError(f"environments must be a law that makes environments, got one that makes {made!r}")
    if made.rank != settings.spurious_rank:
        raise ValueError(
            f"spurious_rank must be {made.rank}, the rank of the environments, got {settings.spurious_rank}"
        )
    return isinstance(made, FiniteEnvironments)


def _check_batching(settings: Settings, finite: bool) -> None:
    """Raise an error where a named batching does not go with the environments."""
    largest = max(settings.values("batch_size"))
    if settings.oracle == "population":
        return
    if not finite and settings.batching == "full":
        raise ValueError("batching must be hetero or pooled for a continuum of environments, got 'full'")
    if settings.batching == "pooled":
        if not finite and "batch_size" in settings.axes:
            raise ValueError(
                f"batch_size must be one number for pooled batches of a continuum, got {settings.batch_size}"
            )
        if finite and largest > LARGEST_POOL:
            raise ValueError(f"batch_size must be at most {LARGEST_POOL} for pooled batches, got {largest}")


class Shared(NamedTuple):
    """What all runs of a simulation see."""

    frame: jax.Array
    environments: Environments | None
    data: FixedDataSet | None


Parameters = Mapping[str, ArrayLike]


@dataclass(frozen=True)
class SensingBuilder:
    """Makes one run of a simulation. Equal structures and parts are equal builders, and are compiled once.

    Attributes:
        structure: the settings, without the numbers that do not shape the program.
        noisy: whether labels have noise.
        sized: whether the batch size shapes the program; otherwise it is a parameter of each run.
        law: of the environments; None if these are given.
        batching: makes the batches.
        oracle: makes the oracle; None: the one that the settings name.
        algorithm: makes the algorithm.
        swept: keyword arguments of the algorithm that are parameters of each run.
    """

    structure: Settings
    noisy: bool
    sized: bool
    law: Law | None
    batching: BatchingMaker
    oracle: OracleMaker | None
    algorithm: AlgorithmMaker
    swept: tuple[str, ...]

    @classmethod
    def of(
        cls,
        settings: Settings,
        environments: Environments | Law | None = None,
        batching: BatchingMaker | None = None,
        oracle: OracleMaker | None = None,
        algorithm: AlgorithmMaker | None = None,
        swept: tuple[str, ...] = (),
    ) -> "SensingBuilder":
        """The builder of some settings, with the parts that are given in the place of the named ones."""
        source = LAWS[settings.environments].load() if environments is None else environments
        finite = _is_finite(source, settings)
        if batching is None:
            _check_batching(settings, finite)
        each_sample_drawn = batching is None and settings.batching == "pooled" and not finite
        sized = settings.oracle == "data" or (settings.oracle == "law" and each_sample_drawn)
        unshaping = ("seeds", "seed", "problem_seed", "steps", "every", *SWEPT)
        plain = {name: getattr(Settings, name) for name in unshaping if not (sized and name == "batch_size")}
        return cls(
            replace(settings, **plain),
            any(settings.values("noise_variance")),
            sized,
            None if isinstance(source, FiniteEnvironments | ContinuousEnvironments) else source,
            batching or BATCHINGS[settings.batching].load(),
            oracle,
            algorithm or PARAMETERISATIONS[settings.parameterisation].load(),
            swept,
        )

    @property
    def batch_size(self) -> int:
        """m, if it shapes the program: then it is one number."""
        return int(self.structure.values("batch_size")[0])

    def problem(self, shared: Shared, parameters: Parameters) -> MatrixSensing:
        """The problem of one run."""
        environments = shared.environments
        if self.law is not None:
            environments = self.law(
                parameters["bias"],
                parameters["heterogeneity"],
                rank=self.structure.spurious_rank,
                off_diagonal=parameters["off_diagonal"],
                shared=not self.structure.independent,
            )
        assert environments is not None  # either they or a law are given
        return matrix_sensing(
            shared.frame,
            self.structure.invariant_rank,
            environments,
            overlap=parameters["overlap"],
            condition_number=parameters["condition_number"],
        )

    def __call__(self, shared: Shared, parameters: Parameters) -> Run:
        """The algorithm of one run, and the signals recorded of it."""
        problem = self.problem(shared, parameters)
        algorithm = self.algorithm(
            self._gradient(shared, problem, parameters),
            self.structure.dimension,
            parameters["step_size"],
            parameters["init_scale"],
            dtype=self.structure.dtype,
            **{name: parameters[name] for name in self.swept},
        )
        return Run(algorithm, lambda state: signals(problem, state))

    def _gradient(self, shared: Shared, problem: MatrixSensing, parameters: Parameters) -> Gradient:
        if shared.data is not None:
            ensemble = ENSEMBLES[self.structure.ensemble].load()
            return sampled(self.rows(shared.data), oracles.fixed(shared.data, ensemble))
        infinite = self.structure.oracle == "population"
        size = None if infinite else self.batch_size if self.sized else parameters["batch_size"]
        return sampled(self.batching(problem.environments, size), self._oracle(problem, parameters))

    def _oracle(self, problem: MatrixSensing, parameters: Parameters) -> Oracle:
        if self.oracle is not None:
            return self.oracle(problem)
        ensemble = ENSEMBLES[self.structure.ensemble].load()
        noise = parameters["noise_variance"] if self.noisy else None
        arguments: dict[str, tuple] = {
            "population": (),
            "law": (ensemble, noise),
            "data": (ensemble, self.batch_size, noise),
        }
        return ORACLES[self.structure.oracle].load()(problem, *arguments[self.structure.oracle])

    def rows(self, data: FixedDataSet) -> RowBatching:
        """How batches are drawn from a fixed data set."""
        structure = self.structure
        everything = self.batch_size == structure.samples_per_environment and not structure.replacement
        makers: dict[str, Callable[[], RowBatching]] = {
            "hetero": lambda: batchings.hetero_rows(
                data, None if everything else self.batch_size, replacement=structure.replacement
            ),
            "pooled": lambda: batchings.pooled_rows(data, self.batch_size, replacement=structure.replacement),
            "full": lambda: batchings.full_rows(data),
        }
        return makers[structure.batching]()
