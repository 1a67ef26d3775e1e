"""Steps of HeteroSGD with the exact law of the gradient, on a CPU each as one function in machine code.

XLA compiles such a step to some forty loops and two products, and the products are a quarter of its time at d = 25 and
half of it at d = 100. `holdfast.sensing.kernel.law_kernel` does everything that involves matrices at once.
"""

import math
from functools import cache

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from holdfast.algorithms.factored import Factors
from holdfast.core.fingerprint import fingerprint
from holdfast.core.linear_algebra import symmetrised
from holdfast.core.randomness import split
from holdfast.core.run import Algorithm
from holdfast.sensing.batching import Batch, Batching
from holdfast.sensing.problem import MatrixSensing

_NAME = "holdfast_law_steps"
# Matrices up to this dimension are fused. The kernel uses one core for a run, XLA's products all of them: with fewer
# slabs than cores these are faster for larger matrices.
LARGEST = 512


def can_be_fused(dimension: int) -> bool:
    """Whether steps with d x d matrices can be fused on this computer; compiles what is needed on the first call.

    Example:
        >>> can_be_fused(2)
        False
    """
    return _smallest() <= dimension <= LARGEST


@cache
def available() -> bool:
    """Whether this process computes on a CPU for which numba can compile, and XLA calls what it compiles.

    Example:
        >>> available() in (True, False)
        True
    """
    if jax.default_backend() != "cpu":
        return False
    try:
        from numba.core import config

        from holdfast.sensing.kernel import calls, matrices
    except ImportError:  # numba is missing, or does not fit the numpy that is installed
        return False
    return not config.DISABLE_JIT and matrices.MULTIPLY_ADD and calls.answered()


@cache
def _smallest() -> float:
    if not available():
        return math.inf
    from holdfast.sensing.kernel.calls import register
    from holdfast.sensing.kernel.law_kernel import steps
    from holdfast.sensing.kernel.matrices import SMALLEST

    register(_NAME, steps, fingerprint((steps.__module__,)))
    return SMALLEST


def fused(
    algorithm: Algorithm,
    batching: Batching,
    problem: MatrixSensing,
    step_size: ArrayLike,
    noise_variance: ArrayLike | None = None,
) -> Algorithm:
    """The same algorithm, with steps that are fused on a CPU where a batch comes from one environment.

    The random numbers are the same; results differ by rounding. Matrices that cannot be fused keep their steps.

    Args:
        algorithm: `factored`, symmetric, in float32, with the gradient that `sensing.oracles.law` draws from these
            batches with symmetric measurements. Of strengths S(e) that are not symmetric, such measurements see the
            symmetric part.
        batching: of `algorithm`.
        problem: of `algorithm`.
        step_size: eta.
        noise_variance: variance of the label noise; None: no noise.
    """
    if not can_be_fused(problem.dimension):
        return algorithm

    def on_cpu(key: jax.Array, state: Factors, number: ArrayLike) -> Factors:
        batch_key, law_key = split(key)  # as `sampled` does
        batch = batching(batch_key, number)
        if len(batch.strengths) > 1 or batch.counts is None:
            return algorithm.step(key, state, number)
        factor = _step(law_key, state.positive, problem, batch, step_size, noise_variance)
        return Factors(factor, state.negative)

    def step(key: jax.Array, state: Factors, number: ArrayLike) -> Factors:
        return jax.lax.platform_dependent(key, state, number, cpu=on_cpu, default=algorithm.step)

    return algorithm._replace(step=step)


def _step(
    key: jax.Array,
    factor: jax.Array,
    problem: MatrixSensing,
    batch: Batch,
    step_size: ArrayLike,
    noise_variance: ArrayLike | None,
) -> jax.Array:
    """The arguments are those of `law_kernel.steps`."""
    basis = jnp.concatenate([problem.invariant_basis.T, problem.spurious_basis.T])
    invariant = problem.invariant_spectrum[:, None] * problem.invariant_basis.T
    scaled = -jnp.concatenate([invariant, symmetrised(batch.strengths[0]) @ problem.spurious_basis.T])
    noise = [] if noise_variance is None else [jnp.sqrt(noise_variance)]
    numbers = jnp.stack([batch.size, step_size / batch.size, *noise])
    call = jax.ffi.ffi_call(_NAME, jax.ShapeDtypeStruct(factor.shape, factor.dtype), vmap_method="broadcast_all")
    return call(jax.random.key_data(key), factor, *(each.astype(factor.dtype) for each in (scaled, basis, numbers)))
