"""Assumptions 1 to 3 of Xu, Gu and Fang (NeurIPS 2024), checked on a problem and on its measurements.

The paper leaves its universal constants open. Here they are one, and each check says by how much it holds or fails, so
that a reader with other constants in mind can judge.

Assumption 3 is the restricted isometry of appendix A.1, looked for by search over symmetric matrices: the measurements
of the theory are symmetric, and <X, M> = 0 for every antisymmetric M, so that no isometry holds for those.
"""

from typing import NamedTuple

import numpy as np

from holdfast.core.linear_algebra import pack_symmetric, symmetric_dimension, symmetrised, unpack_symmetric
from holdfast.sensing.environments import Environments, FiniteEnvironments
from holdfast.sensing.problem import MatrixSensing
from holdfast.theory.strengths import deviation_bounds, diagonal_entries, possible


def error_tensor(measurements: np.ndarray) -> np.ndarray:
    """The error operator E(M) = (1/m) sum_i <X_i, M> X_i - M of symmetric measurements (eq. 20), as a matrix.

    It acts on the d (d + 1) / 2 coordinates of symmetric matrices in an orthonormal basis.
    """
    coordinates = pack_symmetric(symmetrised(measurements))
    return coordinates.T @ coordinates / len(coordinates) - np.eye(coordinates.shape[1])


def nearest_of_rank(matrices: np.ndarray, rank: int) -> np.ndarray:
    """The nearest symmetric matrices of this rank, scaled to unit Frobenius norm."""
    values, vectors = np.linalg.eigh(symmetrised(matrices))
    largest = np.sort(np.abs(values), -1)[..., -rank][..., None]
    truncated = np.where(np.abs(values) >= largest, values, 0.0)
    truncated = truncated / np.linalg.norm(truncated, axis=-1, keepdims=True)
    return (vectors * truncated[..., None, :]) @ vectors.swapaxes(-1, -2)


def random_of_rank(random: np.random.Generator, count: int, dimension: int, rank: int) -> np.ndarray:
    """Random symmetric matrices of a rank and of unit Frobenius norm, with eigenvalues of both signs."""
    vectors = np.linalg.qr(random.standard_normal((count, dimension, rank)))[0]
    values = random.standard_normal((count, rank))
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    return (vectors * values[:, None, :]) @ vectors.swapaxes(1, 2)


def apply(tensor: np.ndarray, matrices: np.ndarray) -> np.ndarray:
    """E(M) of each of the matrices, for E of `error_tensor`."""
    # Not a product of the linear algebra library: for so little work its threads cost more than they save.
    return unpack_symmetric(np.einsum("ni,ij->nj", pack_symmetric(matrices), tensor))


