"""The contract of an oracle, and two that draw no measurements: the exact law of the gradient, and its limit.

Let the residuals of all groups of a batch lie in a space K of matrices with orthonormal basis B_1 ... B_k, the
residual of group g being W_g = sum_j w_gj B_j. A measurement is X_i = sum_j g_ij B_j + X_i', where the g_ij are
standard normal and X_i' is independent of them. With c_i = <X_i, W_g(i)> - sigma eps_i,

    m G = sum_i c_i X_i = sum_j (sum_i c_i g_ij) B_j + sum_i c_i X_i'.

Given the c_i the last sum is equal in law to sqrt(sum_i c_i^2) (Z - P_K Z), Z one more draw of the ensemble. What
remains, sum_i c_i g_i and sum_i c_i^2, are functions of the Gram matrices sum_{i in g} (g_i, eps_i)(g_i, eps_i)^T,
which are Wishart with as many degrees of freedom as the group has samples: O(d^2) random numbers at any batch size.
docs/exact_law.md has the proof.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from holdfast.core.randomness import CHI_SQUARE_NORMALS, chi_squares, several_normals
from holdfast.sensing.batching import Batch
from holdfast.sensing.ensembles import Ensemble, symmetric_gaussian
from holdfast.sensing.problem import MatrixSensing

Oracle = Callable[[jax.Array, jax.Array, Batch], jax.Array]
"""(key, fitted matrix P, batch) -> gradient matrix G."""
OracleMaker = Callable[[MatrixSensing], Oracle]
"""problem -> oracle."""


def population(problem: MatrixSensing) -> Oracle:
    """G = fitted - A* - V* S V*^T with S the mean strength of the batch: the expectation over measurements.

    Example, A* = diag(1, 0) and A(e) = diag(0, 7):
        >>> import jax.numpy as jnp
        >>> from holdfast.sensing.environments import two_point
        >>> problem = MatrixSensing(*map(jnp.asarray, ([[1.0], [0.0]], [1.0], [[0.0], [1.0]])), two_point(1.0, 6.0))
        >>> batch = Batch(jnp.array([[[7.0]]]), jnp.array([1.0]))
        >>> population(problem)(jax.random.key(0), jnp.zeros((2, 2)), batch).tolist()
        [[-1.0, 0.0], [0.0, -7.0]]
    """

    def gradient(key: jax.Array, fitted: jax.Array, batch: Batch) -> jax.Array:
        return fitted - problem.invariant_matrix - problem.spurious_matrix(batch.mean_strength)

    return gradient


class _Frame(NamedTuple):
    """A space of matrices that holds every residual of a batch, with an orthonormal basis."""

    coefficients: jax.Array  # (groups, k): the residual of each group in the basis
    project: Callable[[jax.Array], jax.Array]  # matrix -> (k,)
    expand: Callable[[jax.Array], jax.Array]  # (k,) -> matrix


def _norm_and_inverse(matrix: jax.Array) -> tuple[jax.Array, jax.Array]:
    norm = jnp.sqrt(jnp.sum(jnp.square(matrix)))
    return norm, 1 / jnp.where(norm > 0, norm, 1)


def _line(residual: jax.Array) -> _Frame:
    """The line through the only residual of the batch."""
    norm, inverse = _norm_and_inverse(residual)
    # The direction residual / norm is not formed: that would be one more pass over the matrix.
    return _Frame(
        norm[None, None],
        lambda z: (jnp.sum(z * residual) * inverse)[None],
        lambda c: (c[0] * inverse) * residual,
    )


def _signal_space(residual: jax.Array, basis: jax.Array, strengths: jax.Array) -> _Frame:
    """All V* B V*^T with symmetric B, and the part of fitted - A* that is orthogonal to them."""
    rank = basis.shape[1]
    seen = basis.T @ residual @ basis
    outside = residual - basis @ seen @ basis.T
    # A remainder of rounding errors is neither symmetric nor orthogonal to the first space, so it counts as zero.
    negligible = 100 * jnp.finfo(residual.dtype).eps * jnp.max(jnp.abs(residual))
    outside = jnp.where(jnp.max(jnp.abs(outside)) > negligible, outside, 0)
    norm, inverse = _norm_and_inverse(outside)
    inside = jax.vmap(lambda strength: symmetric_gaussian.pack(seen - strength))(strengths)

    def project(z: jax.Array) -> jax.Array:
        block = basis.T @ z @ basis
        return jnp.append(symmetric_gaussian.pack((block + block.T) / 2), jnp.sum(z * outside) * inverse)

    def expand(c: jax.Array) -> jax.Array:
        return basis @ symmetric_gaussian.unpack(c[:-1], rank) @ basis.T + (c[-1] * inverse) * outside

    return _Frame(jnp.column_stack([inside, jnp.full(len(inside), norm)]), project, expand)


def _wishart_sums(normals: jax.Array, coefficients: jax.Array, counts: jax.Array) -> tuple[jax.Array, jax.Array]:
    """sum_g Omega_g w_g and sum_g w_g^T Omega_g w_g for Omega_g ~ Wishart(counts_g, I), by Bartlett's factor.

    A group with fewer samples than dimensions has a factor with as many columns as samples, so any count is exact.
    """
    size = coefficients.shape[1]
    freedom = counts[:, None] - np.arange(size)
    squares = chi_squares(normals[..., size:], jnp.maximum(freedom, 1))
    factor = jnp.where(np.eye(size, dtype=bool), jnp.sqrt(squares)[:, None, :], jnp.tril(normals[..., :size], -1))
    return _sums(jnp.where(freedom[:, None, :] > 0, factor, 0), coefficients)


def _sums(factor: jax.Array, coefficients: jax.Array) -> tuple[jax.Array, jax.Array]:
    inner = jnp.einsum("gji,gj->gi", factor, coefficients)
    return jnp.einsum("gji,gi->j", factor, inner), jnp.sum(jnp.square(inner))


def law(problem: MatrixSensing, ensemble: Ensemble, noise_variance: ArrayLike | None = None) -> Oracle:
    """The gradient over fresh measurements, drawn from its exact law.

    For one group of m samples with residual W:

        G = (S/m) W + (||W|| sqrt(S) / m) (Z - <Z, W'> W'),    S ~ chi^2_m,  W' = W / ||W||

    Args:
        problem: A* and the spurious subspace.
        ensemble: the measurement ensemble Z is drawn from.
        noise_variance: variance of the label noise; None: no noise, and no random numbers spent on it.

    Example, a large batch is close to the `population`:
        >>> from holdfast.sensing.ensembles import gaussian
        >>> from holdfast.sensing.environments import two_point
        >>> problem = MatrixSensing(*map(jnp.asarray, ([[1.0], [0.0]], [1.0], [[0.0], [1.0]])), two_point(1.0, 6.0))
        >>> batch = Batch(jnp.array([[[7.0]]]), jnp.array([1e6]))
        >>> gradient = jax.jit(law(problem, gaussian))(jax.random.key(0), jnp.zeros((2, 2)), batch)
        >>> jnp.abs(gradient).round(1).tolist()
        [[1.0, 0.0], [0.0, 7.0]]
    """

    def gradient(key: jax.Array, fitted: jax.Array, batch: Batch) -> jax.Array:
        dimension, dtype = problem.dimension, fitted.dtype
        residual = fitted - problem.invariant_matrix
        groups = len(batch.strengths)
        frame = (
            _line(residual - problem.spurious_matrix(batch.strengths[0]))
            if groups == 1
            else _signal_space(residual, problem.spurious_basis, batch.strengths)
        )
        coefficients = frame.coefficients
        if noise_variance is not None:
            noise = jnp.full((groups, 1), -jnp.sqrt(jnp.asarray(noise_variance, dtype)))
            coefficients = jnp.concatenate([coefficients, noise], 1)
        counts = batch.counts
        # A group of one sample is a vector: Omega_g = g g^T.
        shape = (*coefficients.shape, 1 if counts is None else coefficients.shape[1] + CHI_SQUARE_NORMALS)
        coordinates, normals = several_normals(key, ((ensemble.size(dimension),), shape), dtype)
        z = ensemble.unpack(coordinates, dimension)
        sums, squares = _sums(normals, coefficients) if counts is None else _wishart_sums(normals, coefficients, counts)
        length = jnp.sqrt(squares)
        inside = sums[: frame.coefficients.shape[1]] - length * frame.project(z)
        return frame.expand(inside / batch.size) + (length / batch.size) * z

    return gradient
