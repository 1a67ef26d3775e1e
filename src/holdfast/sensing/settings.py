"""Settings of a simulation: one object for the Python call, the command line and the stored result.

This module imports nothing heavy, so that the command line can show its help at once.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

Real = float | Sequence[float]

# Settings that may be a sequence of values: all values run side by side in one compiled program.
SWEPT = (
    "batch_size",
    "step_size",
    "init_scale",
    "heterogeneity",
    "bias",
    "off_diagonal",
    "overlap",
    "condition_number",
    "noise_variance",
)


# Numbers beyond this cannot mean anything here, and their squares would overflow in float32.
LARGEST = 1e12


@dataclass(frozen=True)
class Settings:
    """A simulation of multi-environment matrix sensing.

    The defaults are the setting of figure 3 of Xu, Gu and Fang (2024), with the symmetric measurements of their theory.

    Numbers that shape no array (step size, heterogeneity, ...) may be sequences; the result then has an axis for each.
    """

    dimension: int = 100
    """Size d of the matrices."""
    invariant_rank: int = 1
    """Rank r1 of the invariant signal A*."""
    spurious_rank: int = 1
    """Rank r2 of the spurious signal A(e)."""
    batch_size: int | Sequence[int] = 8000
    """Measurements m in a batch; ignored by the population oracle."""
    step_size: Real = 0.05
    """Step size eta."""
    init_scale: Real = 1e-3
    """Scale alpha of the starting point U = alpha I."""
    steps: int = 200
    """Number of steps T."""
    heterogeneity: Real = 6.0
    """Spread M of the spurious strengths around the bias."""
    bias: Real = 1.0
    """Mean s of the spurious strengths."""
    environments: Literal["two-point", "uniform", "gaussian"] = "two-point"
    """Law of the strengths: bias -+ heterogeneity; uniform between the two; normal with that mean and deviation."""
    independent: bool = False
    """Let each spurious direction have a strength of its own instead of one for all."""
    off_diagonal: Real = 0.0
    """Size of the off-diagonal entries of the strength matrix S(e)."""
    overlap: Real = 0.0
    """Overlap eps1 = ||U*^T V*|| of the two subspaces, from 0 to 1."""
    condition_number: Real = 1.0
    """Condition number kappa of A*, at least 1."""
    noise_variance: Real = 0.0
    """Variance of the label noise."""
    batching: Literal["hetero", "pooled", "full"] = "hetero"
    """Who is in a batch: one environment; an environment for each sample; all environments in proportion."""
    oracle: Literal["law", "data", "population"] = "law"
    """How the gradient is drawn: from its exact law; from explicit measurements; without sampling error."""
    ensemble: Literal["gaussian", "symmetric"] = "symmetric"
    """Measurements: independent N(0, 1) entries, or symmetric with N(0, 1/2) off the diagonal."""
    samples_per_environment: int | None = None
    """With the data oracle: measure this many once per environment and keep them, instead of fresh ones each step."""
    replacement: bool = False
    """Draw batches of a fixed data set with replacement."""
    parameterisation: Literal["symmetric", "signed"] = "symmetric"
    """Fit U U^T, or U U^T - V V^T."""
    seeds: int = 16
    """Number of runs, with consecutive seeds."""
    seed: int = 0
    """First seed."""
    problem_seed: int = 0
    """Seed of what all runs share: the directions of the signals and a fixed data set."""
    every: int = 10
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
        _check(self)

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


def _require(settings: Settings, names: tuple[str, ...], allowed: str, test: Any, kind: type) -> None:
    for name in names:
        if name not in SWEPT and isinstance(getattr(settings, name), Sequence):
            raise ValueError(f"{name} must be one number, got {getattr(settings, name)!r}")
        values = settings.values(name)
        if not values:
            raise ValueError(f"{name} must hold at least one value, got an empty sequence")
        for value in values:
            right = isinstance(value, int) if kind is int else isinstance(value, int | float)
            if isinstance(value, bool) or not right or not abs(value) < LARGEST or not test(value):
                raise ValueError(f"{name} must be {allowed}, got {value!r}")


def _check(settings: Settings) -> None:
    counts = ("dimension", "invariant_rank", "spurious_rank", "batch_size", "seeds", "every")
    _require(settings, counts, "a whole number of at least 1", lambda v: v >= 1, int)
    _require(settings, ("steps",), "a whole number of at least 0", lambda v: v >= 0, int)
    _require(settings, ("seed", "problem_seed"), "a whole number from 0 to 2^32 - 1", lambda v: 0 <= v < 2**32, int)
    _require(settings, ("step_size",), "a positive number", lambda v: v > 0, float)
    _require(settings, ("init_scale",), "a positive number of at most 1", lambda v: 0 < v <= 1, float)
    _require(
        settings, ("heterogeneity", "off_diagonal", "noise_variance"), "a number of at least 0", lambda v: v >= 0, float
    )
    _require(settings, ("bias",), "a number between -1e12 and 1e12", lambda v: True, float)
    _require(settings, ("overlap",), "a number from 0 to 1", lambda v: 0 <= v <= 1, float)
    _require(settings, ("condition_number",), "a number of at least 1", lambda v: v >= 1, float)
    for name in ("independent", "replacement"):
        if not isinstance(getattr(settings, name), bool):
            raise ValueError(f"{name} must be True or False, got {getattr(settings, name)!r}")
    for field in fields(settings):
        allowed = getattr(field.type, "__args__", ())
        if getattr(field.type, "__origin__", None) is Literal and getattr(settings, field.name) not in allowed:
            raise ValueError(f"{field.name} must be one of {', '.join(allowed)}, got {getattr(settings, field.name)!r}")
    _check_combinations(settings)


def _check_combinations(settings: Settings) -> None:
    rank = settings.invariant_rank + settings.spurious_rank
    if rank > settings.dimension:
        raise ValueError(
            f"invariant_rank + spurious_rank must be at most dimension, got {settings.invariant_rank} + "
            f"{settings.spurious_rank} > {settings.dimension}"
        )
    if settings.seed + settings.seeds > 2**32:
        raise ValueError(f"seed + seeds must be at most 2^32, got {settings.seed} + {settings.seeds}")
    if settings.oracle == "population" and any(settings.values("noise_variance")):
        raise ValueError(
            "noise_variance must be 0 with the population oracle, whose infinite batch averages the noise out, got "
            f"{settings.noise_variance}"
        )
    if settings.oracle == "data" and isinstance(settings.batch_size, tuple):
        raise ValueError(
            f"batch_size must be one number with the data oracle, which draws each sample, got {settings.batch_size}"
        )
    if settings.spurious_rank == 1 and any(settings.values("off_diagonal")):
        raise ValueError(f"off_diagonal must be 0 for spurious_rank 1, which has none, got {settings.off_diagonal}")
    if settings.oracle == "population" and "batch_size" in settings.axes:
        raise ValueError(f"batch_size must be one number with the population oracle, got {settings.batch_size}")
    if settings.replacement and settings.samples_per_environment is None:
        raise ValueError("replacement needs a fixed data set: give samples_per_environment, or leave it out")
    if settings.samples_per_environment is not None:
        _require(settings, ("samples_per_environment",), "a whole number of at least 1", lambda v: v >= 1, int)
        _check_fixed(settings)


def _check_fixed(settings: Settings) -> None:
    if settings.oracle != "data":
        raise ValueError(
            f"samples_per_environment needs the data oracle, which keeps measurements, got oracle {settings.oracle!r}"
        )
    of_the_problem = ("heterogeneity", "bias", "off_diagonal", "overlap", "condition_number", "noise_variance")
    for name in of_the_problem:
        if isinstance(getattr(settings, name), tuple):
            raise ValueError(f"{name} must be one number with a fixed data set, got {getattr(settings, name)}")
