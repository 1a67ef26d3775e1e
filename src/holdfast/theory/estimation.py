"""The problem behind measurements: invariant and spurious signals estimated from X, y and environment labels."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from holdfast.core.linear_algebra import joint_diagonalisation, pack_symmetric, symmetrised, unpack_symmetric
from holdfast.core.validation import require
from holdfast.sensing.environments import FiniteEnvironments
from holdfast.sensing.problem import MatrixSensing

# A singular value counts as a signal when it exceeds what noise alone reaches on average by this many standard
# deviations: the norm moves by at most as much as the entries, so noise passes with a probability below e^(-3.5^2 / 2).
SAFETY = 3.5
# The estimate is refined until a pass explains less than this share more, at most this many times.
SETTLED, PASSES = 1e-3, 60
# Measurements whose scale is within this of one are taken to be those of the theory.
UNIT_SCALE = 0.02
# Passes over the measurements go by blocks of this many bytes.
BLOCK_BYTES = 2**26


class Estimated(NamedTuple):
    """A matrix sensing problem that explains the data, and how well it is known.

    Attributes:
        problem: with one environment for each label. The invariant rank may be 0.
        labels: of the environments, in the order of the strengths.
        counts: measurements of each environment.
        residual: root mean square of what the estimate leaves unexplained, per environment.
        standard_error: of an entry of S(e), per environment.
        scale: root mean square of <X, M> for a unit M, by which X and y were divided; 1 in the theory.
        signed: whether the invariant signal has negative eigenvalues, which U U^T cannot fit.

    Example, an invariant signal alone:
        >>> random = np.random.default_rng(0)
        >>> x, e = random.standard_normal((4000, 6, 6)), np.repeat(["a", "b"], 2000)
        >>> found = estimate(x, x[:, 0, 0], e)
        >>> found.problem.invariant_rank, found.problem.spurious_rank, found.counts
        (1, 0, (2000, 2000))
    """

    problem: MatrixSensing
    labels: tuple
    counts: tuple[int, ...]
    residual: np.ndarray
    standard_error: np.ndarray
    scale: float
    signed: bool


def estimate(measurements: ArrayLike, responses: ArrayLike, environment: ArrayLike) -> Estimated:
    """Estimate A*, V* and S(e) from measurements y = <X, A* + A(e)> + noise, without knowing any rank.

    1. The moment estimator (1/m) sum y X of each A_e = A* + A(e) errs by ||A_e|| / sqrt(m) in every entry. What lies in
       the common column space of all environments, above the noise, is taken as B, and the moments of what it leaves
       unexplained are added: B + (1/m) sum (y - <X, B>) X. Repeated, this removes the error that the signal itself
       causes; only that of label noise stays.
    2. The varying space V* is that of the differences between environments.
    3. The mean outside of V* is (U* without V*) times its transpose, and the block between the two gives the part of U*
       in V*: so A* is known even if the subspaces overlap, and S(e) = V*^T (A_e - A*) V*.

    Ranks are the numbers of singular values above what noise alone would reach.

    Args:
        measurements: X, (n, d, d), isotropic: E <X, M> X = c M for symmetric M, as Gaussian entries are.
        responses: y, (n,).
        environment: a label for each measurement.

    Example:
        >>> random = np.random.default_rng(0)
        >>> x, e = random.standard_normal((4000, 6, 6)), np.repeat(["a", "b"], 2000)
        >>> y = x[:, 0, 0] + np.where(e == "a", -4.0, 6.0) * x[:, 1, 1]
        >>> found = estimate(x, y, e)
        >>> found.problem.invariant_rank, found.problem.spurious_rank
        (1, 1)
        >>> np.asarray(found.problem.environments.strengths).ravel().round(3).tolist()
        [-4.0, 6.0]
    """
    coordinates, y, labels, codes = _checked(measurements, responses, environment)
    scale = _isotropic_scale(coordinates)
    groups = [codes == number for number in range(len(labels))]
    matrices, residual = _explained(
        [coordinates[rows] / scale for rows in groups], [y[rows] / scale for rows in groups]
    )
    counts = np.array([rows.sum() for rows in groups])
    standard_error = residual / np.sqrt(counts)
    problem, signed = _decomposed(matrices, standard_error)
    return Estimated(problem, labels, tuple(counts.tolist()), residual, standard_error, scale, signed)


def noise_level(rows: int, blocks: int, errors: np.ndarray) -> float:
    """A bound on the largest singular value of `blocks` symmetric noise matrices side by side.

    Coordinates in an orthonormal basis have the standard deviation tau, so entries off the diagonal tau / sqrt(2):
    (sqrt(k) + sqrt(b k)) tau / sqrt(2) on average for b blocks of size k, and a few tau of fluctuation.

    Args:
        rows: k.
        blocks: b.
        errors: tau of each block; the root mean square is taken.
    """
    tau = float(np.sqrt(np.mean(np.square(errors))))
    return tau * ((np.sqrt(rows) + np.sqrt(blocks * rows)) / np.sqrt(2) + SAFETY)


def _checked(measurements: ArrayLike, responses: ArrayLike, environment: ArrayLike):
    """Packed coordinates, responses, labels and their codes; raises an error for data that cannot be used."""
    x = measurements if hasattr(measurements, "dtype") else np.asarray(measurements)  # what is in a file stays there
    y, labels = np.asarray(responses), np.asarray(environment)
    shape, kind = np.shape(x), x.dtype
    square = len(shape) == 3 and shape[1] == shape[2] and 0 not in shape and np.issubdtype(kind, np.number)
    contract = "X must be square matrices, shape (n, d, d) with n at least 1"
    require(square, contract, f"{kind} of shape {shape}")
    for name, values in (("y", y), ("environment", labels)):
        contract = f"{name} must have one entry for each of {shape[0]} measurements"
        require(values.shape == (shape[0],), contract, f"shape {values.shape}")
    require(np.issubdtype(y.dtype, np.number), "y must hold numbers", y.dtype)
    found, codes = np.unique(labels, return_inverse=True)
    counts = np.bincount(codes)
    contract = f"each environment must have at least 2 d = {2 * shape[1]} measurements"
    require(bool(counts.min() >= 2 * shape[1]), contract, f"{counts.min()} in {found[np.argmin(counts)]!s}")
    coordinates = np.concatenate([pack_symmetric(symmetrised(np.asarray(block, float))) for block in blocks(x, shape)])
    for name, values in (("X", coordinates), ("y", y)):
        require(bool(np.isfinite(values).all()), f"{name} must hold finite numbers", "NaN or infinity")
    return coordinates, y.astype(float), tuple(found.tolist()), codes


def blocks(measurements: Any, shape: tuple[int, ...]) -> Iterator[Any]:
    """Slices, so that measurements in a file need never be in memory as whole matrices."""
    rows = max(1, BLOCK_BYTES // (8 * shape[1] ** 2))
    return (measurements[begin : begin + rows] for begin in range(0, shape[0], rows))


def _isotropic_scale(coordinates: np.ndarray) -> float:
    """Root mean square of the coordinates; raises an error for measurements that are not centred and isotropic."""
    count = len(coordinates)
    scale = float(np.sqrt(np.mean(coordinates**2)))
    require(scale > 0, "X must not vanish", "only zeros")
    # Means have the deviation scale / sqrt(n), mean squares sqrt(2 / n) of themselves for normal entries; ten of those
    # are far beyond chance, also for entries with heavier tails.
    means = np.abs(coordinates.mean(0)).max() / scale
    squares = np.abs(np.mean(coordinates**2, 0) / scale**2 - 1).max()
    if means > 10 / np.sqrt(count) or squares > 10 * np.sqrt(2 / count):
        raise ValueError(
            "X must be centred and isotropic (E <X, M> X = c M, as for Gaussian entries), got a mean of up to "
            f"{means:.3g} and mean squares that differ by up to {squares:.3g} of their size; products x x^T and "
            "entries of unequal scale are not isotropic"
        )
    return 1.0 if abs(scale - 1) < UNIT_SCALE else scale


def _explained(coordinates: list[np.ndarray], responses: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The debiased moment estimates of all A_e, (E, d, d), and the root mean square of what is left, (E,)."""
    count = len(responses)
    signal = unpack_symmetric(np.zeros((count, coordinates[0].shape[1])))
    previous = np.full(count, np.inf)
    for _ in range(PASSES):
        left = [y - x @ matrix for x, y, matrix in zip(coordinates, responses, pack_symmetric(signal), strict=True)]
        residual = np.array([np.sqrt(np.mean(errors**2)) for errors in left])
        errors = residual / np.sqrt([len(y) for y in responses])
        moments = np.stack([e @ x / len(e) for x, e in zip(coordinates, left, strict=True)])
        matrices = signal + unpack_symmetric(moments)
        if (residual > (1 - SETTLED) * previous).all():
            break
        previous = residual
        # Where nothing is left to explain, all environments count equally.
        least = np.finfo(float).eps * np.abs(matrices).max() + np.finfo(float).tiny
        space = _signal_space(matrices, np.maximum(errors, least))
        projection = space @ space.T
        signal = projection @ matrices @ projection
    return matrices, residual


