"""What a linear model loses in each environment: all that an explicit method for invariance gets to see.

Parameters are (features + 1,): the coefficients, then the intercept.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np


class Risks(NamedTuple):
    """The risks of all environments as pure functions of the parameters.

    Attributes:
        both: parameters -> (R_e for all e, the gradient of each), of shapes (environments,) and (environments, p).
        gradient: (parameters, e) -> (p,), the gradient of one R_e.
    """

    both: Callable[[jax.Array], tuple[jax.Array, jax.Array]]
    gradient: Callable[[jax.Array, jax.Array], jax.Array]

    def values(self, parameters: jax.Array) -> jax.Array:
        """R_e for all e."""
        return self.both(parameters)[0]

    def gradients(self, parameters: jax.Array) -> jax.Array:
        """The gradient of each R_e."""
        return self.both(parameters)[1]


class Moments(NamedTuple):
    """All that the squared loss depends on, of each environment; inputs have a column of ones for the intercept.

    Attributes:
        second: (environments, p, p), mean of x x^T.
        cross: (environments, p), mean of x y.
        power: (environments,), mean of y^2.
    """

    second: jax.Array | np.ndarray
    cross: jax.Array | np.ndarray
    power: jax.Array | np.ndarray


class Rows(NamedTuple):
    """All that the logistic loss depends on; features first, which is the order that a CPU reads fastest.

    Attributes:
        signed: (environments, p, rows), x with a one for the intercept, negated where the label is 0; short ones
            are filled up with zeros.
        weights: (environments, rows), 1 / rows of the environment, 0 where it was filled up.
    """

    signed: jax.Array | np.ndarray
    weights: jax.Array | np.ndarray


def moments(inputs: np.ndarray, targets: np.ndarray, rows: list[np.ndarray]) -> Moments:
    """The moments of the environments.

    Args:
        inputs: (rows, features).
        targets: (rows,).
        rows: the places of the rows of each environment.

    Example:
        >>> found = moments(np.array([[1.0], [3.0]]), np.array([2.0, 4.0]), [np.array([0, 1])])
        >>> found.second.tolist(), found.cross.tolist(), found.power.tolist()
        ([[[5.0, 2.0], [2.0, 1.0]]], [[7.0, 3.0]], [10.0])
    """
    parts = []
    for chosen in rows:
        extended = np.column_stack([inputs[chosen], np.ones(len(chosen))])
        seen = targets[chosen]
        parts.append((extended.T @ extended / len(seen), extended.T @ seen / len(seen), seen @ seen / len(seen)))
    return Moments(*(np.stack(column) for column in zip(*parts, strict=True)))


def signed_rows(inputs: np.ndarray, targets: np.ndarray, rows: list[np.ndarray]) -> Rows:
    """The rows by environment, in float32; arguments as those of `moments`, with targets 0 and 1."""
    longest = max(len(chosen) for chosen in rows)
    signed = np.zeros((len(rows), inputs.shape[1] + 1, longest), np.float32)
    weights = np.zeros((len(rows), longest), np.float32)
    for place, chosen in enumerate(rows):
        sign = 2 * targets[chosen] - 1
        signed[place, :, : len(chosen)] = sign * np.column_stack([inputs[chosen], np.ones(len(chosen))]).T
        weights[place, : len(chosen)] = 1 / len(chosen)
    return Rows(signed, weights)


def squared_risks(data: Moments) -> Risks:
    """R_e(w) = E_e (y - w x)^2 = w M_e w - 2 w c_e + q_e, at a cost that does not depend on the number of rows."""
    second, cross, power = (jnp.asarray(part) for part in data)

    def both(parameters: jax.Array) -> tuple[jax.Array, jax.Array]:
        half = second @ parameters - cross
        return (half - cross) @ parameters + power, 2 * half

    def gradient(parameters: jax.Array, environment: jax.Array) -> jax.Array:
        return 2 * (second[environment] @ parameters - cross[environment])

    return Risks(both, gradient)


def logistic_risks(data: Rows) -> Risks:
    """R_e(w) = E_e log(1 + exp(-t)), with the margin t = w x for the label 1 and t = -w x for 0."""

    def both(parameters: jax.Array) -> tuple[jax.Array, jax.Array]:
        margins = jnp.einsum("p,epn->en", parameters, data.signed)
        right = jax.nn.sigmoid(margins)
        # Behind a barrier the margins and their sigmoids are computed once, not again for each of the two sums.
        margins, right = jax.lax.optimization_barrier((margins, right))
        # Where the sigmoid is about to underflow, the loss is the margin itself.
        lost = jnp.where(margins < -60, -margins, -jnp.log(jnp.maximum(right, 1e-30)))
        return jnp.einsum("en,en->e", data.weights, lost), gradients_of(right)

    def gradients_of(right: jax.Array) -> jax.Array:
        return jnp.einsum("epn,en->ep", data.signed, data.weights * (right - 1))

    def gradient(parameters: jax.Array, environment: jax.Array) -> jax.Array:
        # Side by side, runs ask for different environments: to copy the rows for each costs more than to see them all.
        return both(parameters)[1][environment]

    return Risks(both, gradient)
