"""What an order changes: formulas against products, against each other, and against simulations."""

import re
from itertools import permutations

import numpy as np
import pytest

from holdfast import Settings
from holdfast.sensing.environments import gaussian, panel, table, two_point
from holdfast.sensing.simulation import execute
from holdfast.theory import (
    advise_order,
    diagnose,
    exponents,
    log_share,
    order_effect,
    order_exponents,
    order_floor,
    simulate_shares,
)
from holdfast.theory.lyapunov import product_exponents
from holdfast.theory.order import ORDERS, ordered_visits

UNEQUAL = table([-6.0, 1.0, 8.0], [0.4, 0.2, 0.4])
ETA, ALPHA = 0.05, 1e-3


@pytest.mark.parametrize("steps", [0, 3, 5, 13, 200])
@pytest.mark.parametrize("order", ORDERS)
def test_the_law_of_the_logarithm_is_that_of_products(order, steps):
    runs = 4000
    visits = ordered_visits(UNEQUAL, order, steps=steps, runs=runs, seed=1)
    factors = 1 + ETA * np.asarray(UNEQUAL.strengths)[:, 0, 0][visits]
    logarithm = 2 * np.log(ALPHA) + 2 * np.log(np.abs(factors)).sum(0)
    law = order_effect(UNEQUAL, ETA, steps, ALPHA, order=order)
    error = law.deviation / np.sqrt(runs)
    assert abs(logarithm.mean() - law.mean) <= 5 * error + 1e-9
    # The standard error of a standard deviation, for a law no heavier than the normal one.
    assert abs(logarithm.std() - law.deviation) <= 5 * law.deviation / np.sqrt(2 * runs) + 1e-9
    assert law.low - 1e-9 <= logarithm.min() <= logarithm.max() <= law.high + 1e-9


def test_after_whole_cycles_nothing_is_random_and_the_mean_is_that_of_independent_draws():
    walk = log_share(UNEQUAL, ETA, 200, ALPHA)
    for order in ("reshuffled", "cyclic"):
        law = order_effect(UNEQUAL, ETA, 200, ALPHA, order=order)
        assert law.deviation == 0
        assert law.low == pytest.approx(law.high)
        assert law.mean == pytest.approx(walk.mean)
    assert order_effect(UNEQUAL, ETA, 200, ALPHA, order="independent").deviation == pytest.approx(walk.deviation)


def test_the_floor_of_a_reshuffled_order_is_the_mean_over_all_permutations():
    eta, batch = 0.08, 500
    strengths = np.array([-7.0, -1.0, 2.0, 9.0])
    a, kick = (1 + eta * (strengths - 1)) ** 2, eta**2 * strengths**2 / (2 * batch)
    added = []
    for each in permutations(range(4)):
        total = 0.0
        for place in each:
            total = a[place] * total + kick[place]
        added.append(total)
    brute = np.mean(added) / (1 - a.prod())
    assert order_floor(table(strengths), eta, batch, order="reshuffled") == pytest.approx(brute)
    assert order_floor(table(strengths), eta, batch, order="cyclic") == pytest.approx(added[0] / (1 - a.prod()))


@pytest.mark.parametrize("order", ORDERS)
def test_every_spurious_direction_kicks_and_so_do_independent_entries(order):
    """The kicks have the variance of the whole residual: two equal directions double it, other entries do again."""
    one, two = (order_floor(two_point(-0.5, 3.0, rank=rank), ETA, 1000, order=order) for rank in (1, 2))
    assert two == pytest.approx(2 * one)
    gaussian_entries = order_floor(two_point(-0.5, 3.0), ETA, 1000, order=order, ensemble="gaussian")
    assert gaussian_entries == pytest.approx(2 * one)


def test_the_floor_of_two_directions_is_that_of_the_signal_rows():
    """The mean of 4,000 simulated runs, up to four of its errors and kicks that are left out."""
    law = two_point(1.0, 7.0, rank=2, shared=False)
    given = {"order": "reshuffled", "ensemble": "gaussian"}
    seen = simulate_shares(law, ETA, 400, 1e-4, batch_size=20_000, dimension=4, runs=4000, **given)
    floors = [order_floor(law, ETA, 20_000, direction=i, **given) for i in range(2)]
    # The share is the largest eigenvalue of what both have in one column: their sum.
    assert sum(floors) == pytest.approx(seen.mean, rel=4 * seen.spurious.std() / seen.mean / np.sqrt(4000) + 0.05)


def test_the_floor_is_finite_exactly_where_the_exponent_is_negative():
    for heterogeneity in (0.5, 2.0, 6.0, 9.0):
        law = two_point(0.9, heterogeneity)
        shifted = two_point(-0.1, heterogeneity)  # what the aligned part meets: xi - 1
        finite = bool(exponents(shifted, ETA)[0] < 0)
        for order in ("reshuffled", "cyclic"):
            assert np.isfinite(order_floor(law, ETA, 1000, order=order)) == finite
    assert order_floor(two_point(1.0, 7.0), ETA, 1000, order="independent") == np.inf


def test_exponents_of_commuting_strengths_are_the_same_in_all_orders():
    exact = exponents(UNEQUAL, ETA)[0]
    cyclic = order_exponents(UNEQUAL, ETA, order="cyclic")[0]
    turns = order_exponents(UNEQUAL, ETA, order="reshuffled", steps=50, chains=4)[0]
    drawn = order_exponents(UNEQUAL, ETA, order="independent", steps=1000, chains=64)[0]
    assert cyclic.value == pytest.approx(exact)
    assert turns.value == pytest.approx(exact, abs=1e-6)  # 45 counted steps are 9 whole cycles
    assert abs(drawn.value - exact) < 5 * (drawn.high - drawn.low) / 4 + 1e-12