def _signal_space(matrices: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Orthonormal columns that span what rises above noise in the matrices side by side, each in units of its error."""
    count, dimension = matrices.shape[:2]
    stacked = np.concatenate(list(matrices / errors[:, None, None]), 1)
    vectors, values, _ = np.linalg.svd(stacked, full_matrices=False)
    return vectors[:, values > noise_level(dimension, count, np.ones(1))]


def _decomposed(matrices: np.ndarray, errors: np.ndarray) -> tuple[MatrixSensing, bool]:
    """Invariant and spurious parts of the matrices A_e, with entries known up to `errors`."""
    errors = np.maximum(errors, 1e-9 * np.abs(matrices).max())  # rounding counts as noise
    # Signals live in few dimensions. There, noise reaches less, and weak differences are seen.
    space = _signal_space(matrices, errors)
    small = space.T @ matrices @ space
    size = small.shape[1]
    mean = small.mean(0)
    differences = np.concatenate(list(small - mean), 1)
    vectors, values, _ = np.linalg.svd(differences) if size else (np.eye(0), np.zeros(0), None)
    varying = vectors[:, : int((values > noise_level(size, len(matrices), errors)).sum())]
    invariant, signed = _invariant_part(mean, varying, noise_level(size, 1, errors / np.sqrt(len(matrices))))
    strengths = varying.T @ (small - invariant) @ varying
    basis = joint_diagonalisation(strengths)
    spectrum, directions = _low_rank(invariant)
    environments = _environments(basis.T @ strengths @ basis, errors)
    invariant_basis, spurious_basis = jnp.asarray(space @ directions), jnp.asarray(space @ varying @ basis)
    return MatrixSensing(invariant_basis, jnp.asarray(spectrum), spurious_basis, environments), signed


def _invariant_part(mean: np.ndarray, varying: np.ndarray, noise: float) -> tuple[np.ndarray, bool]:
    """A* from the mean of all A_e and the varying space; whether it has negative eigenvalues."""
    outside = np.eye(len(mean)) - varying @ varying.T
    values, vectors = np.linalg.eigh(outside @ mean @ outside)
    found = np.abs(values) > noise
    signed = bool((values[found] < 0).any())
    # U* = K + V*(V*^T U*), with K its part outside: mean K-directions give V*^T U* divided by the size of K.
    size, sign = np.sqrt(np.abs(values[found])), np.sign(values[found])
    factor = vectors[:, found] * size + varying @ (varying.T @ mean @ vectors[:, found]) * (sign / size)
    return (factor * sign) @ factor.T, signed


def _low_rank(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The eigenvalues that differ from zero, largest first, and their vectors."""
    values, vectors = np.linalg.eigh(matrix)
    found = np.flatnonzero(np.abs(values) > 1e-8 * np.abs(values).max(initial=0))[::-1]
    return values[found], vectors[:, found]


def _environments(strengths: np.ndarray, errors: np.ndarray) -> FiniteEnvironments:
    """Equally likely environments with these strengths.

    Entries off the diagonal that noise alone explains are set to zero: strengths commute unless the data contradict it.
    """
    # An entry errs by what A_e errs, and A* about as much.
    noise = np.abs(strengths) <= SAFETY * np.sqrt(2) * errors[:, None, None]
    by_noise = noise.all(0) & ~np.eye(strengths.shape[1], dtype=bool)
    return FiniteEnvironments(
        symmetrised(np.where(by_noise, 0.0, strengths)), np.full(len(strengths), 1 / len(strengths))
    )
