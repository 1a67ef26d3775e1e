"""The strengths that a spurious direction meets: in a common eigenbasis, one by one, drawn, and their bounds."""

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from holdfast.core.names import readable
from holdfast.core.validation import Rule, require
from holdfast.sensing.deviations import Deviation
from holdfast.sensing.environments import ContinuousEnvironments, Environments, FiniteEnvironments

# The continuum is replaced by this many equally likely strengths where no closed form is used: the quantiles at the
# middles of equal parts.
ATOMS = 2**12


def diagonalised(environments: Environments) -> Environments | None:
    """The environments in the common eigenbasis of their strengths, or None if they do not commute."""
    contract = "environments must be the ones that a law makes of bias and heterogeneity, such as two_point(1.0, 6.0)"
    require(isinstance(environments, FiniteEnvironments | ContinuousEnvironments), contract, readable(environments))
    if not isinstance(environments, FiniteEnvironments):
        return environments if _is_diagonal(environments.location) and _is_diagonal(environments.scale) else None
    strengths = np.asarray(environments.strengths, float)
    if _is_diagonal(strengths):
        return environments
    # A mixture with random weights has the common eigenvectors; that two of its eigenvalues coincide by accident, so
    # that other vectors would do as well, has probability zero.
    weights = np.random.default_rng(0).standard_normal(len(strengths))
    basis = np.linalg.eigh(np.einsum("e,eij->ij", weights, strengths))[1]
    rotated = basis.T @ strengths @ basis
    scale = np.abs(strengths).max()
    diagonal = rotated * np.eye(environments.rank)
    return replace(environments, strengths=diagonal) if np.abs(rotated - diagonal).max() < 1e-6 * scale else None


def commuting(environments: Environments) -> Environments:
    """The environments in the common eigenbasis of their strengths; a ValueError if they do not commute."""
    diagonal = diagonalised(environments)
    if diagonal is None:
        raise ValueError(
            "environments must have strengths that commute, got matrices that do not: use matrix_exponents"
        )
    return diagonal


def possible(environments: FiniteEnvironments) -> FiniteEnvironments:
    """The environments that have a positive probability, in double precision."""
    weights = np.asarray(environments.probabilities, float)
    weights = weights / weights.sum()  # probabilities in float32 sum to one only up to their rounding errors
    return FiniteEnvironments(np.asarray(environments.strengths, float)[weights > 0], weights[weights > 0])


def strength_atoms(environments: Environments, direction: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The strengths of one direction and their probabilities; a continuum as many equally likely quantiles."""
    diagonal = commuting(environments)
    check_direction(direction, environments)
    if isinstance(diagonal, FiniteEnvironments):
        found = possible(diagonal)
        return diagonal_entries(found.strengths)[:, direction], np.asarray(found.probabilities)
    location, scale = diagonal_entries(diagonal.location)[direction], diagonal_entries(diagonal.scale)[direction]
    atoms = diagonal.deviation.quantile((np.arange(ATOMS) + 0.5) / ATOMS)
    return location + scale * atoms, np.full(ATOMS, 1 / ATOMS)


def check_direction(direction: int, environments: Environments) -> None:
    """Raise a ValueError unless the environments have a spurious direction of this number."""
    last = environments.rank - 1
    Rule(f"a whole number from 0 to {last}", lambda value: 0 <= value <= last, whole=True).check("direction", direction)


def sample_strengths(environments: Environments, random: np.random.Generator, runs: int) -> np.ndarray:
    """One strength matrix for each of many runs, (r2, r2, runs), with the numbers of NumPy and not of jax."""
    if isinstance(environments, FiniteEnvironments):
        found = possible(environments)
        boundaries = np.cumsum(found.probabilities)[:-1]
        return np.moveaxis(np.asarray(found.strengths), 0, -1)[..., np.searchsorted(boundaries, random.random(runs))]
    rank = environments.rank
    location, scale = (np.asarray(part, float)[..., None] for part in (environments.location, environments.scale))
    own = np.eye(rank, dtype=bool)
    numbers = np.zeros((rank, rank, runs))
    numbers[own] = environments.deviation.quantile(random.random((1 if environments.shared else rank, runs)))
    if scale[~own].any():
        below = np.tril_indices(rank, -1)
        numbers[below] = environments.deviation.quantile(random.random((len(below[0]), runs)))
        numbers[below[::-1]] = numbers[below]
    return location + scale * numbers


def deviation_bounds(deviation: Deviation) -> tuple[float, float]:
    """The least and the largest value of a law; infinite for one without bounds."""
    with np.errstate(divide="ignore"):
        low, high = (float(deviation.quantile(np.asarray(end))) for end in (0.0, 1.0))
    return low, high


def extremes(environments: Environments) -> tuple[float, float]:
    """Bounds of the eigenvalues that S(e) can have; infinite for a law without bounds.

    They are attained by finitely many environments, and by a continuum with one location and scale in all directions.
    """
    if isinstance(environments, FiniteEnvironments):
        values = np.linalg.eigvalsh(np.asarray(possible(environments).strengths))
        return float(values.min()), float(values.max())
    scale = np.abs(np.asarray(environments.scale, float))
    values = np.linalg.eigvalsh(np.asarray(environments.location, float))
    if not scale.any():
        return float(values.min()), float(values.max())
    low, high = deviation_bounds(environments.deviation)
    if not _is_diagonal(scale):  # an entry off the diagonal may push the eigenvalues to either side
        low, high = min(low, -high), max(high, -low)
    # The norm of a symmetric matrix with entries of at most |scale_ij| is at most its largest row sum.
    reach = scale.sum(1).max()
    return float(values.min() + low * reach), float(values.max() + high * reach)


def diagonal_entries(matrices: ArrayLike) -> np.ndarray:
    """The diagonals of a stack of matrices."""
    return np.diagonal(np.asarray(matrices, float), axis1=-2, axis2=-1)


def _is_diagonal(matrices: ArrayLike) -> bool:
    values = np.asarray(matrices)
    return bool((values == values * np.eye(values.shape[-1])).all())
