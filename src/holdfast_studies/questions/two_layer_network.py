"""Two-layer networks of any activation: teachers, students and their SGD, with their covariances in closed form."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from holdfast.core.run import Algorithm
from holdfast.sensing.environments import Environments

ActivationName = Literal["relu", "quadratic", "cubic", "quartic"]
Removed = Literal["nothing", "mean", "linear"]
"""The part of the residuals of a batch that is subtracted: their mean, or their regression on the inputs as well."""
# Smaller neurons count as having this length, so that cosines exist and the square of a product of lengths is not
# rounded to zero in float32.
LEAST_LENGTH = 1e-6


class Activation(NamedTuple):
    """A homogeneous activation phi, scaled so that phi(z) has variance one for z ~ N(0, 1).

    Attributes:
        apply: z -> phi(z).
        degree: of homogeneity, phi(c z) = c^degree phi(z) for c > 0.
        mean: E phi(z).
        slope: E phi'(z) = E z phi(z), the coefficient of z in a linear regression of phi(z) on it.

    Example, (z^2 / sqrt(2)) has mean sqrt(1/2) and variance one, and is uncorrelated with z:
        >>> square = ACTIVATIONS["quadratic"]
        >>> square.degree, round(float(square.mean), 3), square.slope, round(float(square.apply(2.0)), 3)
        (2, 0.707, 0.0, 2.828)
    """

    apply: Callable
    degree: int
    mean: float
    slope: float


# Variances of max(z, 0), z^2, z^3 and z^4 for z ~ N(0, 1), and their means.
_RELU_MEAN = 1 / np.sqrt(2 * np.pi)
_VARIANCES = {"relu": (np.pi - 1) / (2 * np.pi), "quadratic": 2.0, "cubic": 15.0, "quartic": 96.0}


def _power(number: int, variance: float, z):
    return z**number / np.sqrt(variance)


def _relu(z):
    return jnp.maximum(z, 0) / np.sqrt(_VARIANCES["relu"])


ACTIVATIONS: dict[str, Activation] = {
    "relu": Activation(_relu, 1, _RELU_MEAN / np.sqrt(_VARIANCES["relu"]), 0.5 / np.sqrt(_VARIANCES["relu"])),
    "quadratic": Activation(partial(_power, 2, 2.0), 2, 1 / np.sqrt(2.0), 0.0),
    "cubic": Activation(partial(_power, 3, 15.0), 3, 0.0, 3 / np.sqrt(15.0)),
    "quartic": Activation(partial(_power, 4, 96.0), 4, 3 / np.sqrt(96.0), 0.0),
}
"""Name -> activation."""


@jax.custom_jvp
def _arc_cosine(cosine: jax.Array) -> jax.Array:
    """sin(t) + (pi - t) cos(t) for the cosine of an angle t: the kernel of max(z, 0) by Cho and Saul (2009)."""
    inside = jnp.clip(cosine, -1, 1)
    return jnp.sqrt(1 - inside**2) + inside * (jnp.pi - jnp.arccos(inside))


# Its derivative is pi - t; by the rules of differentiation it would be infinity times zero at parallel neurons.
_arc_cosine.defjvps(lambda tangent, value, cosine: (jnp.pi - jnp.arccos(jnp.clip(cosine, -1, 1))) * tangent)


def covariances(first: str, second: str, w: jax.Array, v: jax.Array, *, removed: Removed = "mean") -> jax.Array:
    """(rows of w, rows of v): E phi_1(w^T x) phi_2(v^T x) over x ~ N(0, I), after a part of both was removed.

    Two neurons at a right angle see independent numbers, so their covariance is zero whatever the activations.

    Args:
        first: activation of the first network, one of `ACTIVATIONS`.
        second: of the second one: the same, or quadratic.
        w: (neurons, dimension).
        v: (neurons, dimension).
        removed: "mean" for covariances, "nothing" for the mean of the products, "linear" for the covariances of what a
            linear regression on x leaves of both.

    Example, (x^2) and (2 x)^2, scaled to variance one, have covariance 4:
        >>> covariances("quadratic", "quadratic", jnp.ones((1, 1)), 2 * jnp.ones((1, 1))).round(5).item()
        4.0
    """
    if second not in (first, "quadratic") or first not in ACTIVATIONS:
        raise ValueError(f"second must be {first!r} or 'quadratic' for first {first!r}, got {second!r}")
    inner = w @ v.T
    left, right = jnp.sum(w * w, 1)[:, None], jnp.sum(v * v, 1)[None, :]
    moments = _KERNELS[first, second](inner, left, right) / np.sqrt(_VARIANCES[first] * _VARIANCES[second])
    one, other = ACTIVATIONS[first], ACTIVATIONS[second]
    if removed == "nothing":
        return moments + one.mean * other.mean * _length(left) ** one.degree * _length(right) ** other.degree
    slopes = one.slope * other.slope
    if removed == "linear" and slopes:
        return moments - slopes * inner * _length(left) ** (one.degree - 1) * _length(right) ** (other.degree - 1)
    return moments


def _length(squares: jax.Array) -> jax.Array:
    return jnp.sqrt(jnp.maximum(squares, LEAST_LENGTH**2))


def _relu_relu(inner: jax.Array, left: jax.Array, right: jax.Array) -> jax.Array:
    lengths = _length(left) * _length(right)
    return lengths * (_arc_cosine(inner / lengths) - 1) / (2 * np.pi)


_KERNELS: dict[tuple[str, str], Callable] = {
    ("relu", "relu"): _relu_relu,
    ("relu", "quadratic"): lambda inner, left, right: _RELU_MEAN * inner**2 / _length(left),
    ("quadratic", "quadratic"): lambda inner, left, right: 2 * inner**2,
    ("cubic", "cubic"): lambda inner, left, right: 9 * left * right * inner + 6 * inner**3,
    ("cubic", "quadratic"): lambda inner, left, right: jnp.zeros_like(inner),
    ("quartic", "quartic"): lambda inner, left, right: 72 * left * right * inner**2 + 24 * inner**4,
    ("quartic", "quadratic"): lambda inner, left, right: 12 * left * inner**2,
}


class TwoLayer(NamedTuple):
    """A network f(x) = sum_k output_k phi(hidden_k^T x).

    Attributes:
        hidden: (neurons, dimension).
        output: (neurons,).

    Example:
        >>> network = TwoLayer(jnp.array([[1.0, 0.0]]), jnp.array([-1.0]))
        >>> round(predictions("relu", network, jnp.array([[2.0, 5.0]])).item(), 3)
        -3.426
    """

    hidden: jax.Array
    output: jax.Array


def predictions(activation: str, network: TwoLayer, inputs: jax.Array) -> jax.Array:
    """f(x) for each row of the inputs.

    Example:
        >>> network = TwoLayer(jnp.eye(2), jnp.ones(2))
        >>> round(predictions("quadratic", network, jnp.array([[3.0, 4.0]])).item(), 3)
        17.678
    """
    return ACTIVATIONS[activation].apply(inputs @ network.hidden.T) @ network.output


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["invariant_neurons", "spurious_neurons", "environments"],
    meta_fields=["activation"],
)
@dataclass(frozen=True)
class TeacherNetwork:
    """A network whose first neurons stay and whose others change their weights with the environment.

        y = sum_j phi(a_j^T x) + sum_j s_j(e) phi(b_j^T x)

    Attributes:
        invariant_neurons: (r1, dimension), a_j.
        spurious_neurons: (r2, dimension), b_j.
        environments: the law of diag(s).
        activation: phi, one of `ACTIVATIONS`.

    Example:
        >>> from holdfast.sensing.environments import two_point
        >>> teacher = TeacherNetwork(jnp.eye(3)[:1], jnp.eye(3)[1:2], two_point(1.0, 6.0), "relu")
        >>> teacher.network(jnp.array([[7.0]])).output.tolist()
        [1.0, 7.0]
    """

    invariant_neurons: jax.Array
    spurious_neurons: jax.Array
    environments: Environments
    activation: ActivationName

    @property
    def neurons(self) -> jax.Array:
        """(r1 + r2, dimension), the invariant ones first."""
        return jnp.concatenate([self.invariant_neurons, self.spurious_neurons])

    def network(self, strength: jax.Array) -> TwoLayer:
        """The network of the environment with the strength matrix S(e)."""
        ones = jnp.ones(len(self.invariant_neurons), self.invariant_neurons.dtype)
        return TwoLayer(self.neurons, jnp.concatenate([ones, jnp.diagonal(strength).astype(ones.dtype)]))


def half_mean_square(
    activation: str, student: TwoLayer, teacher: TeacherNetwork, strength: jax.Array, *, removed: Removed = "mean"
) -> jax.Array:
    """Half the mean square of student - teacher in one environment, over x ~ N(0, I), without sampling error.

    With `removed` the residuals of each batch have their mean subtracted, as if a batch had an intercept of its own, or
    their linear regression on x. For quadratic networks the first is what the shrinkage of Algorithm 4 does: it cancels
    the trace of the residual.

    Args:
        activation: of the student.
        student: the network that is fitted.
        teacher: the one that makes the responses.
        strength: S(e).
        removed: "nothing", "mean" or "linear".

    Example, a student equal to the teacher:
        >>> from holdfast.sensing.environments import two_point
        >>> teacher = TeacherNetwork(jnp.eye(3)[:1], jnp.eye(3)[1:2], two_point(1.0, 6.0), "relu")
        >>> strength = jnp.array([[7.0]])
        >>> half_mean_square("relu", teacher.network(strength), teacher, strength).round(5).item()
        0.0
    """
    truth = teacher.network(strength)
    kernel = partial(covariances, removed=removed)
    own = kernel(activation, activation, student.hidden, student.hidden)
    cross = kernel(activation, teacher.activation, student.hidden, truth.hidden)
    other = kernel(teacher.activation, teacher.activation, truth.hidden, truth.hidden)
    return (
        student.output @ own @ student.output / 2
        - student.output @ cross @ truth.output
        + truth.output @ other @ truth.output / 2
    )


def components(activation: str, student: TwoLayer, teacher: TeacherNetwork, *, removed: Removed = "mean") -> jax.Array:
    """(r1 + r2,): the coefficients of the student's function in a regression on the teacher's neurons.

    Least squares on infinitely many fresh x ~ N(0, I), next to an intercept ("mean") or to x as well ("linear"): what
    the student has learned of each neuron, 1 for an invariant one that is learned, the mean of s_j(e) for a spurious
    one that pooled training learns.

    Example, the student has half of the first neuron and nothing of the second:
        >>> from holdfast.sensing.environments import two_point
        >>> teacher = TeacherNetwork(jnp.eye(3)[:1], jnp.eye(3)[1:2], two_point(1.0, 6.0), "relu")
        >>> student = TwoLayer(jnp.eye(3)[:1], jnp.array([0.5]))
        >>> components("relu", student, teacher).round(4).tolist()
        [0.5, 0.0]
    """
    kernel = partial(covariances, removed=removed)
    gram = kernel(teacher.activation, teacher.activation, teacher.neurons, teacher.neurons)
    cross = kernel(activation, teacher.activation, student.hidden, teacher.neurons)
    return jnp.linalg.solve(gram, student.output @ cross)


NetworkGradient = Callable[[jax.Array, TwoLayer, ArrayLike], TwoLayer]
"""(key, network, step) -> gradient in each layer. One key is one batch."""


def two_layer(
    gradient: NetworkGradient, start: TwoLayer, step_size: ArrayLike, *, output_rate: ArrayLike = 1.0
) -> Algorithm:
    """Gradient descent on a two-layer network.

        w_k <- w_k - eta dR/dw_k,    c_k <- c_k - eta rate dR/dc_k

    A neuron of size rho along a teacher's neuron b, orthogonal to the others, moves by

        rho <- rho (1 + eta l rho^(L - 2) (s(e) - q))

    where q is what the student has of that neuron, L the degree of homogeneity of a neuron in all that is trained, and
    l the degree in w: for max(z, 0) with both layers trained and c = |w|, L = 2 and l = 1; for z^L with fixed outputs
    l = L. So L = 2 is special: while small, the neuron is multiplied by numbers that do not depend on its size, and it
    dies out exactly if E log|1 + eta l s(e)| < 0. For L > 2 the noise is weaker the smaller the neuron is: it grows at
    the mean rate up to a size that depends on the spread of s(e), see `holdfast_studies.questions.neuron_exponents`.

    Args:
        gradient: (key, network, step) -> gradient of each layer.
        start: the network at step 0; small, with |c_k| = |w_k| if both layers are trained.
        step_size: eta.
        output_rate: 0: the outputs stay as they are.

    Example, one step on (c w - 3)^2 / 2 from c = w = 1, where both gradients are -2:
        >>> def gradient(key, network, step):
        ...     residual = network.output @ network.hidden - 3
        ...     return TwoLayer(network.output[:, None] * residual, network.hidden @ residual)
        >>> algorithm = two_layer(gradient, TwoLayer(jnp.ones((1, 1)), jnp.ones(1)), 0.25, output_rate=0.0)
        >>> state = algorithm.step(jax.random.key(0), algorithm.init(), 0)
        >>> state.hidden.tolist(), state.output.tolist()
        ([[1.5]], [1.0])
    """

    def step(key: jax.Array, network: TwoLayer, number: ArrayLike) -> TwoLayer:
        slope = gradient(key, network, number)
        return TwoLayer(
            network.hidden - step_size * slope.hidden, network.output - step_size * output_rate * slope.output
        )

    return Algorithm(lambda: start, step)
