"""The effect of finite batches: the residual that sampling error sustains under HeteroSGD."""

import numpy as np

from holdfast.core.validation import NOT_NEGATIVE, require
from holdfast.sensing.environments import Environments, FiniteEnvironments

# The variance of an entry of a measurement off the diagonal, by the name of the ensemble.
ENTRY_VARIANCES = {"symmetric": 0.5, "gaussian": 1.0}


def entry_variance(ensemble: str) -> float:
    """The variance of an entry of a measurement off the diagonal."""
    require(ensemble in ENTRY_VARIANCES, f"ensemble must be one of {', '.join(ENTRY_VARIANCES)}", repr(ensemble))
    return ENTRY_VARIANCES[ensemble]


def check_noise(noise_variance: float, batch_size: float | None) -> None:
    """Raise a ValueError unless this is a variance, and zero without a batch."""
    NOT_NEGATIVE.check("noise_variance", noise_variance)
    contract = "noise_variance must be 0 without a batch_size, because an infinite batch averages the noise out"
    require(batch_size is not None or noise_variance == 0, contract, noise_variance)


def mean_square_strength(environments: Environments) -> float:
    """E ||S(e)||_F^2."""
    if isinstance(environments, FiniteEnvironments):
        squares = np.square(np.asarray(environments.strengths, float)).sum((1, 2))
        weights = np.asarray(environments.probabilities, float)
        return float(squares @ weights / weights.sum())
    location, scale = np.asarray(environments.location, float), np.asarray(environments.scale, float)
    return float(np.square(location).sum() + np.square(scale).sum() * environments.deviation.expectation(np.square))


def residual_floor(
    environments: Environments, step_size: float, dimension: int, batch_size: float, invariant_rank: int = 1
) -> float:
    """The residual ||E||_F^2 that sampling error sustains once A* of unit spectrum is learned and nothing else.

    With P = A* a symmetric Gaussian batch adds noise of variance ||S(e)||_F^2 / (2 m) to the entries of G off the
    diagonal. It drives each of d r1 entries of E, and the invariant signal pulls them back by 1 - eta a step:

        ||E||_F^2 = eta^2 r1 d E||S||^2 / (2 m) / (1 - (1 - eta)^2) = eta r1 d E||S||^2 / (2 m (2 - eta))

    Independent Gaussian entries make twice the noise.

    Args:
        environments: the law of S(e).
        step_size: eta, below 1.
        dimension: d.
        batch_size: m.
        invariant_rank: r1.

    Example:
        >>> from holdfast.sensing.environments import two_point
        >>> round(residual_floor(two_point(1.0, 8.0), 0.05, 100, 8000), 4)
        0.0104
    """
    variance = mean_square_strength(environments) / (2 * batch_size)
    return step_size * invariant_rank * dimension * variance / (2 - step_size)
