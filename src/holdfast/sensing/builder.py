"""Composes one run of a simulation from the parts that settings name and those that the user brings."""

import inspect
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from holdfast.algorithms.factored import AlgorithmMaker, Factors, random_start, sampled
from holdfast.core import order
from holdfast.core.run import Algorithm, Run, State
from holdfast.core.validation import require
from holdfast.sensing import batching
from holdfast.sensing.batching import Batch, Batching, BatchingMaker, RowBatching
from holdfast.sensing.ensembles import Ensemble, check_ensemble, named_ensemble
from holdfast.sensing.environments import ContinuousEnvironments, Environments, FiniteEnvironments, Law, PanelLaw
from holdfast.sensing.measurements import FixedDataSet
from holdfast.sensing.oracles.data import fixed
from holdfast.sensing.oracles.law import Oracle, OracleMaker
from holdfast.sensing.problem import MatrixSensing, matrix_sensing
from holdfast.sensing.settings import BATCHINGS, LAWS, ORACLES, PARAMETERISATIONS, SWEPT, Settings
from holdfast.sensing.signals import MEANINGS, signals

# The numbers that a law makes environments of.
OF_A_LAW = ("bias", "heterogeneity", "off_diagonal")
# Settings that mean nothing once a part is given: it decides on them itself.
REPLACED = {
    "batching": ("samples_per_environment", "order"),
    "oracle": ("noise_variance", "samples_per_environment", "ensemble"),
    "algorithm": ("parameterisation", "width"),
}
# Environments of a cycle up to which sorting them in every step costs nothing. Beyond, a run remembers its cycle: with
# 500 of them and no sampling error, sorting takes nearly all of the time.
SHUFFLED_IN_EVERY_STEP = 16
try:
    from holdfast.sensing.kernel.fused import fused
except ImportError:  # its folder can be left out: XLA compiles all steps then
    fused = None  # type: ignore[assignment]

# What the kernel is written for.
FUSED = {"oracle": "law", "ensemble": "symmetric", "parameterisation": "symmetric", "dtype": "float32"}
# Names of the result that an argument of an algorithm cannot have as well.
RESERVED = {"gradient", "step", "direction", "outcome", "diverged_at", *MEANINGS}.union(
    inspect.signature(Settings).parameters
)


