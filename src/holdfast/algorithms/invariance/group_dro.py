"""Distributionally robust optimisation over groups (Group DRO)."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from holdfast.algorithms.invariance.base import Descent, Risks, adam, descend
from holdfast.core.algorithm import Algorithm


class WeightedDescent(NamedTuple):
    """The state of a descent on a weighted risk.

    Attributes:
        descent: the parameters and the optimiser.
        weights: (environments,), q.
    """

    descent: Descent
    weights: jax.Array


def raised_weights(weights: jax.Array, risks: jax.Array, rate: ArrayLike) -> jax.Array:
    """The weights of Group DRO after one step of exponentiated gradient ascent: q_e exp(rate R_e), scaled to sum one.

    Example:
        >>> raised_weights(jnp.array([0.5, 0.5]), jnp.array([0.0, jnp.log(3.0)]), 1.0).round(5)
        Array([0.25, 0.75], dtype=float32)
    """
    return jax.nn.softmax(jnp.log(weights) + rate * risks)


@dataclass(frozen=True)
class WorstGroup:
    """Group DRO: the parameters descend on sum_e q_e R_e while the weights q climb, see `raised_weights`.

    Reference: S. Sagawa, P. W. Koh, T. Hashimoto, P. Liang, *Distributionally robust neural networks*, ICLR 2020,
    Algorithm 1, with Adam for the parameters.

    Attributes:
        rate: of the climb of q.
        step_size: of Adam.
        weight_decay: see `AverageRisk`.

    Example, one step of Adam from 0, for R(w, b) = (w - 2)^2 + b^2:
        >>> from holdfast.algorithms.invariance import squared_risks
        >>> from holdfast.algorithms.losses import SecondMoments
        >>> risks = squared_risks(SecondMoments(jnp.eye(2)[None], jnp.array([[2.0, 0.0]]), jnp.array([4.0])))
        >>> algorithm = WorstGroup(step_size=0.125).algorithm(risks, jnp.zeros(2))
        >>> state = algorithm.step(jax.random.key(0), algorithm.init(), 0)
        >>> algorithm.parameters(state).round(4).tolist()
        [0.125, 0.0]
    """

    rate: ArrayLike = 1e-2
    step_size: ArrayLike = 1e-3
    weight_decay: ArrayLike = 0.0

    def algorithm(self, risks: Risks, start: jax.Array) -> Algorithm:
        """Weights first, then a step of Adam on the weighted risk."""
        count = jax.eval_shape(risks.values, start).shape[0]
        optimizer = adam(self.step_size, self.weight_decay)

        def init() -> WeightedDescent:
            return WeightedDescent(Descent(start, optimizer.init(start)), jnp.full(count, 1 / count, start.dtype))

        def step(key: jax.Array, state: WeightedDescent, number: ArrayLike) -> WeightedDescent:
            values, gradients = risks.both(state.descent.parameters)
            weights = raised_weights(state.weights, values, self.rate)
            return WeightedDescent(descend(optimizer, state.descent, weights @ gradients), weights)

        return Algorithm(init, step, lambda state: state.descent.parameters)
