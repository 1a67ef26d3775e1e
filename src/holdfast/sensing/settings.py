"""Settings of a simulation: one object for the Python call, the command line and the saved result.

The parts of a simulation are chosen by name: one dictionary per kind, read by `Settings`, the command line and the
docs. This module imports nothing heavy, so that the command line can show its help at once.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any, Literal

from holdfast.core.names import ORDERS, Choice, Named
from holdfast.core.validation import (
    COUNT,
    NOT_NEGATIVE,
    NUMBER,
    POSITIVE,
    SHARE,
    Count,
    CountOrZero,
    Rule,
    Seed,
    check_settings,
    require,
    setting_types,
)

LAWS = {
    "two-point": Named("holdfast.sensing.environments:two_point", "bias - heterogeneity or bias + heterogeneity"),
    "uniform": Named("holdfast.sensing.environments:uniform", "uniform between these two"),
    "gaussian": Named(
        "holdfast.sensing.environments:gaussian", "normal with mean bias and standard deviation heterogeneity"
    ),
}
"""Laws of the environments, of the form `holdfast.sensing.environments.Law`."""

BATCHINGS = {
    "hetero": Named("holdfast.sensing.batching:hetero", "one environment"),
    "pooled": Named("holdfast.sensing.batching:pooled", "an environment for each sample"),
    "full": Named("holdfast.sensing.batching:full", "all environments in proportion"),
}
"""Batchings, of the form `holdfast.sensing.batching.BatchingMaker`."""

ORACLES = {
    "law": Named("holdfast.sensing.oracles.law:law", "from its exact law"),
    "data": Named("holdfast.sensing.oracles.data:online", "from explicit measurements"),
    "population": Named("holdfast.sensing.oracles.law:population", "without sampling error"),
}
"""Oracles, of the form `holdfast.sensing.oracles.law.Oracle` once they are given a problem."""

ENSEMBLES = {
    "gaussian": Named("holdfast.sensing.ensembles:gaussian", "independent N(0, 1) entries"),
    "symmetric": Named("holdfast.sensing.ensembles:symmetric_gaussian", "symmetric, with N(0, 1/2) off the diagonal"),
}
"""Ensembles of measurement matrices, `holdfast.sensing.ensembles.Ensemble`."""

PARAMETERISATIONS = {
    "symmetric": Named("holdfast.algorithms.factored:factored", "U U^T"),
    "signed": Named("holdfast.algorithms.factored:signed", "U U^T - V V^T"),
}
"""Algorithms, of the form `holdfast.algorithms.AlgorithmMaker`."""

# Grid points per axis, and runs at each, of phase diagrams: here, so that the command line can show them at once.
CELLS_OF_A_MAP, SEEDS_OF_A_MAP = 40, 64

LawName = Annotated[str, Choice("Law of the spurious strengths", LAWS)]
BatchingName = Annotated[str, Choice("Environments that a batch comes from", BATCHINGS)]
OrderName = Annotated[str, Choice("How one environment follows another", ORDERS)]
OracleName = Annotated[str, Choice("How the gradient is drawn", ORACLES)]
EnsembleName = Annotated[str, Choice("The measurement matrices", ENSEMBLES)]
ParameterisationName = Annotated[str, Choice("The matrix that is fitted", PARAMETERISATIONS)]


Real = float | Sequence[float]
# Settings that the measurements of a fixed data set depend on: all its runs have the same ones.
MEASURED = ("heterogeneity", "bias", "off_diagonal", "overlap", "condition_number", "noise_variance")


@dataclass(frozen=True)
class Settings:
    """A simulation of multi-environment matrix sensing.

    The defaults are the setting of figure 3 of Xu, Gu and Fang (2024), with the symmetric measurements of their theory.

    Numbers that shape no array (step size, heterogeneity, ...) may be sequences; the result then has an axis for each.

    Example:
        >>> settings = Settings(dimension=20, heterogeneity=(1.0, 4.0, 7.0))
        >>> settings.axes
        {'heterogeneity': (1.0, 4.0, 7.0)}
        >>> Settings(step_size=-1.0)
        Traceback (most recent call last):
        ValueError: step_size must be a positive number, got -1.0
    """

    dimension: Count = 100
    """Size d of the matrices."""
    invariant_rank: Count = 1
    """Rank r1 of the invariant signal A*."""
    spurious_rank: Count = 1
    """Rank r2 of the spurious signal A(e)."""
    batch_size: Annotated[int | Sequence[int], COUNT] = 8000
    """Measurements m in a batch; ignored by the population oracle."""
    step_size: Annotated[Real, POSITIVE] = 0.05
    """Step size eta."""
    init_scale: Annotated[Real, Rule("a positive number of at most 1", lambda value: 0 < value <= 1)] = 1e-3
    """Scale alpha of the starting point U = alpha I."""
    steps: CountOrZero = 200
    """Number of steps T."""
    heterogeneity: Annotated[Real, NOT_NEGATIVE] = 6.0
    """Spread M of the spurious strengths around the bias."""
    bias: Annotated[Real, NUMBER] = 1.0
    """Mean s of the spurious strengths."""
    environments: LawName = "two-point"
    """Law of the strengths, one of `holdfast.sensing.settings.LAWS`."""
    panel: Annotated[int | None, COUNT] = None
    """Draw this many environments from the law once, by the problem seed, and visit no others."""
    independent: bool = False
    """Let each spurious direction have a strength of its own instead of one for all."""
    off_diagonal: Annotated[Real, NOT_NEGATIVE] = 0.0
    """Size of the off-diagonal entries of the strength matrix S(e)."""
    overlap: Annotated[Real, SHARE] = 0.0
    """Overlap eps1 = ||U*^T V*|| of the two subspaces, from 0 to 1."""
    condition_number: Annotated[Real, Rule("a number of at least 1", lambda value: value >= 1)] = 1.0
    """Condition number kappa of A*, at least 1."""
    noise_variance: Annotated[Real, NOT_NEGATIVE] = 0.0
    """Variance of the label noise."""
    batching: BatchingName = "hetero"
    """Environments that a batch comes from, one of `holdfast.sensing.settings.BATCHINGS`."""
    order: OrderName = "independent"
    """How one environment follows another, one of `holdfast.core.order.ORDERS`."""
    oracle: OracleName = "law"
    """How the gradient is drawn, one of `holdfast.sensing.settings.ORACLES`."""
    ensemble: EnsembleName = "symmetric"
    """The measurement matrices, one of `holdfast.sensing.settings.ENSEMBLES`."""
    samples_per_environment: Annotated[int | None, COUNT] = None
    """With the data oracle: train on a fixed data set of this many per environment, not on fresh ones each step."""
    replacement: bool = False
    """Draw batches of a fixed data set with replacement."""
    width: Annotated[int | Sequence[int] | None, COUNT] = None
    """Columns r of U, from r1 to d, starting with N(0, alpha^2 / r) entries; None: d columns, starting at alpha I."""
    parameterisation: ParameterisationName = "symmetric"
    """The matrix that is fitted, one of `holdfast.sensing.settings.PARAMETERISATIONS`."""
    seeds: Count = 16
    """Number of runs, with consecutive seeds."""
    seed: Seed = 0
    """First seed."""
    problem_seed: Seed = 0
    """Seed of what all runs share: the directions of the signals, a panel and a fixed data set."""
    every: Count = 10
    """Steps between records."""
    dtype: Literal["float32", "float64"] = "float32"
    """Precision of the computation."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if hasattr(value, "tolist"):  # NumPy's numbers and arrays become Python's
                value = value.tolist()
            if field.name in SWEPT and isinstance(value, Sequence) and not isinstance(value, str):
                value = tuple(value)
            object.__setattr__(self, field.name, value)
        check_settings(self)
        _check_combinations(self)

    @property
    def axes(self) -> dict[str, tuple[float, ...]]:
        """The settings that were given as sequences, with their values."""
        return {name: value for name in SWEPT if isinstance(value := getattr(self, name), tuple)}

    def values(self, name: str) -> tuple[float, ...]:
        """The values of a setting: one, or those of its axis."""
        value = getattr(self, name)
        return value if isinstance(value, tuple) else (value,)

    def asdict(self) -> dict[str, Any]:
        """As plain values, for a manifest."""
        return asdict(self)


