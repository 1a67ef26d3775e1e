"""Composes one run of a simulation from the parts that settings name and those that the user brings."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.typing import ArrayLike

from holdfast import batching, oracles
from holdfast.algorithms import AlgorithmMaker, Gradient, sampled
from holdfast.batching import BatchingMaker, RowBatching
from holdfast.core.run import Run
from holdfast.environments import ContinuousEnvironments, Environments, FiniteEnvironments, Law
from holdfast.measurements import FixedDataSet
from holdfast.oracles import Oracle, OracleMaker
from holdfast.problems import MatrixSensing, matrix_sensing
from holdfast.sensing.names import BATCHINGS, ENSEMBLES, LAWS, ORACLES, PARAMETERISATIONS
from holdfast.sensing.settings import SWEPT, Settings
from holdfast.sensing.signals import MEANINGS, signals

# Settings that mean nothing once a part is given: it decides on them itself.
REPLACED = {
    "batching": ("samples_per_environment",),
    "oracle": ("noise_variance", "samples_per_environment", "ensemble"),
    "algorithm": ("parameterisation",),
}
# Names of the result that an argument of an algorithm cannot have as well.
RESERVED = {
    *inspect.signature(Settings).parameters,
    *MEANINGS,
    "gradient",
    "step",
    "direction",
    "outcome",
    "diverged_at",
}


@dataclass(frozen=True)
class Parts:
    """Objects that take the place of the parts that settings name; None: the named one. See `simulate`."""

    environments: Environments | Law | None = None
    batching: BatchingMaker | None = None
    oracle: OracleMaker | None = None
    algorithm: AlgorithmMaker | None = None
    sweep: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def check(self, settings: Settings) -> None:
        """Raise a ValueError if the settings ask for something that a given part decides, or the sweep is not one."""
        for part, names in REPLACED.items():
            for name in names if getattr(self, part) is not None else ():
                value = getattr(settings, name)
                if value != getattr(Settings, name):
                    raise ValueError(f"{name} must be left out when {part} is given, got {value!r}")
        if self.sweep and self.algorithm is None:
            raise ValueError(f"sweep must be left out unless algorithm is given, got {', '.join(self.sweep)}")
        for name, values in self.sweep.items():
            numbers = np.asarray(values)
            several = numbers.ndim == 1 and numbers.size and numbers.dtype.kind in "iuf"
            if not several or not np.isfinite(numbers).all():
                raise ValueError(f"sweep must give {name} a sequence of finite numbers, got {values!r}")
            if name in RESERVED:
                raise ValueError(f"sweep must name arguments unlike the settings and signals, got {name!r}")
            try:
                inspect.signature(self.algorithm).bind_partial(**{name: values})  # type: ignore[arg-type]
            except TypeError:
                raise ValueError(f"sweep must name keyword arguments of the algorithm, got {name!r}") from None


class Shared(NamedTuple):
    """The arrays that all runs of a simulation see."""

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
    def of(cls, settings: Settings, parts: Parts | None = None) -> "SensingBuilder":
        """The builder of some settings, with the parts that are given instead of those they name."""
        parts = parts or Parts()
        source = parts.environments or LAWS[settings.environments].load()
        finite = _is_finite(source, settings)
        each_sample_drawn = parts.batching is None and settings.batching == "pooled" and not finite
        if parts.batching is None and settings.oracle != "population":
            _check_batching(settings, finite)
        sized = settings.oracle == "data" or (settings.oracle == "law" and each_sample_drawn)
        unshaping = ("seeds", "seed", "problem_seed", "steps", "every", *SWEPT)
        plain = {name: getattr(Settings, name) for name in unshaping if not (sized and name == "batch_size")}
        return cls(
            replace(settings, **plain),
            any(settings.values("noise_variance")),
            sized,
            source if callable(source) else None,
            parts.batching or BATCHINGS[settings.batching].load(),
            parts.oracle,
            parts.algorithm or PARAMETERISATIONS[settings.parameterisation].load(),
            tuple(parts.sweep),
        )

    @property
    def batch_size(self) -> int:
        """m, if it shapes the program: then it is one number."""
        return int(self.structure.values("batch_size")[0])

    def problem(self, shared: Shared, parameters: Parameters) -> MatrixSensing:
        """The problem of one run."""
        numbers = (parameters["bias"], parameters["heterogeneity"], parameters["off_diagonal"])
        environments: Any = shared.environments if self.law is None else _apply(self.law, self.structure, *numbers)
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
        ensemble, name = ENSEMBLES[self.structure.ensemble].load(), self.structure.oracle
        noise = parameters["noise_variance"] if self.noisy else None
        options = {"population": (), "law": (ensemble, noise), "data": (ensemble, self.batch_size, noise)}
        return ORACLES[name].load()(problem, *options[name])

    def rows(self, data: FixedDataSet) -> RowBatching:
        """How batches are drawn from a fixed data set."""
        size, replacement = self.batch_size, self.structure.replacement
        everything = size == self.structure.samples_per_environment and not replacement
        makers: dict[str, Callable[[], RowBatching]] = {
            "hetero": lambda: batching.hetero_rows(data, None if everything else size, replacement=replacement),
            "pooled": lambda: batching.pooled_rows(data, size, replacement=replacement),
            "full": lambda: batching.full_rows(data),
        }
        return makers[self.structure.batching]()


def _apply(law: Law, settings: Settings, bias: ArrayLike, heterogeneity: ArrayLike, off_diagonal: ArrayLike) -> Any:
    rank, shared = settings.spurious_rank, not settings.independent
    return law(bias, heterogeneity, rank=rank, off_diagonal=off_diagonal, shared=shared)


def _is_finite(source: Environments | Law, settings: Settings) -> bool:
    """Whether environments, or those that a law makes, are finitely many; raises an error if their rank is wrong."""
    made: Any = source
    if callable(source):
        try:
            made = jax.eval_shape(lambda *numbers: _apply(source, settings, *numbers), 1.0, 1.0, 1.0)
        except jax.errors.JAXTypeError as error:
            raise ValueError(f"environments must be a law that jax can trace, got {source!r}: {error}") from error
    if not isinstance(made, FiniteEnvironments | ContinuousEnvironments):
        raise ValueError(f"environments must be environments or a law that makes them, got {made!r}")
    for name in ("bias", "heterogeneity", "off_diagonal"):
        if made is source and name in settings.axes:
            raise ValueError(f"{name} must be one number when environments are given, got {settings.axes[name]}")
    if made.rank != settings.spurious_rank:
        raise ValueError(
            f"spurious_rank must be {made.rank}, the rank of the environments, got {settings.spurious_rank}"
        )
    return isinstance(made, FiniteEnvironments)


def _check_batching(settings: Settings, finite: bool) -> None:
    """Raise an error where a named batching does not go with the environments."""
    largest, pooled = max(settings.values("batch_size")), settings.batching == "pooled"
    if not finite and settings.batching == "full":
        raise ValueError("batching must be hetero or pooled for a continuum of environments, got 'full'")
    if not finite and pooled and "batch_size" in settings.axes:
        raise ValueError(f"batch_size must be one number for pooled batches of a continuum, got {settings.batch_size}")
    if finite and pooled and largest > batching.LARGEST_POOL:
        raise ValueError(f"batch_size must be at most {batching.LARGEST_POOL} for pooled batches, got {largest}")
