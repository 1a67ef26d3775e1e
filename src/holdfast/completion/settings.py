"""What to simulate of matrix completion by a deep linear network: one object for Python and the command line."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args, get_origin

AlgorithmName = Literal["sgd", "mini-batch", "label-noise", "gradient-descent", "sde"]


@dataclass(frozen=True)
class CompletionSettings:
    """Matrix completion by a deep linear network with an L2 penalty.

    The defaults are a regime of this project's choice in which SGD sits at rank 2 for thousands of steps and then
    jumps to rank 1, while gradient descent stays. The slides of Wang and Jacot (ICLR 2024) give no numbers.
    """

    problem: Literal["two-by-two", "random"] = "two-by-two"
    """Three entries of [[1, *], [epsilon, 1]], or a random matrix of low rank."""
    epsilon: float = 0.25
    """Of the 2 x 2 example, whose missing entry is 1 / epsilon."""
    dimension: int = 20
    """Rows and columns of the random matrix."""
    rank: int = 3
    """Rank of the random matrix."""
    share: float = 0.4
    """Share of the random matrix that is observed, from 0 to 1."""
    problem_seed: int = 0
    """Seed of the random matrix and of which of its entries are observed."""
    depth: int = 3
    """Number of layers L."""
    width: int = 6
    """Width of the hidden layers; it bounds the rank."""
    algorithm: AlgorithmName = "sgd"
    """One entry a step; several; one with fresh label noise; all of them; or the stochastic differential equation."""
    step_size: float = 0.4
    """Step size eta."""
    ridge: float = 0.0245
    """Strength lambda of the penalty lambda ||theta||^2."""
    batch_size: int = 2
    """Entries in a mini-batch, drawn with replacement."""
    noise_variance: float = 0.01
    """Variance of the label noise, with the algorithm label-noise."""
    substeps: int = 1
    """Euler-Maruyama steps in one step of SGD, with the algorithm sde."""
    init_scale: float = 1.0
    """Singular values of the layers at the start, which are blocks of random rotations."""
    steps: int = 100_000
    """Number of steps T."""
    every: int = 100
    """Steps between records."""
    seeds: int = 16
    """Number of runs, with consecutive seeds."""
    seed: int = 0
    """First seed."""
    offshoots: int = 0
    """Branch off this many times, evenly spaced over the run, with a smaller step size and ridge."""
    offshoot_step_size: float = 0.2
    """Step size of an offshoot."""
    offshoot_ridge: float = 2e-4
    """Ridge of an offshoot."""
    offshoot_steps: int = 50_000
    """Steps of an offshoot."""

    def __post_init__(self) -> None:
        positive, share = "a positive number", "a number from 0 to 1"
        at_least_zero, at_least_one = "a number of at least 0", "a whole number of at least 1"
        for name in ("epsilon", "step_size", "init_scale", "offshoot_step_size"):
            _require(self, name, positive, lambda value: value > 0)
        for name in ("ridge", "offshoot_ridge", "noise_variance"):
            _require(self, name, at_least_zero, lambda value: value >= 0)
        for name in ("dimension", "rank", "depth", "width", "batch_size", "substeps", "every", "seeds"):
            _require(self, name, at_least_one, lambda value: value >= 1, int)
        for name in ("steps", "offshoots", "offshoot_steps"):
            _require(self, name, "a whole number of at least 0", lambda value: value >= 0, int)
        for name in ("seed", "problem_seed"):
            _require(self, name, "a whole number from 0 to 2^32 - 1", lambda value: 0 <= value < 2**32, int)
        _require(self, "share", share, lambda value: 0 <= value <= 1)
        for field in fields(self):
            allowed = get_args(field.type) if get_origin(field.type) is Literal else None
            if allowed and getattr(self, field.name) not in allowed:
                raise ValueError(f"{field.name} must be one of {', '.join(allowed)}, got {getattr(self, field.name)!r}")
        if self.problem == "random" and self.rank > self.dimension:
            raise ValueError(f"rank must be at most dimension {self.dimension}, got {self.rank}")
        for step_size, ridge in (("step_size", "ridge"), ("offshoot_step_size", "offshoot_ridge")):
            if getattr(self, step_size) * getattr(self, ridge) >= 1:
                raise ValueError(
                    f"{step_size} * {ridge} must be below 1, or a factor 1 - 2 eta lambda makes every layer grow, got "
                    f"{getattr(self, step_size)} * {getattr(self, ridge)}"
                )
        if self.seed + self.seeds > 2**32:
            raise ValueError(f"seed + seeds must be at most 2^32, got {self.seed} + {self.seeds}")

    def asdict(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


def _require(
    settings: CompletionSettings, name: str, allowed: str, test: Callable[[Any], bool], kind: type = float
) -> None:
    value = getattr(settings, name)
    right = isinstance(value, int) if kind is int else isinstance(value, int | float) and math.isfinite(value)
    if isinstance(value, bool) or not right or not test(value):
        raise ValueError(f"{name} must be {allowed}, got {value!r}")
