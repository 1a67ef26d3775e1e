"""Growth rates under momentum: the exponent of a random product of 2 x 2 matrices."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array, eye_array
from scipy.sparse.linalg import spsolve

from holdfast.core.validation import require
from holdfast.sensing.environments import ContinuousEnvironments, Environments
from holdfast.theory.lyapunov import TINY
from holdfast.theory.strengths import strength_atoms

# Directions in the plane that stand for all of them. The exponent is then off by at most a few ten-thousandths.
DIRECTIONS = 1024
# The probability of a restart from a direction at random.
RESTART = 1e-9
# A continuum is replaced by about this many strengths.
STRENGTHS = 256


def momentum_matrices(strengths: ArrayLike, step_size: float, momentum: float, *, nesterov: bool = False) -> np.ndarray:
    """What one step with momentum does to a small spurious direction, in each environment.

    Heavy ball: v <- beta v + eta xi q, q <- q + v, so that (q_t, q_{t-1}) is multiplied by the companion matrix

        [[1 + beta + eta xi, -beta], [1, 0]]

    Nesterov, as optax has it: v <- beta v + eta xi q, q <- q + eta xi q + beta v, so that (q, v) is multiplied by

        [[1 + (1 + beta) eta xi, beta^2], [eta xi, beta]]

    Args:
        strengths: xi, (E,).
        step_size: eta.
        momentum: beta.
        nesterov: look ahead.

    Example, without momentum the first entry is the factor 1 + eta xi of SGD:
        >>> momentum_matrices([-5.0, 7.0], 0.1, 0.0)[:, 0, 0].round(6).tolist()
        [0.5, 1.7]
    """
    push = step_size * np.asarray(strengths, float)
    constant = np.ones_like(push)
    if nesterov:
        rows = [[1 + (1 + momentum) * push, momentum**2 * constant], [push, momentum * constant]]
    else:
        rows = [[1 + momentum + push, -momentum * constant], [constant, 0 * constant]]
    return np.moveaxis(np.array(rows), -1, 0)


def planar_exponent(matrices: np.ndarray, probabilities: np.ndarray, directions: int = DIRECTIONS) -> float:
    """The largest Lyapunov exponent of a random product of 2 x 2 matrices, by Furstenberg's formula.

        lambda = sum_e p_e int log|A_e x| dpi(x)

    pi is the law of the direction x that the product settles into: the stationary law of x -> A_e x / |A_e x|. On a
    grid of directions, mass that arrives between two of them is shared, which gives a sparse linear system. Sharing
    spreads the mass by the square of the spacing; a second grid, half as fine, measures that, and it is taken off.

    Args:
        matrices: (E, 2, 2), A_e.
        probabilities: (E,), p_e.
        directions: points of the grid.

    Reference: H. Furstenberg, Trans. AMS 108 (1963).

    Example, diagonal matrices grow like their larger mean logarithm:
        >>> round(planar_exponent(np.array([np.diag([2.0, 0.5])]), np.ones(1)), 4), round(float(np.log(2.0)), 4)
        (0.6931, 0.6931)
    """
    fine, coarse = (_on_grid(matrices, probabilities, count) for count in (directions, directions // 2))
    return fine + (fine - coarse) / 3


def _on_grid(matrices: np.ndarray, probabilities: np.ndarray, directions: int) -> float:
    # Directions at the middles of the cells: the axes, which a product may not leave, are none of them.
    angles = np.pi * (np.arange(directions) + 0.5) / directions
    moved = matrices @ np.stack([np.cos(angles), np.sin(angles)])
    lengths = np.maximum(np.hypot(moved[:, 0], moved[:, 1]), TINY)
    position = np.mod(np.arctan2(moved[:, 1], moved[:, 0]) / np.pi, 1) * directions - 0.5
    lower = np.floor(position)
    share = position - lower
    weights = np.asarray(probabilities, float)[:, None]
    mass = np.concatenate([weights * (1 - share), weights * share]).ravel()
    target = np.concatenate([lower, lower + 1]).ravel().astype(int) % directions
    origin = np.tile(np.arange(directions), 2 * len(matrices))
    transition = coo_array((mass, (target, origin)), (directions, directions)).tocsc()
    # Rare restarts make the equation pi = transition pi regular. They change pi by about RESTART times the number of
    # steps in which the direction forgets where it came from.
    system = eye_array(directions, format="csc") - (1 - RESTART) * transition
    stationary = spsolve(system, np.full(directions, RESTART / directions))
    stationary = stationary / stationary.sum()
    return float((weights * np.log(lengths)).sum(0) @ stationary)


def momentum_exponent(
    environments: Environments,
    step_size: float,
    momentum: float,
    *,
    nesterov: bool = False,
    direction: int = 0,
    directions: int = DIRECTIONS,
) -> float:
    """The exponent of a small spurious direction under SGD with momentum; it dies out if this is negative.

    For small steps momentum is SGD at the step size eta / (1 - beta): to second order in eta both have the exponent
    eta s / (1 - beta) - (eta / (1 - beta))^2 Var(xi) / 2 + O(eta^2 s^2). Larger steps, those that wash out, differ.

    Args:
        environments: the law of S(e), with strengths that commute.
        step_size: eta.
        momentum: beta, from 0 to 1.
        nesterov: look ahead.
        direction: which spurious direction.
        directions: points of the grid of `planar_exponent`.

    Example, without momentum it is the exponent of SGD:
        >>> from holdfast.sensing.environments import two_point
        >>> from holdfast.theory.lyapunov import two_point_exponent
        >>> round(momentum_exponent(two_point(1.0, 6.0), 0.1, 0.0), 3)
        -0.081
        >>> float(two_point_exponent(0.1, 1.0, 6.0).round(3))
        -0.081
    """
    require(0 <= momentum < 1, "momentum must be a number from 0 to below 1", momentum)
    strengths, weights = strength_atoms(environments, direction)
    if isinstance(environments, ContinuousEnvironments):  # the middle of every run of equally likely quantiles
        every = len(strengths) // STRENGTHS
        strengths = strengths[every // 2 :: every]
        weights = np.full(len(strengths), 1 / len(strengths))
    return planar_exponent(momentum_matrices(strengths, step_size, momentum, nesterov=nesterov), weights, directions)
