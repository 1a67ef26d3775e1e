"""SGD on both layers of a small network, or on the first one alone."""

from collections.abc import Callable

import jax
from jax.typing import ArrayLike

from holdfast.core.algorithm import Algorithm
from holdfast_studies.questions.two_layer_network import TwoLayer

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
        >>> import jax.numpy as jnp
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