def test_the_cycle_has_the_exponents_of_its_long_product():
    matrices = panel(gaussian(1.0, 6.0, rank=2, off_diagonal=3.0, shared=False), 5)
    found = order_exponents(matrices, ETA, order="cyclic")
    visits = ordered_visits(matrices, "cyclic", steps=1000, runs=2)
    long = product_exponents(np.asarray(matrices.strengths, float)[visits], ETA)
    np.testing.assert_allclose([each.value for each in found], [each.value for each in long], atol=4e-3)
    total = np.log(np.abs(np.linalg.det(np.eye(2) + ETA * np.asarray(matrices.strengths, float)))).mean()
    assert sum(each.value for each in found) == pytest.approx(total)  # the order does not change the determinant


@pytest.mark.parametrize(
    "order", ["reshuffled", *(pytest.param(order, marks=pytest.mark.slow) for order in ("independent", "cyclic"))]
)
def test_runs_of_the_signal_rows_have_the_law_of_whole_runs(order):
    given = {"step_size": 0.05, "steps": 120, "init_scale": 1e-3, "batch_size": 1500, "dimension": 12}
    law = two_point(1.0, 5.0)
    runs = 192
    seen = execute(Settings(heterogeneity=5.0, order=order, seeds=runs, every=120, **given)).values
    found = simulate_shares(law, order=order, runs=4000, **given)
    logarithm, expected = np.log(seen["spurious"][:, -1]), np.log(found.spurious)
    error = expected.std() / np.sqrt(runs)
    assert abs(logarithm.mean() - expected.mean()) < 5 * error + 0.1  # terms that are left out: a tenth of the share
    assert abs(np.log(logarithm.std() / expected.std())) < 0.5
    assert np.median(seen["invariant"][:, -1]) == pytest.approx(np.median(found.invariant), abs=0.02)


def test_the_advice_names_an_order_with_its_reason():
    negative = advise_order(two_point(1.0, 7.0), step_size=ETA, steps=200, init_scale=ALPHA)
    positive = advise_order(two_point(1.0, 5.0), step_size=ETA, steps=200, init_scale=ALPHA)
    assert "shrinks by 1 % a step" in negative
    assert "number of steps is part of this advice" in positive
    assert "panel" in advise_order(gaussian(1.0, 5.0), step_size=ETA, steps=200, init_scale=ALPHA)
    assert "makes no difference" in advise_order(two_point(1.0, 1.0), step_size=ETA, steps=200, init_scale=ALPHA)
    dies_out = advise_order(two_point(-1.0, 0.1), step_size=ETA, steps=200, init_scale=ALPHA)
    assert "makes no difference" in dies_out
    assert "shrinks by 5 % a step in any order" in dies_out
    assert "learned" not in advise_order(two_point(1.0, 5.0), step_size=ETA, steps=0, init_scale=ALPHA)
    crossed = two_point(1.0, 6.0, rank=2, off_diagonal=3.0, shared=False)
    assert "do not commute" in advise_order(crossed, step_size=ETA, steps=200, init_scale=ALPHA)


def test_the_advice_is_about_the_settings_that_are_advised():
    law = two_point(1.0, 6.0)
    found = diagnose(law, batch_size=100_000, dimension=30, confidence=0.9)
    advised = found.advised
    (said,) = [each for each in found.sentences if "order reshuffled" in each]
    settings = {"step_size": advised.step_size, "steps": advised.steps, "init_scale": advised.init_scale}
    assert advised.step_size != found.step_size
    assert said == advise_order(law, batch_size=100_000, dimension=30, **settings)
    # The two shares with sampling error: those of runs of the reduced law, of another seed. A quantile of 2,000 runs
    # whose logarithm spreads by a few units is known within a factor of 2.
    shuffled, drawn = (float(number) for number in re.findall(r"exceeds (\S+) reshuffled and (\S+) drawn", said)[0])
    for order, share in (("reshuffled", shuffled), ("independent", drawn)):
        seen = simulate_shares(law, **settings, batch_size=100_000, dimension=30, order=order, runs=2000, seed=7)
        assert 0.5 < share / float(seen.quantile(0.9)) < 2
    assert shuffled < drawn


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: order_effect(UNEQUAL, ETA, 5, ALPHA, order="sorted"), "order must be one of independent, reshuffled"),
        (lambda: order_effect(gaussian(1.0, 2.0), ETA, 5, ALPHA), "environments must be finitely many, got a contin"),
        (lambda: order_effect(UNEQUAL, ETA, 5, 0.0), "init_scale must be a positive number, got 0.0"),
        (lambda: order_effect(UNEQUAL, ETA, 5, ALPHA, direction=3), "direction must be a whole number from 0 to 0"),
        (lambda: order_floor(UNEQUAL, ETA, 0, order="cyclic"), "batch_size must be a positive number, got 0"),
        (lambda: advise_order(UNEQUAL, step_size=ETA, steps=5, init_scale=0), "init_scale must be a positive number"),
        (lambda: order_exponents(gaussian(1.0, 2.0), ETA, order="cyclic"), "environments must be finitely many"),
        (
            lambda: order_floor(two_point(1.0, 6.0, rank=2, off_diagonal=3.0, shared=False), ETA, 9, order="cyclic"),
            "environments must have strengths that commute",
        ),
    ],
)
def test_errors_are_one_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call()
