from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq

from holdfast.core.linear_algebra import orthonormal_frame
from holdfast.sensing import matrix_sensing
from holdfast.sensing.deviations import NORMAL, UNIFORM
from holdfast.sensing.environments import Deviation, continuum, gaussian, table, two_point, uniform
from holdfast.theory import (
    exponents,
    matrix_exponents,
    stationary_shares,
    top_exponent,
    two_point_exponent,
    two_point_threshold,
)
from holdfast.theory.lyapunov import (
    draw_strengths,
    largest_product_exponents,
    mean_logarithm,
    product_exponents,
    quadrature,
    with_restoring_force,
)
from holdfast.theory.strengths import diagonalised, extremes


@pytest.mark.parametrize(("step_size", "bias", "heterogeneity"), [(0.05, 1.0, 5.0), (0.2, -0.5, 9.0), (0.01, 2.0, 0.0)])
def test_exponent_is_the_mean_of_the_logarithm(step_size, bias, heterogeneity):
    factors = 1 + step_size * (bias + heterogeneity * np.array([-1, 1]))
    expected = np.mean(np.log(np.abs(factors)))
    assert two_point_exponent(step_size, bias, heterogeneity) == pytest.approx(expected)
    assert exponents(two_point(bias, heterogeneity), step_size) == pytest.approx([expected], rel=1e-5)


def test_exponent_vanishes_at_the_threshold():
    threshold = two_point_threshold(0.05, 1.0)
    assert threshold == pytest.approx(6.40, abs=0.005)
    assert two_point_exponent(0.05, 1.0, threshold) == pytest.approx(0, abs=1e-12)
    assert two_point_exponent(0.05, 1.0, two_point_threshold(0.05, 1.0, 0.01)) == pytest.approx(0.01)


@pytest.mark.parametrize("deviation", [UNIFORM, NORMAL], ids=["uniform", "normal"])
@pytest.mark.parametrize(
    ("centre", "spread"), [(1.05, 0.3), (1.05, 5e-4), (1.05, 3.0), (0.0, 2.0), (0.3, 0.3), (1.0, 0.051), (1.0, 0.0499)]
)
def test_closed_forms_equal_quadrature(deviation, centre, spread):
    # Both sides of the switch to a series (0.05 for the normal law) are among the cases.
    assert mean_logarithm(deviation, centre, spread) == pytest.approx(quadrature(deviation, centre, spread), abs=1e-11)


LAWS = {
    "laplace": lambda p: -np.sign(p - 0.5) * np.log(1 - 2 * np.abs(p - 0.5)),
    "exponential": lambda p: -np.log1p(-np.asarray(p)) - 1,  # not symmetric
    "triangular": lambda p: np.where(p < 0.5, np.sqrt(2 * p) - 1, 1 - np.sqrt(2 * (1 - np.asarray(p)))),
}


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize(("centre", "spread"), [(1.05, 0.2), (1.05, 3.0), (-0.7, 0.5), (-2.0, 30.0), (0.1, 0.05)])
def test_quadrature_agrees_with_scipy(name, centre, spread):
    def argument(probability):
        return centre + spread * float(LAWS[name](np.asarray(probability)))

    ends = [0.0, 0.5, 1.0]
    if argument(1e-14) < 0 < argument(1 - 1e-14):
        ends = sorted([*ends, brentq(argument, 1e-14, 1 - 1e-14, xtol=1e-16)])
    expected = sum(quad(lambda p: np.log(abs(argument(p))), *piece, limit=200)[0] for piece in pairwise(ends))
    assert mean_logarithm(Deviation(UNIFORM.draw, LAWS[name]), centre, spread) == pytest.approx(expected, abs=1e-9)


def test_no_spread_is_the_plain_logarithm():
    assert mean_logarithm(NORMAL, [0.5, 2.0], 0.0) == pytest.approx(np.log([0.5, 2.0]))


@pytest.mark.parametrize("law", [uniform(0.5, 7.0), gaussian(0.5, 7.0)], ids=["uniform", "gaussian"])
def test_exponents_are_those_of_drawn_strengths(law):
    draws = 100_000
    strengths = np.asarray(
        law.location[0, 0] + law.scale[0, 0] * law.deviation.quantile((np.arange(draws) + 0.5) / draws)
    )
    for step_size in (0.02, 0.3):
        # The midpoint rule misses log 1 / n at the singularity.
        expected = np.mean(np.log(np.abs(1 + step_size * strengths)))
        assert exponents(law, step_size)[0] == pytest.approx(expected, abs=3e-4)


def test_a_law_of_ones_own_goes_by_quadrature():
    triangular = Deviation(lambda key, shape: UNIFORM.draw(key, (2, *shape)).mean(0), LAWS["triangular"])
    grid = triangular.quantile((np.arange(200_000) + 0.5) / 200_000)
    law = continuum(triangular, 1.0, 4.0)
    assert exponents(law, 0.1)[0] == pytest.approx(np.mean(np.log(np.abs(1.1 + 0.4 * grid))), abs=1e-6)