def inner(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """<A, B> of each pair of matrices."""
    return np.einsum("nij,nij->n", left, right)


def isometry_deviations(tensor: np.ndarray, matrices: np.ndarray) -> np.ndarray:
    """|(1/m) sum <X_i, M>^2 - ||M||_F^2| for each of the matrices."""
    return np.abs(inner(apply(tensor, matrices), matrices))


def isometry_constant(
    tensor: np.ndarray, rank: int, random: np.random.Generator, *, starts: int = 8, iterations: int = 40
) -> float:
    """A lower bound of the restricted isometry constant delta of Definition 1 (eq. 8), by search.

    From each random start it climbs the deviation in both directions. With a shift c that makes +-E + c positive,
    M <- nearest_of_rank((+-E + c) M) maximises a tangent from below of a convex function, so it never descends.

    Args:
        tensor: the error operator, from `error_tensor`.
        rank: s.
        random: for the starts.
        starts: number of random matrices to climb from.
        iterations: steps of the ascent.
    """
    dimension = symmetric_dimension(len(tensor))
    ends = np.linalg.eigvalsh(tensor)[[0, -1]]
    best = 0.0
    for sign in (-1.0, 1.0):
        shift = max(0.0, -float((sign * ends).min()))
        matrices = random_of_rank(random, starts, dimension, rank)
        for _ in range(iterations):
            matrices = nearest_of_rank(sign * apply(tensor, matrices) + shift * matrices, rank)
        best = max(best, float(isometry_deviations(tensor, matrices).max()))
    return best


# Above this dimension the d^4 / 4 entries of the error operator are too many for the search.
LARGEST_SEARCH = 64


class Check(NamedTuple):
    """One condition of an assumption.

    Attributes:
        name: assumption and letter or equation.
        statement: what it asks for.
        value: what was found.
        limit: the value it has to stay below.
        note: what the comparison does and does not say.
    """

    name: str
    statement: str
    value: float
    limit: float
    note: str = ""

    @property
    def holds(self) -> bool:
        """Whether the value stays below the limit."""
        return bool(self.value <= self.limit)


def check_assumptions(problem: MatrixSensing, measurements: np.ndarray | None = None) -> list[Check]:
    """All conditions that can be checked, with universal constants of one.

    Args:
        problem: with at least one invariant and one spurious direction.
        measurements: X of one environment, (m, d, d), for Assumption 3, which is not checked without them.

    Example:
        >>> from holdfast.sensing.environments import two_point
        >>> from holdfast.core.linear_algebra import orthonormal_frame
        >>> from holdfast.sensing import matrix_sensing
        >>> problem = matrix_sensing(orthonormal_frame(20, 2), 1, two_point(1.0, 6.0))
        >>> [check.name for check in check_assumptions(problem) if not check.holds]
        ['1 (a)']
    """
    d, r1, r2 = problem.dimension, problem.invariant_rank, problem.spurious_rank
    spectrum = np.asarray(problem.invariant_spectrum, float)
    sizes = np.abs(spectrum)
    overlap = np.linalg.norm(np.asarray(problem.invariant_basis.T @ problem.spurious_basis, float), 2)
    bound, heterogeneity = regularity(problem.environments)
    checks = [
        Check(
            "1 (a)", "log(d)^4 <= min(r1, r2)", float(np.log(d) ** 4), min(r1, r2), "asymptotic: far off in practice"
        ),
        Check("1 (a)", "r1 + r2 <= d", r1 + r2, d),
        Check(
            "1 (b)",
            "A* has equal eigenvalues: condition number 1, up to 5 %",
            float(sizes.max() / sizes.min()),
            1.05,
            "Theorem 8 is about larger ones",
        ),
        Check(
            "1 (b)",
            "A* = U* U*^T has no negative eigenvalue",
            float((spectrum < 0).sum()),
            0,
            "a signed one needs U U^T - V V^T",
        ),
        Check(
            "1 (d)",
            "||U*^T V*|| small: at most that of random subspaces, sqrt((r1 + r2) / d)",
            float(overlap),
            float(np.sqrt((r1 + r2) / d)),
            "the theorem wants it below half the isometry constant",
        ),
        Check("2, eq. 6", "M1 <= M2", bound, heterogeneity, "M1 = sup |S_ii|, M2 = min Var S_ii / (1 + |E S_ii|)"),
        Check(
            "2, eq. 7",
            "diagonal dominance: r2^2 sum_j |S_ij| <= M2^-1.5",
            dominance(problem.environments) * r2**2,
            heterogeneity**-1.5 if heterogeneity > 0 else np.inf,
        ),
    ]
    if measurements is not None and d <= LARGEST_SEARCH:
        rank = min(4 * (r1 + r2), d)
        scale = (heterogeneity * np.log(d)) ** 1.5 * r2**2.5 * np.sqrt(r1 + r2)
        checks.append(
            Check(
                "3",
                f"isometry constant at rank {rank} <= 1 / ((M2 log d)^1.5 r2^2.5 sqrt(r1 + r2))",
                isometry_constant(error_tensor(measurements), rank, np.random.default_rng(0), starts=4, iterations=20),
                1 / scale if scale > 0 else np.inf,
                "a lower bound found by search: above the limit it refutes the assumption, below it proves nothing",
            )
        )
    return checks


def regularity(environments: Environments) -> tuple[float, float]:
    """M1 = sup |S_ii(e)| and M2 = min_i Var S_ii(e) / (1 + |E S_ii(e)|) of Assumption 2 (eq. 6)."""
    if isinstance(environments, FiniteEnvironments):
        found = possible(environments)
        strengths, weights = diagonal_entries(found.strengths), np.asarray(found.probabilities)
        means = weights @ strengths
        variances = weights @ (strengths - means) ** 2
        bound = np.abs(strengths).max()
    else:
        ends = deviation_bounds(environments.deviation)
        means, scale = diagonal_entries(environments.location), diagonal_entries(environments.scale)
        variances = scale**2 * environments.deviation.expectation(np.square)
        # A spread of zero times an unbounded law is still zero.
        reach = [np.multiply(scale, end, where=scale > 0, out=np.zeros_like(scale)) for end in ends]
        bound = np.max(np.abs(means + reach))
    return float(bound), float(np.min(variances / (1 + np.abs(means))))


def dominance(environments: Environments) -> float:
    """sup_e max_i sum_(j != i) |S_ij(e)|, the off-diagonal part of the strengths (eq. 7)."""
    other = 1 - np.eye(environments.rank)
    if isinstance(environments, FiniteEnvironments):
        return float((np.abs(np.asarray(environments.strengths, float)) * other).sum(-1).max())
    widest = float(np.abs(deviation_bounds(environments.deviation)).max())
    scale = np.asarray(environments.scale, float) * other
    reach = np.multiply(scale, widest, where=scale > 0, out=np.zeros_like(scale))  # zero times infinity is zero here
    return float((np.abs(np.asarray(environments.location, float)) * other + reach).sum(-1).max())
