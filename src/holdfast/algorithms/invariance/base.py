"""What a published method for invariance sees of the data, and what it has to provide.

A method is a frozen set of hyper-parameters with two functions: `direction`, where to descend, and `optimizer`, how.
`descent` makes an algorithm of them, which the loop of the library runs. The same method fits the coefficients of a
table (`squared_risks`, `logistic_risks`) or the factor of a matrix (`factored_risks`). Hyper-parameters may be traced,
so that many choices of them run side by side.

Parameters of a table are (features + 1,): the coefficients, then the intercept.
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
from holdfast.core.run import Algorithm

DirectionAndWeights = tuple[jax.Array, jax.Array]
"""Where a method descends, of the shape of the parameters, and weights of the environments for its next step."""

Pulled = Callable[[jax.Array], jax.Array]
"""Slopes in some derivatives, (environments, derivatives) -> their gradient in the parameters."""


class Risks(NamedTuple):
    """The risks of all environments as pure functions of the parameters, an array of any shape.

    Attributes:
        both: parameters -> (R_e for all e, the gradient of each), of shapes (environments,) and (environments, ...).
        gradient: (parameters, e) -> the gradient of one R_e.
        derivatives: parameters -> the derivatives of each R_e along a multiple of the predictor, and along a shift of
            it if it has an intercept, (environments, 1 or 2); and the function that takes slopes in them back to the
            parameters.
        normalised: gradients -> gradients whose signs and means are compared, see `AgreementMask`.

    Example, R(w) = (w - 2)^2:
        >>> risks = squared_risks(SecondMoments(jnp.ones((1, 1, 1)), jnp.array([[2.0]]), jnp.array([4.0])))
        >>> risks.values(jnp.array([0.0])).tolist(), risks.gradient(jnp.array([0.0]), 0).tolist()
        ([4.0], [-4.0])
    """

    both: Callable[[jax.Array], tuple[jax.Array, jax.Array]]
    gradient: Callable[[jax.Array, jax.Array], jax.Array]
    derivatives: Callable[[jax.Array], tuple[jax.Array, Pulled]]
    normalised: Callable[[jax.Array], jax.Array] = lambda gradients: gradients

    def values(self, parameters: jax.Array) -> jax.Array:
        """R_e for all e."""
        return self.both(parameters)[0]

    def gradients(self, parameters: jax.Array) -> jax.Array:
        """The gradient of each R_e."""
        return self.both(parameters)[1]


class InvarianceMethod(Protocol):
    """A set of hyper-parameters that knows where to descend.

    Example, gradient descent on the largest risk, here on (w - 2)^2:
        >>> class LargestRisk:
        ...     def direction(self, risks, parameters, weights, key):
        ...         values, gradients = risks.both(parameters)
        ...         return gradients[jnp.argmax(values)], weights
        ...     def optimizer(self):
        ...         return optax.sgd(0.5)
        >>> method: InvarianceMethod = LargestRisk()
        >>> data = SecondMoments(jnp.ones((1, 1, 1)), jnp.array([[2.0]]), jnp.array([4.0]))
        >>> algorithm = descent(method, squared_risks(data), jnp.zeros(1))
        >>> algorithm.parameters(algorithm.step(jax.random.key(0), algorithm.init(), 0)).tolist()
        [2.0]
    """

    def direction(self, risks: Risks, parameters: jax.Array, weights: jax.Array, key: jax.Array) -> DirectionAndWeights:
        """The direction to descend from the parameters, and weights of the environments for the next step.

        Args:
            risks: of the environments.
            parameters: where the method is.
            weights: (environments,), as this function returned them in the step before; equal in the first.
            key: of this step.
        """
        ...

    def optimizer(self) -> optax.GradientTransformation:
        """What turns directions into steps."""
        ...


class Descent(NamedTuple):
    """The state of a method.

    Attributes:
        parameters: what is fitted.
        optimizer: the state of the optimiser.
        weights: (environments,), what a method remembers of the environments.
    """

    parameters: jax.Array
    optimizer: optax.OptState
    weights: jax.Array


def descent(method: InvarianceMethod, risks: Risks, start: jax.Array) -> Algorithm:
    """The algorithm that descends from `start` as a method wants.

    Example, one step from 0, for R(w, b) = (w - 2)^2 + b^2:
        >>> from holdfast.algorithms.invariance import AverageRisk
        >>> risks = squared_risks(SecondMoments(jnp.eye(2)[None], jnp.array([[2.0, 0.0]]), jnp.array([4.0])))
        >>> algorithm = descent(AverageRisk(step_size=0.125), risks, jnp.zeros(2))
        >>> state = algorithm.step(jax.random.key(0), algorithm.init(), 0)
        >>> algorithm.parameters(state).round(4).tolist()
        [0.125, 0.0]
    """
    count = jax.eval_shape(risks.values, start).shape[0]
    optimizer = method.optimizer()

    def init() -> Descent:
        return Descent(start, optimizer.init(start), jnp.full(count, 1 / count, start.dtype))

    def step(key: jax.Array, state: Descent, number: ArrayLike) -> Descent:
        direction, weights = method.direction(risks, state.parameters, state.weights, key)
        updates, memory = optimizer.update(direction, state.optimizer, state.parameters)
        return Descent(state.parameters + updates, memory, weights)

    return Algorithm(init, step, lambda state: state.parameters)


class ByAdam:
    """Base of methods that descend by Adam, with weight_decay * parameters added to the gradient.

    Reference: Kingma and Ba, ICLR 2015, Algorithm 1.
    """

    step_size: ArrayLike
    weight_decay: ArrayLike

    def optimizer(self) -> optax.GradientTransformation:
        """Adam."""
        return optax.chain(optax.add_decayed_weights(self.weight_decay), optax.adam(self.step_size))


def squared_risks(data: SecondMoments) -> Risks:
    """R_e(w) = E_e (y - w x)^2: twice `losses.squared`, which is what the published methods minimise.

    Example:
        >>> data = SecondMoments(jnp.ones((1, 1, 1)), jnp.array([[2.0]]), jnp.array([4.0]))
        >>> [part.tolist() for part in squared_risks(data).both(jnp.array([1.0]))]
        [[1.0], [[-2.0]]]
    """
    data = SecondMoments(*map(jnp.asarray, data))

    return _linear(
        lambda w: (2 * squared.risk(data, w), 2 * squared.gradient(data, w)),
        lambda w, environment: 2 * (data.second[environment] @ w - data.cross[environment]),
    )


def logistic_risks(data: LogisticRows) -> Risks:
    """R_e(w) = E_e log(1 + exp(-s w x)), see `losses.logistic`; the last feature is one in every row.

    Example, without coefficients every risk is log 2:
        >>> rows = LogisticRows(jnp.ones((1, 1, 2)), jnp.array([[1.0, 0.0]]), jnp.ones((1, 2)))
        >>> round(logistic_risks(rows).values(jnp.zeros(1)).item(), 4)
        0.6931
    """
    data = LogisticRows(*map(jnp.asarray, data))

    return _linear(
        lambda w: (logistic.risk(data, w), logistic.gradient(data, w)),
        # Side by side, runs ask for different environments: to copy the rows for each costs more than to use them all.
        lambda w, environment: logistic.gradient(data, w)[environment],
    )


def _linear(
    both: Callable[[jax.Array], tuple[jax.Array, jax.Array]], gradient: Callable[[jax.Array, jax.Array], jax.Array]
) -> Risks:
    """The risks of a score that is linear in w: d R_e / d scale is the derivative along w, d R_e / d shift along b."""

    def derivatives(parameters: jax.Array) -> tuple[jax.Array, Pulled]:
        def along(w: jax.Array) -> jax.Array:
            gradients = both(w)[1]
            return jnp.stack([gradients @ w, gradients[:, -1]], -1)

        values, pull = jax.vjp(along, parameters)
        return values, lambda slopes: pull(slopes)[0]

    def normalised(gradients: jax.Array) -> jax.Array:
        lengths = jnp.linalg.norm(gradients[:, :-1], axis=1, keepdims=True)
        # At an exact minimum of an environment there is no direction, and the mask is zero anyway.
        lengths = jnp.where(lengths > 0, lengths, 1)
        return jnp.concatenate([gradients[:, :-1] / lengths, gradients[:, -1:]], axis=1)

    return Risks(both, gradient, derivatives, normalised)


MatrixGradient = Callable[[jax.Array, jax.Array], jax.Array]
"""(fitted matrix P, environment) -> the gradient G_e of its risk in P, on one batch."""


def factored_risks(
    values: Callable[[jax.Array], jax.Array], gradient: MatrixGradient, other_gradient: MatrixGradient | None = None
) -> Risks:
    """The risks of P = U U^T as functions of U, for risks that are quadratic in P, such as E <X, P - A* - A(e)>^2 / 2.

    The gradient of R_e counts as G_e U, so a step of descent is U <- (I - eta G) U, eq. 3 of Xu, Gu and Fang (2024).

    The derivative along a multiple of P is D_e = d R_e(s P) / ds = <P, G_e>, and its gradient in P is that of R_e at
    2 P. Taken on a batch of its own, the product of both is unbiased, as in the code of Arjovsky et al. (2019).

    Args:
        values: P -> (environments,), R_e.
        gradient: G_e, on one batch of each environment.
        other_gradient: the same on other batches; None: on these.

    Example, R(P) = (P - 1)^2 / 2 at P = 2, where D = 2, pulled back with the slope 1 to (2 P - 1) U:
        >>> risks = factored_risks(lambda p: jnp.square(p[0] - 1) / 2, lambda p, e: p - 1)
        >>> factor = jnp.full((1, 1), jnp.sqrt(2.0))
        >>> derivatives, pull = risks.derivatives(factor)
        >>> round(derivatives.item(), 4), round((pull(jnp.ones((1, 1))) / factor).item(), 4)
        (2.0, 3.0)
    """

    def everywhere(one: MatrixGradient, fitted: jax.Array, count: int) -> jax.Array:
        return jax.vmap(lambda environment: one(fitted, environment))(jnp.arange(count))

    def both(factor: jax.Array) -> tuple[jax.Array, jax.Array]:
        fitted = factor @ factor.T
        risks = values(fitted)
        return risks, everywhere(gradient, fitted, len(risks)) @ factor

    def derivatives(factor: jax.Array) -> tuple[jax.Array, Pulled]:
        fitted = factor @ factor.T
        count = len(values(fitted))

        def pull(slopes: jax.Array) -> jax.Array:
            return jnp.tensordot(slopes[:, 0], everywhere(other_gradient or gradient, 2 * fitted, count), 1) @ factor

        return jnp.tensordot(everywhere(gradient, fitted, count), fitted, 2)[:, None], pull

    return Risks(both, lambda factor, environment: gradient(factor @ factor.T, environment) @ factor, derivatives)