def test_strengths_with_a_common_eigenbasis_are_made_diagonal():
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    values = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]])
    law = table(np.stack([turn @ np.diag(row) @ turn.T for row in values]))
    expected = np.sort(np.mean(np.log(np.abs(1 + 0.1 * values)), 0))
    assert np.sort(exponents(law, 0.1)) == pytest.approx(expected)


def test_matrix_exponents_agree_with_the_exact_ones():
    """Commuting strengths: each interval of 95 % is widened to 99.9 % for the two of them."""
    law = two_point(1.0, 6.0, rank=2, off_diagonal=0.5)
    exact = np.sort(exponents(law, 0.05))[::-1]
    for estimate, value in zip(matrix_exponents(law, 0.05, steps=4000), exact, strict=True):
        assert abs(estimate.value - value) < 3.3 / 1.96 * (estimate.high - estimate.value)


def test_matrix_exponents_sum_to_the_mean_logarithm_of_the_determinant():
    strengths = np.array([[[2.0, 1.5], [1.5, -1.0]], [[-3.0, 0.7], [0.7, 1.0]], [[1.0, -2.0], [-2.0, 4.0]]])
    law = table(strengths)
    assert diagonalised(law) is None
    expected = np.linalg.slogdet(np.eye(2) + 0.1 * strengths)[1].mean()
    found = matrix_exponents(law, 0.1, steps=4000)
    error = sum(estimate.high - estimate.value for estimate in found)
    assert sum(estimate.value for estimate in found) == pytest.approx(expected, abs=1.7 * error)
    assert top_exponent(law, 0.1, steps=4000) == found[0]
    with pytest.raises(ValueError, match="commute"):
        exponents(law, 0.1)


def test_one_vector_finds_the_largest_exponent_of_the_frame():
    """The first direction is cut off from the other two, which grow faster."""
    strengths = np.zeros((3, 3, 3))
    strengths[:, 0, 0] = [-5.0, -4.0, -3.0]
    strengths[:, 1:, 1:] = [[[2.0, 1.5], [1.5, -1.0]], [[-3.0, 0.7], [0.7, 1.0]], [[1.0, -2.0], [-2.0, 4.0]]]
    drawn = draw_strengths(table(strengths), steps=1000, chains=64)
    step_sizes = np.array([0.02, 0.05, 0.1])
    expected = [product_exponents(drawn, step_size)[0].value for step_size in step_sizes]
    assert largest_product_exponents(drawn, step_sizes) == pytest.approx(expected, abs=2e-3)


def test_bounds_of_a_law_that_is_not_symmetric():
    lopsided = lambda p: 3 * p - 1.5 + p**2 - 1 / 3  # noqa: E731
    law = continuum(Deviation(lambda key, shape: lopsided(jax.random.uniform(key, shape)), lopsided), 1.0, 2.0)
    assert extremes(law) == pytest.approx((1 - 2 * (1.5 + 1 / 3), 1 + 2 * (2.5 - 1 / 3)))


def test_an_interval_needs_two_chains():
    with pytest.raises(ValueError, match="at least 2 for an interval, got 2000 and 1"):
        matrix_exponents(two_point(1.0, 6.0, rank=2), 0.05, chains=1)


def test_stationary_share_solves_its_equation():
    step_size, bias, heterogeneity = 0.05, 1.0, 3.0
    law = two_point(bias, heterogeneity)
    (share,) = stationary_shares(law, step_size)
    assert share == pytest.approx(bias - (np.sqrt(1 + (step_size * heterogeneity) ** 2) - 1) / step_size)
    assert exponents(with_restoring_force(law, share), step_size) == pytest.approx([0], abs=1e-9)
    assert stationary_shares(two_point(1.0, 8.0), step_size) == pytest.approx([0])


def test_overlap_weakens_the_strengths_that_are_left():
    """The step on the complement of U*, written out with full matrices: by 1 - overlap^2, as phase diagrams have it."""
    law = table([[2.0, -1.0], [-3.0, 1.0]])
    problem = matrix_sensing(orthonormal_frame(6, 4, seed=3), 2, law, overlap=0.4)
    outside = np.eye(6) - np.asarray(problem.invariant_basis @ problem.invariant_basis.T)
    for strength in np.asarray(law.strengths):
        full = outside @ np.asarray(problem.spurious_matrix(jnp.asarray(strength))) @ outside
        largest = np.sort(np.abs(np.linalg.eigvalsh(full)))[-2:]
        assert np.sort(np.abs(np.diag(strength))) * (1 - 0.4**2) == pytest.approx(largest, abs=1e-5)
