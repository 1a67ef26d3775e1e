"""What a published method for invariance sees of the data, and what it has to provide.

A method is a frozen set of hyper-parameters with one function, `algorithm(risks, start)`, whose result the loop of the
library runs. All methods are full-batch, and except for the order of environments in Fish nothing in them is random.
Hyper-parameters may be traced, so that many choices of them run side by side.

Parameters are (features + 1,): the coefficients, then the intercept.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
import optax  # type: ignore[import-untyped]
from jax.typing import ArrayLike

from holdfast.algorithms.losses import logistic, squared
from holdfast.algorithms.losses.logistic import LogisticRows
from holdfast.algorithms.losses.squared import SecondMoments
from holdfast.core.algorithm import Algorithm


class Risks(NamedTuple):
    """The risks of all environments as pure functions of the parameters.

    Attributes:
        both: parameters -> (R_e for all e, the gradient of each), of shapes (environments,) and (environments, p).
        gradient: (parameters, e) -> (p,), the gradient of one R_e.

    Example, R(w) = (w - 2)^2:
        >>> risks = squared_risks(SecondMoments(jnp.ones((1, 1, 1)), jnp.array([[2.0]]), jnp.array([4.0])))
        >>> risks.values(jnp.array([0.0])).tolist(), risks.gradient(jnp.array([0.0]), 0).tolist()
        ([4.0], [-4.0])
    """

    both: Callable[[jax.Array], tuple[jax.Array, jax.Array]]
    gradient: Callable[[jax.Array, jax.Array], jax.Array]

    def values(self, parameters: jax.Array) -> jax.Array:
        """R_e for all e."""
        return self.both(parameters)[0]

    def gradients(self, parameters: jax.Array) -> jax.Array:
        """The gradient of each R_e."""
        return self.both(parameters)[1]


class InvarianceMethod(Protocol):
    """A set of hyper-parameters that knows its algorithm.

    Example, gradient descent on the mean of the risks, here on (w - 2)^2:
        >>> class MeanDescent:
        ...     def algorithm(self, risks, start):
        ...         return Algorithm(lambda: start, lambda key, w, number: w - 0.5 * risks.gradients(w).mean(0))
        >>> method: InvarianceMethod = MeanDescent()
        >>> data = SecondMoments(jnp.ones((1, 1, 1)), jnp.array([[2.0]]), jnp.array([4.0]))
        >>> algorithm = method.algorithm(squared_risks(data), jnp.zeros(1))
        >>> algorithm.step(jax.random.key(0), algorithm.init(), 0).tolist()
        [2.0]
    """

    def algorithm(self, risks: Risks, start: jax.Array) -> Algorithm:
        """The algorithm that minimises what the method asks for, from `start`; its parameters have the same shape."""
        ...


def squared_risks(data: SecondMoments) -> Risks:
    """R_e(w) = E_e (y - w x)^2: twice `losses.squared`, which is what the published methods minimise.

    Example:
        >>> data = SecondMoments(jnp.ones((1, 1, 1)), jnp.array([[2.0]]), jnp.array([4.0]))
        >>> [part.tolist() for part in squared_risks(data).both(jnp.array([1.0]))]
        [[1.0], [[-2.0]]]
    """
    data = SecondMoments(*map(jnp.asarray, data))

    def both(parameters: jax.Array) -> tuple[jax.Array, jax.Array]:
        return 2 * squared.risk(data, parameters), 2 * squared.gradient(data, parameters)

    def gradient(parameters: jax.Array, environment: jax.Array) -> jax.Array:
        return 2 * (data.second[environment] @ parameters - data.cross[environment])

    return Risks(both, gradient)


def logistic_risks(data: LogisticRows) -> Risks:
    """R_e(w) = E_e log(1 + exp(-s w x)), see `losses.logistic`; the last feature is one in every row.

    Example, without coefficients every risk is log 2:
        >>> rows = LogisticRows(jnp.ones((1, 1, 2)), jnp.array([[1.0, 0.0]]), jnp.ones((1, 2)))
        >>> round(logistic_risks(rows).values(jnp.zeros(1)).item(), 4)
        0.6931
    """
    data = LogisticRows(*map(jnp.asarray, data))

    def both(parameters: jax.Array) -> tuple[jax.Array, jax.Array]:
        return logistic.risk(data, parameters), logistic.gradient(data, parameters)

    def gradient(parameters: jax.Array, environment: jax.Array) -> jax.Array:
        # Side by side, runs ask for different environments: to copy the rows for each costs more than to use them all.
        return logistic.gradient(data, parameters)[environment]

    return Risks(both, gradient)


class Descent(NamedTuple):
    """The state of gradient descent by an optimiser of optax.

    Attributes:
        parameters: what is fitted.
        optimizer: the state of the optimiser.
    """

    parameters: jax.Array
    optimizer: optax.OptState


def adam(step_size: ArrayLike, weight_decay: ArrayLike) -> optax.GradientTransformation:
    """Adam (Kingma and Ba, ICLR 2015, Algorithm 1), with weight_decay * parameters added to the gradient."""
    return optax.chain(optax.add_decayed_weights(weight_decay), optax.adam(step_size))


def descend(optimizer: optax.GradientTransformation, state: Descent, gradient: jax.Array) -> Descent:
    """One step of an optimiser."""
    updates, memory = optimizer.update(gradient, state.optimizer, state.parameters)
    return Descent(state.parameters + updates, memory)


def adam_descent(
    gradient: Callable[[jax.Array], jax.Array], start: jax.Array, step_size: ArrayLike, weight_decay: ArrayLike
) -> Algorithm:
    """The algorithm that follows a gradient by Adam."""
    optimizer = adam(step_size, weight_decay)

    def step(key: jax.Array, state: Descent, number: ArrayLike) -> Descent:
        return descend(optimizer, state, gradient(state.parameters))

    return Algorithm(lambda: Descent(start, optimizer.init(start)), step, lambda state: state.parameters)