@dataclass(frozen=True)
class Parts:
    """Objects that replace the parts that settings name; None: the named one. See `simulate`.

    Example:
        >>> Parts(sweep={"momentum": [0.0, 0.5]}).check(Settings())
        Traceback (most recent call last):
        ValueError: sweep must be left out unless algorithm is given, got momentum
    """

    environments: Environments | Law | None = None
    batching: BatchingMaker | None = None
    oracle: OracleMaker | None = None
    algorithm: AlgorithmMaker | None = None
    sweep: Mapping[str, Sequence[float]] = field(default_factory=dict)
    ensemble: Ensemble | None = None

    def check(self, settings: Settings) -> None:
        """Raise a ValueError if the settings ask for something that a given part decides, or the sweep is not one."""
        for part, names in REPLACED.items():
            given = getattr(self, part)
            contract = f"{part} must be a function that makes it for each run, not a name or its result"
            require(given is None or callable(given), contract, repr(given))
            for name in names if given is not None else ():
                value = getattr(settings, name)
                left_out = value == getattr(Settings, name)
                require(left_out, f"{name} must be left out when {part} is given", repr(value))
        if self.ensemble is not None:
            check_ensemble(self.ensemble)
            named = settings.ensemble if settings.ensemble != Settings.ensemble or self.oracle is not None else None
            contract = "ensemble must be given as an object or by name, and not when oracle is given"
            require(named is None, contract, f"{self.ensemble!r} and {named!r}")
        panel = settings.panel if self.environments is not None else None
        require(panel is None, "panel must be left out when environments are given, see environments.PanelLaw", panel)
        for name in OF_A_LAW if self.environments is not None and not callable(self.environments) else ():
            one = name not in settings.axes
            require(one, f"{name} must be one number when environments are given", getattr(settings, name))
        usable = self.algorithm is not None or not self.sweep
        require(usable, "sweep must be left out unless algorithm is given", ", ".join(self.sweep))
        for name, values in self.sweep.items():
            numbers = np.asarray(values)
            several = numbers.ndim == 1 and numbers.size and numbers.dtype.kind in "iuf"
            once = several and np.isfinite(numbers).all() and np.unique(numbers).size == numbers.size
            contract = f"sweep must give {name} a sequence of finite numbers (0 and 1 for False and True), each once"
            require(bool(once), contract, values)
            require(name not in SWEPT, f"sweep must leave out settings, swept by Settings({name}=(...))", repr(name))
            require(name not in RESERVED, "sweep must name arguments unlike the settings and signals", repr(name))
            signature = inspect.signature(self.algorithm)  # type: ignore[arg-type]
            try:
                signature.bind_partial(**{name: values})
            except TypeError:  # the first four arguments are the gradient and three settings
                own = ", ".join(other for other in list(signature.parameters)[4:] if other not in RESERVED) or "none"
                raise ValueError(f"sweep must name keyword arguments of the algorithm ({own}), got {name!r}") from None


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
        batch_size: m, if it shapes the program; None: it is a parameter of each run.
        law: of the environments; None if these are given.
        visits: to the environments in one cycle, by their numbers; empty if they come in no order, or in that of a
            fixed data set.
        batching: makes the batches.
        oracle: makes the oracle; None: the one that the settings name.
        ensemble: of the measurements.
        algorithm: makes the algorithm.
        fuse: whether a CPU makes each step by one function in machine code if it can; see `holdfast.sensing.kernel`.
    """

    structure: Settings
    batch_size: int | None
    law: "_LawOf | None"
    visits: tuple[int, ...]
    batching: BatchingMaker
    oracle: OracleMaker | None
    ensemble: Ensemble
    algorithm: AlgorithmMaker
    fuse: bool

    @classmethod
    def of(cls, settings: Settings, parts: Parts | None = None) -> "SensingBuilder":
        """The builder of some settings, with the parts that are given instead of those they name."""
        parts = parts or Parts()
        source: Any = parts.environments or _named_law(settings)
        law = _LawOf(source, settings.spurious_rank, not settings.independent) if callable(source) else None
        finite = _is_finite(_shape_of_environments(law) if law else source, settings.spurious_rank)
        each_sample_drawn = parts.batching is None and settings.batching == "pooled" and not finite
        if parts.batching is None and settings.oracle != "population":
            _check_batching(settings, finite)
        named = parts.oracle is None and parts.algorithm is None and parts.ensemble is None
        sized = settings.oracle == "data" or (settings.oracle == "law" and each_sample_drawn)
        unshaping = ("seeds", "seed", "problem_seed", "steps", "every", *SWEPT)
        return cls(
            replace(settings, **{name: getattr(Settings, name) for name in unshaping}),
            int(settings.values("batch_size")[0]) if sized else None,
            law,
            _cycle(law or source, settings, finite),
            parts.batching or BATCHINGS[settings.batching].load(),
            parts.oracle,
            parts.ensemble or named_ensemble(settings.ensemble),
            parts.algorithm or PARAMETERISATIONS[settings.parameterisation].load(),
            fused is not None and named and all(getattr(settings, name) == value for name, value in FUSED.items()),
        )

    def problem(self, shared: Shared, parameters: Parameters) -> MatrixSensing:
        """The problem of one run."""
        made: Any = self.law(*(parameters[name] for name in OF_A_LAW)) if self.law else shared.environments
        return matrix_sensing(
            shared.frame,
            self.structure.invariant_rank,
            made,
            overlap=parameters["overlap"],
            condition_number=parameters["condition_number"],
        )

    def __call__(self, shared: Shared, parameters: Parameters) -> Run:
        """The algorithm of one run, and the signals recorded of it.

        Args:
            shared: what all runs see.
            parameters: the numbers of the settings that may be swept, arguments of the algorithm, and the seed. Without
                a width U starts at alpha I; without a noise variance no random numbers are spent on noise.
        """
        problem = self.problem(shared, parameters)
        make = partial(self._algorithm, shared, problem, parameters)
        visits = self.visits if shared.data is None else batching.row_cycle(shared.data)
        if self.structure.order == "reshuffled" and len(visits) > SHUFFLED_IN_EVERY_STEP:
            algorithm = order.reshuffling(make, visits, parameters["seed"])
        else:
            algorithm = make(self._order(visits, parameters))
        return Run(algorithm, partial(signals, problem))

    def check(self, shared: Shared, parameters: Parameters) -> None:
        """Raise a ValueError if a part does not return what its contract says. One step is traced, nothing computed."""
        key, first = jax.random.key(0, impl="threefry2x32"), np.int32(0)
        jax.eval_shape(partial(self._check_step, shared), key, first, parameters)

    def _check_step(self, shared: Shared, key: jax.Array, step: jax.Array, parameters: Parameters) -> None:
        problem = self.problem(shared, parameters)
        if shared.data is None:
            visited = self._order(self.visits, parameters)
            batching, oracle = self._batching(problem, parameters, visited), self._oracle(problem, parameters)
            batch = batching(key, step) if callable(batching) else batching
            require(isinstance(batch, Batch), "batching must make a function (key, step) -> Batch", batch)
            batch.checked(problem.environments.rank)
            fitted = problem.invariant_matrix
            seen = oracle(key, fitted, batch) if callable(oracle) else oracle
            contract = f"oracle must make a function (key, fitted, batch) -> matrix of shape {fitted.shape}"
            require(getattr(seen, "shape", None) == fitted.shape, contract, seen)
        algorithm = self(shared, parameters).algorithm
        require(isinstance(algorithm, Algorithm), "algorithm must make an Algorithm(init, step, parameters)", algorithm)
        state = jax.tree.map(jnp.asarray, algorithm.init())
        found = algorithm.parameters(state)
        require(isinstance(found, Factors), "algorithm must have parameters(state) -> Factors", found)
        before, after = (_shapes(each) for each in (state, algorithm.step(key, state, step)))
        require(before == after, f"algorithm must have a step that returns a state as init does, {before}", after)

    def _algorithm(
        self, shared: Shared, problem: MatrixSensing, parameters: Parameters, visited: order.Order | None
    ) -> Algorithm:
        batches: Any
        oracle: Any
        if shared.data is None:
            batches, oracle = self._batching(problem, parameters, visited), self._oracle(problem, parameters)
        else:
            batches, oracle = self.rows(shared.data, visited), fixed(shared.data, self.ensemble)
        dimension, dtype, step_size = self.structure.dimension, self.structure.dtype, parameters["step_size"]
        own = {name: value for name, value in parameters.items() if name not in RESERVED}
        if "width" in parameters:
            own["start"] = random_start(parameters["seed"], dimension, parameters["width"], dtype)
        gradient = sampled(batches, oracle)
        algorithm = self.algorithm(gradient, dimension, step_size, parameters["init_scale"], dtype=dtype, **own)
        if not self.fuse:
            return algorithm
        return fused(algorithm, batches, problem, step_size, parameters.get("noise_variance"))

    def _batching(self, problem: MatrixSensing, parameters: Parameters, visited: order.Order | None) -> Batching:
        size = None if self.structure.oracle == "population" else self.batch_size or parameters["batch_size"]
        maker: Any = self.batching  # those of users know no order
        return maker(problem.environments, size, **({} if visited is None else {"order": visited}))

    def _order(self, visits: tuple[int, ...], parameters: Parameters) -> order.Order | None:
        return order.ORDERS[self.structure.order].load()(visits, parameters["seed"])

    def _oracle(self, problem: MatrixSensing, parameters: Parameters) -> Oracle:
        if self.oracle is not None:
            return self.oracle(problem)
        noise = parameters.get("noise_variance")
        options = {"population": (), "law": (self.ensemble, noise), "data": (self.ensemble, self.batch_size, noise)}
        return ORACLES[self.structure.oracle].load()(problem, *options[self.structure.oracle])

    def rows(self, data: FixedDataSet, visited: order.Order | None = None) -> RowBatching:
        """How batches are drawn from a fixed data set."""
        size, replacement = cast(int, self.batch_size), self.structure.replacement
        if self.structure.batching == "full":
            return batching.full_rows(data)
        if self.structure.batching == "pooled":
            return batching.pooled_rows(data, size, replacement=replacement)
        everything = size == self.structure.samples_per_environment and not replacement
        return batching.hetero_rows(data, None if everything else size, replacement=replacement, order=visited)


def _shapes(state: State) -> str:
    """Structure, types and shapes of a state, as in (float32[8, 8], float32[])."""
    return repr(jax.tree.map(lambda leaf: f"{jnp.result_type(leaf)}{list(jnp.shape(leaf))}", state)).replace("'", "")


@dataclass(frozen=True)
class _LawOf:
    """A law in the dimensions of some settings: a function of bias, heterogeneity and off_diagonal."""

    law: Law
    rank: int
    shared: bool

    def __call__(self, bias: ArrayLike, heterogeneity: ArrayLike, off_diagonal: ArrayLike) -> Any:
        return self.law(bias, heterogeneity, rank=self.rank, off_diagonal=off_diagonal, shared=self.shared)


@lru_cache(maxsize=256)
def _shape_of_environments(law: _LawOf) -> Any:
    """What a law makes, without its numbers; found once for each law, not in each of many small simulations."""
    try:
        return jax.eval_shape(law, 1.0, 1.0, 1.0)
    except jax.errors.JAXTypeError as error:
        raise ValueError(f"environments must be a law that jax can trace, got {law.law!r}: {error}") from error


def _is_finite(made: Any, rank: int) -> bool:
    """Whether environments are finitely many; raises an error unless they are environments of this rank."""
    fit = isinstance(made, FiniteEnvironments | ContinuousEnvironments)
    require(fit, "environments must be environments or a law that makes them", repr(made))
    require(made.rank == rank, f"spurious_rank must be {made.rank}, the rank of the environments", rank)
    return isinstance(made, FiniteEnvironments)


def _named_law(settings: Settings) -> Law:
    law = LAWS[settings.environments].load()
    return law if settings.panel is None else PanelLaw(law, settings.panel, settings.problem_seed)


def _cycle(source: Any, settings: Settings, finite: bool) -> tuple[int, ...]:
    """The visits of one cycle of environments, or of those that a law makes of all values that the settings sweep."""
    if settings.order == "independent":
        return ()
    require(finite, batching.NO_ORDER_OF_A_CONTINUUM, repr(settings.order))
    if settings.samples_per_environment is not None:  # visited in proportion to the rows, see `row_cycle`
        return ()
    swept = itertools.product(*map(settings.values, OF_A_LAW))
    made = itertools.starmap(source, swept) if callable(source) else [source]
    cycles = {order.cycle(np.asarray(each.probabilities)) for each in made}
    if len(cycles) > 1:
        raise ValueError("environments must have the same probabilities for all swept values to be visited in an order")
    return cycles.pop()


def _check_batching(settings: Settings, finite: bool) -> None:
    """Raise an error where a named batching does not go with the environments."""
    largest, pooled = max(settings.values("batch_size")), settings.batching == "pooled"
    drawn = finite or settings.batching != "full"
    require(drawn, "batching must be hetero or pooled for a continuum of environments", "'full'")
    one = finite or not pooled or "batch_size" not in settings.axes
    require(one, "batch_size must be one number for pooled batches of a continuum", settings.batch_size)
    small = not finite or not pooled or largest <= batching.LARGEST_POOL
    require(small, f"batch_size must be at most {batching.LARGEST_POOL} for pooled batches", largest)
