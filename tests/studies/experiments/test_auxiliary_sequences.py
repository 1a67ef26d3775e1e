import numpy as np
import pytest

from holdfast_studies.papers.auxiliary_sequences import (
    calibration_line,
    controller,
    envelopes,
    growth_factors,
    invariant_sequence,
    row_process,
    step_size_window,
    supermartingale_factor,
    supermartingale_threshold,
)


def test_invariant_sequence_follows_its_logistic_limit():
    """For small eta, y = R^2 solves y' = 2 y (1 - y), so y / (1 - y) grows like exp(2 eta t); the error is O(eta)."""
    step_size, init_scale, steps = 1e-3, 1e-2, 6000
    values = invariant_sequence(step_size, init_scale, steps)
    odds = init_scale**2 / (1 - init_scale**2) * np.exp(2 * step_size * np.arange(steps + 1))
    assert np.abs(values - np.sqrt(odds / (1 + odds))).max() < 4 * step_size
    assert (np.diff(values) > 0).all()


def test_sequences_broadcast_over_draws():
    step_sizes, scales = np.array([0.01, 0.05]), np.array([1e-3, 1e-2])
    values = invariant_sequence(step_sizes, scales, 50)
    lower, upper = envelopes(step_sizes, scales, 50)
    for draw in range(2):
        assert values[draw] == pytest.approx(invariant_sequence(step_sizes[draw], scales[draw], 50))
        assert upper[draw] == pytest.approx(envelopes(step_sizes[draw], scales[draw], 50)[1])
    assert (lower[:, 1:] < values[:, 1:]).all()
    assert (values[:, 1:] < upper[:, 1:]).all()


def test_envelopes_while_small_differ_by_a_power():
    """While R^2 is negligible the upper envelope is alpha (1 + eta + c)^t."""
    step_size, init_scale = 0.05, 1e-8
    correction = step_size / (32 * np.log(1 / init_scale))
    _, upper = envelopes(step_size, init_scale, 100)
    assert upper[100] == pytest.approx(init_scale * (1 + step_size + correction) ** 100, rel=1e-9)


def test_calibration_line_starts_at_the_initial_scale_and_never_falls():
    line = calibration_line(invariant_sequence(0.05, 1e-3, 300), 1e-3, 7.0, 1e-3, 2)
    assert line[0] == 1e-3
    assert line[-1] == pytest.approx(40 * 7 * 1e-3 * np.sqrt(2), rel=1e-3)
    assert (np.diff(line) >= 0).all()


def test_controller_is_its_recursion_and_moves_along_rows():
    random = np.random.default_rng(0)
    steps, start, barrier = 120, 1e-3, 20.0
    line = calibration_line(invariant_sequence(0.05, start, steps), start, 7.0, 1e-3, 2)
    factors = growth_factors(0.05, 1 + 9 * random.choice([-1, 1], (30, steps)))
    values = controller(factors, line, start, barrier)
    absorbed = 0
    for draw in range(30):
        current, frozen = start, start >= barrier * line[0]
        for step in range(steps):
            if not frozen:
                current = max(factors[draw, step] * current, line[step + 1])
                frozen = current >= barrier * line[step + 1]
            assert values[draw, step + 1] == pytest.approx(current, rel=1e-9)
        absorbed += frozen
    assert 0 < absorbed < 30
    # Eq. 41: before absorption there is a row that equals q_t.
    free = controller(factors[0], line, start)
    rows = np.stack([row_process(factors[0], line, row) for row in range(steps + 1)])
    distance = np.abs(np.log(rows / free))[:, 1:]
    reached = np.tri(steps + 1, dtype=bool).T[:, 1:]  # row k from t = k on
    assert np.where(reached, distance, np.inf).min(0).max() < 1e-9


def test_rows_wait_then_multiply():
    factors, line = np.array([2.0, 3.0, 5.0]), np.array([1.0, 10.0, 100.0, 1000.0])
    assert row_process(factors, line, 0).tolist() == [1, 2, 6, 30]
    assert row_process(factors, line, 2).tolist() == [100, 100, 100, 500]
    assert row_process(factors, line, 3).tolist() == [1000, 1000, 1000, 1000]


def test_supermartingale_factor_is_a_mean_over_draws():
    random = np.random.default_rng(1)
    draws = growth_factors(0.05, 1 + 6 * random.choice([-1, 1], 100_000)) ** (2 / 3)
    error = draws.std() / np.sqrt(len(draws))
    assert abs(draws.mean() - supermartingale_factor(0.05, 1.0, 6.0)) < 4 * error


def test_window_of_the_paper_is_empty_and_opens_beyond_1536():
    low, high = step_size_window(np.array([1.0, 0.0, 0.0]), np.array([6.0, 1535.0, 1537.0]))
    assert low[0] == pytest.approx(4 / 3)
    assert high[0] == pytest.approx(1 / 448)
    assert (low < high).tolist() == [False, False, True]


def test_threshold_is_half_of_the_window_for_an_unbiased_law():
    """To second order log E f^(2/3) = (2/3) eta (2 + s) - eta^2 M^2 / 9, zero at 6 (2 + s) / M^2."""
    bias, heterogeneity = np.array([0.0, 1.0]), np.array([4e4, 4e4])
    threshold = supermartingale_threshold(bias, heterogeneity)
    assert threshold == pytest.approx(6 * (2 + bias) / heterogeneity**2, rel=1e-3)
    assert supermartingale_factor(threshold, bias, heterogeneity) == pytest.approx(1, abs=1e-12)
