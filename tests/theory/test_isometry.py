import numpy as np
import pytest

from holdfast.theory.assumptions import (
    error_tensor,
    isometry_constant,
    isometry_deviations,
    nearest_of_rank,
    random_of_rank,
)
from holdfast_studies.papers.isometry_lemmas import (
    antisymmetric_deviation,
    largest_error_product,
    lemma_ratios,
    planar_same_rank_ratio,
    symmetric_measurements,
    truncated_rank_one_deviation,
)


@pytest.fixture(scope="module")
def measurements():
    return symmetric_measurements(np.random.default_rng(0), 1500, 6)


def test_measurements_are_isometric_on_average():
    """<X, M> is N(0, 1) for a unit symmetric M; the variance of its square is 2."""
    random = np.random.default_rng(1)
    matrix = random_of_rank(random, 1, 5, 3)[0]
    squares = np.einsum("mij,ij->m", symmetric_measurements(random, 40_000, 5), matrix) ** 2
    assert abs(squares.mean() - 1) < 4 * np.sqrt(2 / 40_000)


def test_tensor_and_operator_agree(measurements):
    matrices = random_of_rank(np.random.default_rng(2), 4, 6, 3)
    products = np.einsum("mij,nij->nm", measurements, matrices)
    errors = np.einsum("nm,mij->nij", products, measurements) / len(measurements) - matrices
    direct = np.abs(np.einsum("nij,nij->n", errors, matrices))
    assert isometry_deviations(error_tensor(measurements), matrices) == pytest.approx(direct, abs=1e-12)
    assert np.abs((products**2).mean(1) - 1) == pytest.approx(direct, abs=1e-12)


def test_nearest_matrix_keeps_the_largest_eigenvalues():
    matrix = np.diag([3.0, -4.0, 1.0])
    assert nearest_of_rank(matrix, 2) == pytest.approx(np.diag([0.6, -0.8, 0.0]))


def test_search_at_full_rank_finds_the_largest_eigenvalue(measurements):
    """Without a constraint on the rank the constant is known: the largest absolute eigenvalue of the error."""
    tensor = error_tensor(measurements)
    exact = np.abs(np.linalg.eigvalsh(tensor)).max()
    assert isometry_constant(tensor, 6, np.random.default_rng(3), iterations=300) == pytest.approx(exact, rel=1e-3)


def test_search_finds_more_than_chance_and_grows_with_the_rank(measurements):
    random = np.random.default_rng(4)
    tensor = error_tensor(measurements)
    found = [isometry_constant(tensor, rank, random) for rank in (1, 2, 4)]
    assert found == sorted(found)
    for rank, constant in zip((1, 2, 4), found, strict=True):
        assert isometry_deviations(tensor, random_of_rank(random, 500, 6, rank)).max() < constant


def test_lemmas_hold_with_the_isometry_at_twice_the_rank(measurements):
    random = np.random.default_rng(5)
    tensor = error_tensor(measurements)
    delta = isometry_constant(tensor, 4, random, iterations=100)
    assert all(ratio < 1 for ratio in lemma_ratios(measurements, delta, 2, random).values())
    by_rank = [largest_error_product(tensor, *ranks, random) for ranks in ((1, 1), (1, 2), (2, 2))]
    assert by_rank == sorted(by_rank)
    assert by_rank[-1] < delta


def test_antisymmetric_matrices_are_not_seen(measurements):
    assert antisymmetric_deviation(measurements) == 1


def test_same_rank_does_not_suffice_for_lemma_1():
    """In the basis of diag(1, 1), diag(1, -1) and the off-diagonal: E = diag(a, -a, -a) vanishes on every u u^T."""
    root = np.sqrt(0.5)
    basis = [np.diag([root, root]), np.diag([root, -root]), np.array([[0, root], [root, 0]])]
    # Three measurements with (1/3) sum <X_i, M>^2 = 1.5 |M_1|^2 + 0.5 (|M_2|^2 + |M_3|^2).
    measurements = np.stack(
        [np.sqrt(3 * weight) * matrix for weight, matrix in zip((1.5, 0.5, 0.5), basis, strict=True)]
    )
    assert planar_same_rank_ratio(measurements) > 1e6
    with pytest.raises(ValueError, match="2 x 2"):
        planar_same_rank_ratio(np.zeros((3, 4, 4)))


def test_rank_one_measurements_average_to_twice_the_matrix_plus_its_trace():
    """Without truncation the deviation is sampling error alone: g^4 has variance 96, and halves it per fourfold m."""
    count = 200_000
    features = np.random.default_rng(6).standard_normal((count, 3))
    matrix = np.diag([1.0, 0, 0])
    # 9 entries, each with a standard error of at most sqrt(96 / m): the norm is below 3 times 4 of them.
    assert truncated_rank_one_deviation(features, matrix, np.inf) < 12 * np.sqrt(96 / count)


def test_truncation_costs_the_tail_of_the_fourth_moment():
    """E g^4 1(g^2 > R) = 2 ((a^3 + 3 a) phi(a) + 3 Q(a)) with a^2 = R, in the direction of A = u u^T."""
    count, radius = 400_000, np.log(100)
    features = np.random.default_rng(7).standard_normal((count, 2))
    grid = np.linspace(np.sqrt(radius), 12, 200_001)
    tail = 2 * np.trapezoid(grid**4 * np.exp(-(grid**2) / 2) / np.sqrt(2 * np.pi), grid)
    assert tail == pytest.approx(1.40, abs=0.01)
    deviation = truncated_rank_one_deviation(features, np.diag([1.0, 0]), radius)
    assert abs(deviation - tail) < 8 * np.sqrt(96 / count)
