"""Settings of matrix completion by a deep linear network: one object for the Python call and the command line."""

from dataclasses import asdict, dataclass
from typing import Any

from holdfast.completion.names import ORDERED, AlgorithmName, OrderName, ProblemName
from holdfast.core.validation import COUNT, COUNT_OR_ZERO, NOT_NEGATIVE, POSITIVE, SEED, SHARE, check_settings, require

RULES = {
    POSITIVE: ("epsilon", "step_size", "init_scale", "offshoot_step_size"),
    NOT_NEGATIVE: ("ridge", "offshoot_ridge", "noise_variance"),
    COUNT: ("dimension", "rank", "depth", "width", "batch_size", "substeps", "every", "seeds"),
    COUNT_OR_ZERO: ("steps", "offshoots", "offshoot_steps"),
    SEED: ("seed", "problem_seed"),
    SHARE: ("share",),
}


@dataclass(frozen=True)
class CompletionSettings:
    """Matrix completion by a deep linear network with an L2 penalty.

    The defaults are a regime that we chose: SGD stays at rank 2 for thousands of steps and then jumps to rank 1, while
    gradient descent stays for good. The slides of Wang and Jacot (ICLR 2024) give no numbers.

    Example:
        >>> settings = CompletionSettings(problem="random", dimension=10, rank=2)
        >>> settings.algorithm, settings.depth
        ('sgd', 3)
        >>> CompletionSettings(ridge=-1.0)
        Traceback (most recent call last):
        ValueError: ridge must be a number of at least 0, got -1.0
    """

    problem: ProblemName = "two-by-two"
    """The matrix to complete, one of `holdfast.completion.names.PROBLEMS`."""
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
    """The algorithm, one of `holdfast.completion.names.ALGORITHMS`."""
    order: OrderName = "independent"
    """How one entry follows another where a step sees one, one of `holdfast.completion.names.ORDERS`."""
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
        check_settings(self, RULES)
        fits = self.problem != "random" or self.rank <= self.dimension
        require(fits, f"rank must be at most dimension {self.dimension}", self.rank)
        ordered = self.order == "independent" or self.algorithm in ORDERED
        contract = f"order must be independent unless a step sees one entry ({', '.join(ORDERED)})"
        require(ordered, contract, f"{self.order!r} with {self.algorithm!r}")
        for prefix in ("", "offshoot_"):
            step_size, ridge = getattr(self, f"{prefix}step_size"), getattr(self, f"{prefix}ridge")
            product = f"{prefix}step_size * {prefix}ridge"
            contract = f"{product} must be below 1, or a factor 1 - 2 eta lambda makes every layer grow"
            require(step_size * ridge < 1, contract, f"{step_size} * {ridge}")

    def asdict(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)
