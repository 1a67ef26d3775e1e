"""Explicit methods for invariance: penalties, weights and masks on the risks of the environments.

Each method is a frozen set of hyper-parameters with one function, `algorithm(risks, start)`, which gives the pair
(init, step) that the loop of the library runs. All are full-batch, and but for the order of environments in Fish
nothing in them is random. Hyper-parameters may be traced, so that many choices of them run side by side.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from holdfast.algorithms.risks import Risks
from holdfast.core.algorithm import Algorithm

# The constants of Kingma and Ba (2015), which every published comparison keeps.
ADAM_DECAYS = (0.9, 0.999)
ADAM_EPSILON = 1e-8


class Method(Protocol):
    """A set of hyper-parameters that knows its algorithm."""

    def algorithm(self, risks: Risks, start: jax.Array) -> Algorithm:
        """The pair (init, step), whose state has an attribute `parameters`."""
        ...


class Plain(NamedTuple):
    """The state of a method without memory."""

    parameters: jax.Array


class Adaptive(NamedTuple):
    """The state of Adam: parameters, means of gradients and of their squares, what is left of the start in both."""

    parameters: jax.Array
    mean: jax.Array
    square: jax.Array
    forgotten: jax.Array


class Weighted(NamedTuple):
    """The state of Adam beside weights of the environments."""

    parameters: jax.Array
    adam: Adaptive
    weights: jax.Array


def variance_of_risks(risks: jax.Array) -> jax.Array:
    """The variance over environments, the penalty of V-REx.

    Example:
        >>> float(variance_of_risks(jnp.array([1.0, 3.0])))
        1.0
    """
    return jnp.mean(jnp.square(risks - jnp.mean(risks)))


def invariance_penalty(gradients: jax.Array, parameters: jax.Array) -> jax.Array:
    """How far a multiple of the predictor, or a shift of it, would be better in single environments (IRMv1).

        sum_e |d R_e(s f + b) / d(s, b)|^2    at s = 1, b = 0

    The score f is linear in the parameters w, so the two derivatives are those of R_e along w and along the intercept.

    Reference: M. Arjovsky, L. Bottou, I. Gulrajani, D. Lopez-Paz, *Invariant risk minimization*, arXiv:1907.02893,
    eq. IRMv1; with the shift b as in the unit tests of Aubin et al. (2021).

    Args:
        gradients: (environments, parameters), of each R_e at w.
        parameters: w, the intercept last.

    Example, R(w, b) = (w + b - 1)^2 at w = 2, b = 0:
        >>> float(invariance_penalty(jnp.array([[2.0, 2.0]]), jnp.array([2.0, 0.0])))
        20.0
    """
    return jnp.sum(jnp.square(gradients @ parameters)) + jnp.sum(jnp.square(gradients[:, -1]))


def agreement_mask(gradients: jax.Array, threshold: ArrayLike) -> jax.Array:
    """1 where the signs of the gradients agree in more than a share `threshold`, in the sense |sum of signs| > E tau.

    Example:
        >>> agreement_mask(jnp.array([[1.0, 1.0], [2.0, -1.0]]), 0.9).tolist()
        [1.0, 0.0]
    """
    return (jnp.abs(jnp.sum(jnp.sign(gradients), 0)) > len(gradients) * threshold).astype(gradients.dtype)


def raised_weights(weights: jax.Array, risks: jax.Array, rate: ArrayLike) -> jax.Array:
    """The weights of Group DRO after one step of exponentiated gradient ascent: q_e exp(rate R_e), scaled to sum one.

    Example:
        >>> raised_weights(jnp.array([0.5, 0.5]), jnp.array([0.0, jnp.log(3.0)]), 1.0).round(5)
        Array([0.25, 0.75], dtype=float32)
    """
    return jax.nn.softmax(jnp.log(weights) + rate * risks)


@dataclass(frozen=True)
class AverageRisk:
    """The mean of the risks, each environment counted once: empirical risk minimisation by Adam.

    Attributes:
        step_size: of Adam.
        weight_decay: added to the gradient as weight_decay * parameters.
    """

    step_size: ArrayLike = 1e-3
    weight_decay: ArrayLike = 0.0

    def algorithm(self, risks: Risks, start: jax.Array) -> Algorithm:
        """Adam on mean_e R_e."""
        return _adam(lambda w: jnp.mean(risks.gradients(w), 0), start, self.step_size, self.weight_decay)


@dataclass(frozen=True)
class InvariantRiskMinimization:
    """IRMv1: (1 - weight) mean_e R_e + weight * `invariance_penalty`.

    Attributes:
        weight: of the penalty, in [0, 1].
        step_size: of Adam.
        weight_decay: see `AverageRisk`.
    """

    weight: ArrayLike = 0.9
    step_size: ArrayLike = 1e-3
    weight_decay: ArrayLike = 0.0

    def algorithm(self, risks: Risks, start: jax.Array) -> Algorithm:
        """Adam on the penalised risk."""
        penalty = jax.grad(lambda w: invariance_penalty(risks.gradients(w), w))

        def gradient(w: jax.Array) -> jax.Array:
            return (1 - self.weight) * jnp.mean(risks.gradients(w), 0) + self.weight * penalty(w)

        return _adam(gradient, start, self.step_size, self.weight_decay)


@dataclass(frozen=True)
class RiskExtrapolation:
    """V-REx: mean_e R_e + penalty * variance_e R_e.

    Reference: D. Krueger et al., *Out-of-distribution generalization via risk extrapolation*, ICML 2021, eq. 8, with
    the mean of the risks in the place of their sum.

    Attributes:
        penalty: beta.
        step_size: of Adam.
        weight_decay: see `AverageRisk`.
    """

    penalty: ArrayLike = 10.0
    step_size: ArrayLike = 1e-3
    weight_decay: ArrayLike = 0.0

    def algorithm(self, risks: Risks, start: jax.Array) -> Algorithm:
        """Adam on the penalised risk."""

        def objective(values: jax.Array) -> jax.Array:
            return jnp.mean(values) + self.penalty * variance_of_risks(values)

        def gradient(w: jax.Array) -> jax.Array:
            values, gradients = risks.both(w)
            return jax.grad(objective)(values) @ gradients

        return _adam(gradient, start, self.step_size, self.weight_decay)


@dataclass(frozen=True)
class WorstGroup:
    """Group DRO: the parameters descend on sum_e q_e R_e while the weights q climb, see `raised_weights`.

    Reference: S. Sagawa, P. W. Koh, T. Hashimoto, P. Liang, *Distributionally robust neural networks*, ICLR 2020,
    Algorithm 1, with Adam for the parameters.

    Attributes:
        rate: of the climb of q.
        step_size: of Adam.
        weight_decay: see `AverageRisk`.
    """

    rate: ArrayLike = 1e-2
    step_size: ArrayLike = 1e-3
    weight_decay: ArrayLike = 0.0

    def algorithm(self, risks: Risks, start: jax.Array) -> Algorithm:
        """Weights first, then a step of Adam on the weighted risk."""
        count = jax.eval_shape(risks.values, start).shape[0]
        unit = _unit(jnp.mean(risks.gradients(start), 0))

        def init() -> Weighted:
            return Weighted(start, _adam_start(start), jnp.full(count, 1 / count, start.dtype))

        def step(key: jax.Array, state: Weighted, number: ArrayLike) -> Weighted:
            values, gradients = risks.both(state.parameters)
            weights = raised_weights(state.weights, values, self.rate)
            adam = _adam_step(state.adam, weights @ gradients, unit, self.step_size, self.weight_decay)
            return Weighted(adam.parameters, adam, weights)

        return Algorithm(init, step, _parameters)


@dataclass(frozen=True)
class AgreementMask:
    """AND-mask: gradient descent in which a coordinate moves only if nearly all environments agree on its sign.

    The gradient of the coefficients is scaled to unit length in each environment before signs and means are taken,
    that of the intercept is not, as in the code of the unit tests.

    Reference: G. Parascandolo, A. Neitz, A. Orvieto, L. Gresele, B. Schölkopf, *Learning explanations that are hard to
    vary*, ICLR 2021, section 2.3; Aubin et al. (2021) for the scaling.

    Attributes:
        threshold: tau, see `agreement_mask`.
        step_size: of gradient descent.
        weight_decay: each step shrinks the parameters by step_size * weight_decay.
    """

    threshold: ArrayLike = 0.9
    step_size: ArrayLike = 1e-3
    weight_decay: ArrayLike = 0.0

    def algorithm(self, risks: Risks, start: jax.Array) -> Algorithm:
        """Masked gradient descent."""

        def step(key: jax.Array, state: Plain, number: ArrayLike) -> Plain:
            w = state.parameters
            gradients = risks.gradients(w)
            lengths = jnp.linalg.norm(gradients[:, :-1], axis=1, keepdims=True)
            # At an exact minimum of an environment there is no direction, and the mask is zero anyway.
            lengths = jnp.where(lengths > 0, lengths, 1)
            gradients = jnp.concatenate([gradients[:, :-1] / lengths, gradients[:, -1:]], axis=1)
            masked = agreement_mask(gradients, self.threshold) * jnp.mean(gradients, 0)
            return Plain(w - self.step_size * (masked + self.weight_decay * w))

        return Algorithm(lambda: Plain(start), step, _parameters)


@dataclass(frozen=True)
class Fish:
    """Fish: a pass of gradient descent through the environments in random order, then a step towards where it ended.

        w' <- w' - step_size grad R_e(w')  for each e,    w <- w + meta_step_size (w' - w)

    To second order this raises the inner products of the gradients of environments.

    Reference: Y. Shi et al., *Gradient matching for domain generalization*, ICLR 2022, Algorithm 1.

    Attributes:
        step_size: of the pass.
        meta_step_size: epsilon.
        weight_decay: added to each gradient as weight_decay * parameters.
    """

    step_size: ArrayLike = 1e-3
    meta_step_size: ArrayLike = 0.5
    weight_decay: ArrayLike = 0.0

    def algorithm(self, risks: Risks, start: jax.Array) -> Algorithm:
        """The two nested steps; the order of environments is drawn anew in each."""
        count = jax.eval_shape(risks.values, start).shape[0]

        def step(key: jax.Array, state: Plain, number: ArrayLike) -> Plain:
            def visit(w: jax.Array, environment: jax.Array) -> tuple[jax.Array, None]:
                gradient = risks.gradient(w, environment) + self.weight_decay * w
                return w - self.step_size * gradient, None

            order = jax.random.permutation(key, count)
            ahead, _ = jax.lax.scan(visit, state.parameters, order)
            return Plain(state.parameters + self.meta_step_size * (ahead - state.parameters))

        return Algorithm(lambda: Plain(start), step, _parameters)


def _parameters(state: Plain | Adaptive | Weighted) -> jax.Array:
    return state.parameters


def _adam(
    gradient: Callable[[jax.Array], jax.Array], start: jax.Array, step_size: ArrayLike, weight_decay: ArrayLike
) -> Algorithm:
    """Adam (Kingma and Ba, ICLR 2015, Algorithm 1)."""
    unit = _unit(gradient(start))

    def step(key: jax.Array, state: Adaptive, number: ArrayLike) -> Adaptive:
        return _adam_step(state, gradient(state.parameters), unit, step_size, weight_decay)

    return Algorithm(lambda: _adam_start(start), step, _parameters)


def _unit(gradient: jax.Array) -> jax.Array:
    """Moments are kept in units of the first gradient: Adam does not depend on the unit, and a state stays small.

    The loop takes a large state for divergence, and the squares of the gradients of a penalty are large.
    """
    return jnp.maximum(jnp.linalg.norm(gradient), ADAM_EPSILON)


def _adam_start(start: jax.Array) -> Adaptive:
    zero = jnp.zeros_like(start)
    return Adaptive(start, zero, zero, jnp.ones(2, start.dtype))


def _adam_step(
    state: Adaptive, gradient: jax.Array, unit: jax.Array, step_size: ArrayLike, weight_decay: ArrayLike
) -> Adaptive:
    gradient = (gradient + weight_decay * state.parameters) / unit
    first, second = ADAM_DECAYS
    mean = first * state.mean + (1 - first) * gradient
    square = second * state.square + (1 - second) * gradient**2
    forgotten = state.forgotten * jnp.asarray(ADAM_DECAYS, mean.dtype)
    left = 1 - forgotten
    move = (mean / left[0]) / (jnp.sqrt(square / left[1]) + ADAM_EPSILON / unit)
    return Adaptive(state.parameters - step_size * move, mean, square, forgotten)
