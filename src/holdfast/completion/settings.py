"""Settings of matrix completion by a deep linear network: one object for the Python call and the command line.

Problems and algorithms are chosen by name, from dictionaries that the settings, the command line and the docs read.
"""

from dataclasses import asdict, dataclass
from typing import Annotated, Any

from holdfast.core.names import ORDERS, Choice, Named
from holdfast.core.validation import NOT_NEGATIVE, POSITIVE, SHARE, Count, CountOrZero, Seed, check_settings, require

PROBLEMS = {
    "two-by-two": Named("holdfast.completion.problem:two_by_two", "three entries of [[1, *], [epsilon, 1]]"),
    "random": Named("holdfast.completion.problem:random_low_rank", "a random matrix of low rank"),
}
"""Functions that make a `holdfast.completion.MatrixCompletion`."""

ALGORITHMS = {
    "sgd": Named("holdfast.completion.oracles:one_entry", "one entry per step"),
    "mini-batch": Named("holdfast.completion.oracles:batch_weights", "several entries per step"),
    "label-noise": Named("holdfast.completion.oracles:one_entry", "one entry per step with fresh label noise"),
    "gradient-descent": Named("holdfast.completion.oracles:equal_weights", "all entries in every step"),
    "sde": Named("holdfast.completion.oracles:gaussian_weights", "the stochastic differential equation of SGD"),
}
"""What a step sees of a problem: the gradient of one entry (`ORDERED`), or weights of all entries for its gradient."""

ORDERED = ("sgd", "label-noise")
"""Algorithms whose steps see one entry, so that the entries have an order."""

ProblemName = Annotated[str, Choice("The matrix to complete", PROBLEMS)]
AlgorithmName = Annotated[str, Choice("The algorithm", ALGORITHMS)]
OrderName = Annotated[str, Choice("How one entry follows another", ORDERS)]


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
    """The matrix to complete, one of `holdfast.completion.settings.PROBLEMS`."""
    epsilon: Annotated[float, POSITIVE] = 0.25
    """Of the 2 x 2 example, whose missing entry is 1 / epsilon."""
    dimension: Count = 20
    """Rows and columns of the random matrix."""
    rank: Count = 3
    """Rank of the random matrix."""
    share: Annotated[float, SHARE] = 0.4
    """Share of the random matrix that is observed, from 0 to 1."""
    problem_seed: Seed = 0
    """Seed of the random matrix and of which of its entries are observed."""
    depth: Count = 3
    """Number of layers L."""
    width: Count = 6
    """Width of the hidden layers; it bounds the rank."""
    algorithm: AlgorithmName = "sgd"
    """The algorithm, one of `holdfast.completion.settings.ALGORITHMS`."""
    order: OrderName = "independent"
    """How one entry follows another where a step sees one, one of `holdfast.core.order.ORDERS`."""
    step_size: Annotated[float, POSITIVE] = 0.4
    """Step size eta."""
    ridge: Annotated[float, NOT_NEGATIVE] = 0.0245
    """Strength lambda of the penalty lambda ||theta||^2."""
    batch_size: Count = 2
    """Entries in a mini-batch, drawn with replacement."""
    noise_variance: Annotated[float, NOT_NEGATIVE] = 0.01
    """Variance of the label noise, with the algorithm label-noise."""
    substeps: Count = 1
    """Euler-Maruyama steps in one step of SGD, with the algorithm sde."""
    init_scale: Annotated[float, POSITIVE] = 1.0
    """Singular values of the layers at the start, which are blocks of random rotations."""
    steps: CountOrZero = 100_000
    """Number of steps T."""
    every: Count = 100
    """Steps between records."""
    seeds: Count = 16
    """Number of runs, with consecutive seeds."""
    seed: Seed = 0
    """First seed."""
    offshoots: CountOrZero = 0
    """Branch off this many times, evenly spaced over the run, with a smaller step size and ridge."""
    offshoot_step_size: Annotated[float, POSITIVE] = 0.2
    """Step size of an offshoot."""
    offshoot_ridge: Annotated[float, NOT_NEGATIVE] = 2e-4
    """Ridge of an offshoot."""
    offshoot_steps: CountOrZero = 50_000
    """Steps of an offshoot."""

    def __post_init__(self) -> None:
        check_settings(self)
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
