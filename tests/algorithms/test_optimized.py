import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from holdfast.algorithms.factored import factored, optimized
from holdfast_studies.questions.momentum import momentum_matrices
from holdfast_studies.questions.optimizer_runs import MOMENTUM, NAMES, OPTIMIZERS, any_optimizer

STRENGTHS = np.random.default_rng(0).choice([-5.0, 7.0], 30)


def noisy(key, fitted, step):
    """Towards diag(1, 2, 3), with noise that depends on the key."""
    noise = jax.random.normal(key, fitted.shape)
    return fitted - jnp.diag(jnp.arange(1.0, 4.0)) + noise + noise.T


def linear(key, fitted, step):
    """The spurious direction alone, without the restoring force: G = -xi."""
    return -jnp.asarray(STRENGTHS)[step][None, None]


def final(algorithm, steps, dtype=None):
    state = algorithm.init()
    for number in range(steps):
        state = algorithm.step(jax.random.fold_in(jax.random.key(0), number), state, number)
    return algorithm.parameters(state)


@pytest.mark.parametrize("signed", [False, True])
def test_plain_sgd_is_the_factored_step(signed):
    ours = factored(noisy, 3, 0.05, 0.3, signed=signed)
    theirs = optimized(noisy, 3, 0.05, 0.3, optimizer=optax.sgd, signed=signed)
    for mine, yours in zip(final(ours, 20), final(theirs, 20), strict=True):
        np.testing.assert_allclose(mine, yours, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("nesterov", [False, True])
def test_momentum_is_a_product_of_its_matrices(nesterov):
    """The optimiser of optax, and the product that the theory takes the exponent of."""
    step_size, beta, start = 0.02, 0.8, 1e-3
    make = functools.partial(optax.sgd, momentum=beta, nesterov=nesterov)
    with jax.enable_x64(True):
        algorithm = optimized(linear, 1, step_size, start, optimizer=make, dtype="float64")
        reached = float(final(algorithm, len(STRENGTHS)).positive[0, 0])
    # Heavy ball acts on (q_t, q_{t-1}), which starts at rest; Nesterov on (q, v).
    vector = start * np.array([1.0, 0.0 if nesterov else 1.0])
    for matrix in momentum_matrices(STRENGTHS, step_size, beta, nesterov=nesterov):
        vector = matrix @ vector
    assert reached == pytest.approx(vector[0], rel=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_one_program_for_all_optimisers_follows_the_one_that_is_chosen(name):
    chosen = OPTIMIZERS[name]
    size = 0.05 * float(chosen.unit(3, MOMENTUM))
    alone = optimized(noisy, 3, size, 0.3, optimizer=lambda eta: chosen.make(eta, MOMENTUM))
    among = any_optimizer(noisy, 3, 0.05, 0.3, choice=NAMES.index(name))
    np.testing.assert_allclose(final(alone, 8).positive, final(among, 8).positive, rtol=1e-4, atol=1e-5)
