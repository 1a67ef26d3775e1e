"""How a neuron of a two-layer network grows under HeteroSGD, and the share at which spurious neurons stop."""

from collections.abc import Sequence

import numpy as np
from scipy.optimize import brentq

from holdfast.core.validation import require
from holdfast.sensing.environments import Environments
from holdfast.theory.strengths import strength_atoms

# Sizes between which the share that lasts is looked for, as parts of the largest possible one, and how many.
SMALLEST, SIZES = 1e-6, 400


def neuron_exponent(environments: Environments, step_size: float, degree: int, size: float) -> float:
    """The mean growth of log(size) in one step of a neuron along a spurious neuron of the teacher.

        lambda(rho) = E log|1 + eta rho^(L - 2) (s(e) - rho^L)|

    For degree L = 2 it has the limit E log|1 + eta s(e)| for small neurons, the exponent of matrix sensing. For L > 2
    it tends to zero from the side of E s(e): a small neuron is not washed out.

    Args:
        environments: the law of s(e), one spurious direction.
        step_size: eta, times the factors that the activation brings; see `two_layer_network.two_layer`.
        degree: L, of homogeneity in all weights that are trained.
        size: rho, with rho^L the share of the spurious neuron that the student has.

    Example, a small neuron shrinks for degree 2 and grows for degree 3:
        >>> from holdfast.sensing.environments import table
        >>> law = table([-5.0, 7.0])
        >>> neuron_exponent(law, 0.1, 2, 1e-3) < 0 < neuron_exponent(law, 0.1, 3, 1e-3)
        True
    """
    strengths, weights = strength_atoms(environments)
    require(environments.rank == 1, "environments must have one spurious direction", environments.rank)
    factors = np.abs(1 + step_size * size ** (degree - 2) * (strengths - size**degree))
    return float(weights @ np.log(np.maximum(factors, np.finfo(float).tiny)))


def lasting_share(strengths: Sequence[float], step_size: float, degree: int, neurons: int = 1) -> float:
    """The spurious share that a student keeps when environments take turns: 0 if a small neuron shrinks.

        rho_{t+1} = rho_t (1 + eta rho_t^(L - 2) (s_t - n rho_t^L)),    rho_T = rho_0

    and the share is the mean over a turn of n rho_t^L. All neurons that carry it have the same size, because each grows
    while it is smaller. For L = 2 their number does not matter. For L > 2 and two strengths s - M and s + M the size is
    near that with rho^(L - 2) = 2 s / ((L - 1) eta M^2): a cap for each neuron, so that a wider student keeps more.

    Args:
        strengths: of the environments, in the order of a turn; with a positive mean.
        step_size: eta, as in `neuron_exponent`.
        degree: L.
        neurons: n, along the spurious direction.

    Example:
        >>> [round(lasting_share((-5.0, 7.0), 0.1, degree), 3) for degree in (2, 3, 4)]
        [0.0, 0.022, 0.034]
        >>> round(lasting_share((-5.0, 7.0), 0.1, 3, neurons=8), 3)
        0.122
    """
    mean = float(np.mean(strengths))
    if mean <= 0:
        raise ValueError(f"strengths must have a positive mean, got {mean:g}")

    def turn(size: float) -> tuple[float, float]:
        """The growth of log(size) over one turn, and the mean share on the way."""
        now, shares = size, []
        for strength in strengths:
            now = abs(now * (1 + step_size * now ** (degree - 2) * (strength - neurons * now**degree)))
            shares.append(neurons * now**degree)
        return float(np.log(max(now, np.finfo(float).tiny) / size)), float(np.mean(shares))

    # Up to a little above the size of the mean, where a neuron shrinks unless steps are so large that it overshoots.
    sizes = 1.05 * (mean / neurons) ** (1 / degree) * np.geomspace(SMALLEST, 1.0, SIZES)
    shrinks = np.array([turn(size)[0] < 0 for size in sizes])
    contract = "step_size must be small enough for neurons of the size of the mean strength to shrink"
    require(bool(shrinks.any()), contract, step_size)
    first = int(np.argmax(shrinks))
    if first == 0:
        return 0.0
    return turn(brentq(lambda size: turn(size)[0], sizes[first - 1], sizes[first]))[1]
