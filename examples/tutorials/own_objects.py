"""
Your own problem, oracle and algorithm
======================================

Laws of environments, oracles and algorithms are plain functions. You pass yours as an object; nothing is registered.
"""

# %%
# **A problem**: the law of its environments. Strengths are bias + heterogeneity * N; here N has the Laplace
# distribution. `draw` is for simulations, the quantiles are for the theory, and the two are checked against each other.

import functools
import sys
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import holdfast as hf
from holdfast.algorithms import Factors
from holdfast.core import Algorithm
from holdfast.plots import band, new_figure, style
from holdfast.sensing.environments import Deviation, continuum


def draw_laplace(key, shape):
    return jax.random.laplace(key, shape, jnp.float32)


def laplace_quantile(probability):
    centred = probability - 0.5
    with np.errstate(divide="ignore"):  # the quantiles at 0 and 1 are infinite
        return -np.sign(centred) * np.log1p(-2 * np.abs(centred))


laplace = functools.partial(continuum, Deviation(draw_laplace, laplace_quantile))
print(hf.diagnose(laplace(bias=1.0, heterogeneity=4.0)).sentences[0])

# %%
# **An oracle**: the gradient that is seen for a fitted matrix and a batch. This one forgets a tenth of its entries.


def forgetful(problem):
    exact = hf.sensing.oracles.population(problem)

    def gradient(key, fitted, batch):
        seen = jax.random.bernoulli(key, 0.9, fitted.shape)
        return exact(key, fitted, batch) * (seen & seen.T)

    return gradient


# %%
# **An algorithm**: a start, a step, and which part of the state is the fitted matrix. This is SGD with momentum.


def heavy_ball(gradient, dimension, step_size, init_scale, *, dtype=None, momentum=0.0):
    def init():
        start = jnp.multiply(init_scale, jnp.eye(dimension, dtype=dtype))
        return start, jnp.zeros_like(start)

    def step(key, state, number):
        factor, velocity = state
        force = -gradient(key, factor @ factor.T, number) @ factor
        velocity = jnp.multiply(momentum, velocity) + jnp.multiply(step_size, force)
        return factor + velocity, velocity

    return Algorithm(init, step, lambda state: Factors.symmetric(state[0]))


# %%
# All three in one simulation. An argument of your own can be swept, and becomes a dimension of the result.

settings = hf.Settings(dimension=20, heterogeneity=4.0, step_size=0.1, steps=120, every=2, seeds=32)
trajectory = hf.simulate(
    settings, environments=laplace, oracle=forgetful, algorithm=heavy_ball, sweep={"momentum": [0.0, 0.3, 0.6]}
)
print(trajectory.survivors[["invariant", "spurious"]].median("seed").to_pandas().round(4).to_string())

with style():
    figure, (axes,) = new_figure(1, "Momentum brings the spurious signal back")
    for momentum in trajectory.data["momentum"].values:
        band(axes, trajectory.data["spurious"].sel(momentum=momentum), "step", f"momentum {momentum:.1f}")
    axes.set(xlabel="step", ylabel="spurious share", yscale="log")
    axes.legend(loc="lower right")

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
figure.savefig(folder / "own_objects.png")

# %%
# :doc:`../extend` has every contract, with types: batchings, experiments with claims, estimators and baselines.
