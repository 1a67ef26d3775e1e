"""How a neuron of a two-layer network grows under HeteroSGD, and the size at which it stops."""

import numpy as np
from scipy.optimize import brentq

from holdfast.environments import FiniteEnvironments

# A size that counts as zero, and one that no spurious neuron passes: its sign would change in all environments.
SMALLEST = 1e-9


def neuron_exponent(environments: FiniteEnvironments, step_size: float, degree: int, size: float) -> float:
    """The mean growth of log(size) in one step of a neuron along a spurious neuron of the teacher.

        lambda(rho) = E log|1 + eta rho^(L - 2) (s(e) - rho^L)|

    For degree L = 2 it has the limit E log|1 + eta s(e)| for small neurons, the exponent of matrix sensing. For L > 2 it
    tends to zero from the side of E s(e): a small neuron is not washed out.

    Args:
        environments: the law of s(e), one spurious direction.
        step_size: eta, times the factors that the activation brings; see `holdfast.algorithms.two_layer`.
        degree: L, of homogeneity in all weights that are trained.
        size: rho, with rho^L the share of the spurious neuron that the student has.

    Example, a small neuron shrinks for degree 2 and grows for degree 3:
        >>> from holdfast.environments import table
        >>> law = table([-5.0, 7.0])
        >>> neuron_exponent(law, 0.1, 2, 1e-3) < 0 < neuron_exponent(law, 0.1, 3, 1e-3)
        True
    """
    strengths = np.asarray(environments.strengths, float)[:, 0, 0]
    factors = np.abs(1 + step_size * size ** (degree - 2) * (strengths - size**degree))
    return float(np.asarray(environments.probabilities, float) @ np.log(np.maximum(factors, np.finfo(float).tiny)))


def lasting_share(environments: FiniteEnvironments, step_size: float, degree: int) -> float:
    """The share rho^L of a spurious neuron at which its exponent vanishes: 0 if already a small neuron shrinks.

    For L > 2 and a large spread it is near (2 s / (eta E s(e)^2))^(L / (L - 2)): a cap, and not zero.

    Args:
        environments: the law of s(e), with a positive mean.
        step_size: eta, as in `neuron_exponent`.
        degree: L.

    Example:
        >>> from holdfast.environments import table
        >>> [round(lasting_share(table([-5.0, 7.0]), 0.1, degree), 3) for degree in (2, 3, 4)]
        [0.0, 0.124, 0.206]
    """
    mean = float(np.asarray(environments.mean)[0, 0])
    if mean <= 0:
        raise ValueError(f"environments must have a positive mean strength, got {mean:g}")
    sizes = np.append(np.geomspace(SMALLEST, 1e-3, 7), np.linspace(2e-3, mean ** (1 / degree), 500))
    values = [neuron_exponent(environments, step_size, degree, float(size)) for size in sizes]
    # With powers of a tiny size the exponent of degree 4 is below rounding; the sign is that of the mean.
    negative = np.flatnonzero(np.array(values) < -np.finfo(float).eps)
    if len(negative) == 0:
        return mean
    first = int(negative[0])
    if first == 0:
        return 0.0
    found = brentq(lambda size: neuron_exponent(environments, step_size, degree, size), sizes[first - 1], sizes[first])
    return float(found**degree)