SWEPT = tuple(name for name, kind in setting_types(Settings).items() if kind.several)
"""Settings that may be a sequence of values: all values run side by side in one compiled program."""


def _check_combinations(settings: Settings) -> None:
    rank = settings.invariant_rank + settings.spurious_rank
    ranks = f"{settings.invariant_rank} + {settings.spurious_rank} > {settings.dimension}"
    require(rank <= settings.dimension, "invariant_rank + spurious_rank must be at most dimension", ranks)
    least, most = settings.invariant_rank, settings.dimension
    for width in settings.values("width") if settings.width is not None else ():
        contract = f"width must be from invariant_rank = {least} to dimension = {most}"
        require(least <= width <= most, contract, width)
    noiseless = settings.oracle != "population" or not any(settings.values("noise_variance"))
    contract = "noise_variance must be 0 with the population oracle, whose infinite batch averages the noise out"
    require(noiseless, contract, settings.noise_variance)
    one = settings.oracle == "law" or "batch_size" not in settings.axes
    require(one, f"batch_size must be one number with the {settings.oracle} oracle", settings.batch_size)
    diagonal = settings.spurious_rank > 1 or not any(settings.values("off_diagonal"))
    contract = "off_diagonal must be 0 for spurious_rank 1, whose S(e) is one number"
    require(diagonal, contract, settings.off_diagonal)
    unmixed = settings.order == "independent" or settings.batching == "hetero"
    contract = f"order must be independent for {settings.batching} batches, which mix the environments"
    require(unmixed, contract, repr(settings.order))
    if settings.samples_per_environment is None:
        if settings.replacement:
            raise ValueError("replacement needs a fixed data set: give samples_per_environment, or leave it out")
        return
    contract = "samples_per_environment needs the data oracle, which sees measurements"
    require(settings.oracle == "data", contract, f"oracle {settings.oracle!r}")
    for name in MEASURED:
        require(name not in settings.axes, f"{name} must be one number with a fixed data set", getattr(settings, name))
