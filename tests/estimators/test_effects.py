import numpy as np
import pytest

from holdfast.algorithms.losses import LogisticRows
from holdfast.core import group_rows
from holdfast.core.moments import collect_moments, standardized
from holdfast.estimators.effects import describe_effects, logistic_effects, squared_effects


def _known(x, y, codes, **settings):
    return standardized(collect_moments(x, y, group_rows(codes, len(x))), **settings)


def _least_squares(x, y):
    """Coefficients, standard errors and degrees of freedom of a regression with an intercept, as in a textbook."""
    design = np.column_stack([x, np.ones(len(x))])
    w = np.linalg.lstsq(design, y)[0]
    spare = len(y) - design.shape[1]
    errors = np.sqrt(np.sum((y - design @ w) ** 2) / spare * np.diag(np.linalg.inv(design.T @ design)))
    return w[:-1], errors[:-1], spare


def _rows(seed=0, sizes=(300, 200, 120)):
    """Correlated features, and effects, noise, means and variances that differ between environments."""
    random = np.random.default_rng(seed)
    codes = np.repeat(np.arange(len(sizes)), sizes)
    x = random.standard_normal((len(codes), 4)) @ random.standard_normal((4, 4)) + codes[:, None] * [
        1.0,
        -2.0,
        0.0,
        3.0,
    ]
    y = x @ [1.0, -0.5, 0.3, 0.0] + 0.2 * codes * x[:, 1] + 5.0 * codes
    return x, y + (1 + codes) * random.standard_normal(len(codes)), codes


@pytest.mark.parametrize("within", [False, True])
def test_effects_are_those_of_a_regression_in_each_environment(within):
    x, y, codes = _rows()
    known, selected = _known(x, y, codes, within=within), np.array([True, False, True, False])
    own = squared_effects(known, selected)
    units = known.scale[-1] / known.scale[:-1]
    for code in range(3):
        rows = codes == code
        for column in range(4):
            columns = np.flatnonzero(selected | (np.arange(4) == column))
            w, errors, spare = _least_squares(x[rows][:, columns], y[rows])
            position = columns.tolist().index(column)
            assert own.estimates[code, column] * units[column] == pytest.approx(w[position], rel=1e-8)
            assert own.errors[code, column] * units[column] == pytest.approx(errors[position], rel=1e-8)
            assert own.degrees[code, column] == spare


def test_the_range_of_an_effect_is_that_of_joint_fits():
    """Of two correlated features, moving one with the other fixed would hide most of the variation."""
    random = np.random.default_rng(0)
    codes = np.repeat(np.arange(4), 2000)
    first = random.standard_normal(8000)
    x = np.column_stack([first, 0.95 * first + np.sqrt(1 - 0.95**2) * random.standard_normal(8000)])
    true = np.array([-0.45, -0.1, 0.1, 0.5])
    y = true[codes] * (x[:, 0] - x[:, 1]) + random.standard_normal(8000)
    known = _known(x, y, codes)
    both = np.ones(2, bool)
    own = squared_effects(known, both)
    table = describe_effects(
        own, np.zeros(2), selected=both, names=["a", "b"], labels=range(4),
        units=known.scale[-1] / known.scale[:-1],
    ).relations  # fmt: skip
    # the standard error of an effect is 1 / sqrt(2000 (1 - 0.95^2)) = 0.072
    assert table.loc["a", "lowest_effect"] == pytest.approx(-0.45, abs=4 * 0.072)
    assert table.loc["a", "highest_effect"] == pytest.approx(0.5, abs=4 * 0.072)
    one_at_a_time = known.cross / np.einsum("ejj->ej", known.second)
    assert np.ptp(one_at_a_time[:, 0]) < 0.1 * (table.loc["a", "highest_effect"] - table.loc["a", "lowest_effect"])


def test_what_the_rows_do_not_identify_is_not_a_number():
    x, y, codes = _rows()
    x[codes == 1, 0] = 3.0  # stands still
    x[codes == 2, 3] = 2 * x[codes == 2, 2] + 1  # cannot be told apart from another one
    own = squared_effects(_known(x, y, codes), np.array([True, False, True, False]))
    np.testing.assert_array_equal(np.isnan(own.estimates), np.isnan(own.errors))
    assert np.argwhere(np.isnan(own.estimates)).tolist() == [[1, 0], [2, 3]]
    # the other selected feature is still identified where the first stands still
    w, _, _ = _least_squares(x[codes == 1][:, [2]], y[codes == 1])
    known = _known(x, y, codes)
    assert own.estimates[1, 2] * known.scale[-1] / known.scale[2] == pytest.approx(w[0], rel=1e-8)


def test_an_environment_with_too_few_rows_is_left_out():
    x, y, codes = _rows(sizes=(200, 150, 2))
    own = squared_effects(_known(x, y, codes), np.ones(4, bool))
    assert np.isnan(own.estimates[2]).all()
    assert np.isfinite(own.estimates[:2]).all()
    table = describe_effects(
        own, np.zeros(4), selected=np.ones(4, bool), names="abcd", labels="xyz"
    )  # fmt: skip
    np.testing.assert_array_equal(table.relations["highest_effect"], own.estimates[:2].max(0))
    assert table.relations.notna().all(axis=None)


def test_small_environments_borrow_the_variance_of_their_errors():
    """With 400 environments of 4 rows, a test of level 0.05 rejects no more than that, within 4 standard errors."""
    rejected = []
    for seed in range(100):
        random = np.random.default_rng(seed)
        codes = np.repeat(np.arange(400), 4)
        x = random.standard_normal((1600, 1))
        y = x[:, 0] + random.standard_normal(1600)
        own = squared_effects(_known(x, y, codes), np.array([True]))
        tables = describe_effects(
            own, np.ones(1), selected=np.ones(1, bool), names=["x"],
            labels=range(400),
        )  # fmt: skip
        rejected.append(tables.relations["significance"].iloc[0] < 0.05)
    assert np.mean(rejected) <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / 100)


def _maximum_likelihood(x, y):
    """Logistic regression with an intercept by plain Newton steps; coefficients and standard errors."""
    design = np.column_stack([x, np.ones(len(x))])
    w = np.zeros(design.shape[1])
    for _ in range(30):
        p = 1 / (1 + np.exp(-design @ w))
        information = (design * (p * (1 - p))[:, None]).T @ design
        w = w + np.linalg.solve(information, design.T @ (y - p))
    return w[:-1], np.sqrt(np.diag(np.linalg.inv(information)))[:-1]


def test_logistic_effects_are_those_of_each_environment():
    random = np.random.default_rng(1)
    codes = np.repeat([0, 1], 1500)
    x = random.standard_normal((3000, 3)) + codes[:, None]
    y = (x @ [1.0, 0.0, 0.1] - 1 + codes * 0.5 * x[:, 0] + random.logistic(size=3000) > 0).astype(float)
    selected = np.array([True, True, False])
    own = logistic_effects([LogisticRows(x[codes == e].T, y[codes == e], np.ones(1500)) for e in range(2)], selected)
    for code in range(2):
        rows = codes == code
        w, errors = _maximum_likelihood(x[rows][:, :2], y[rows])
        np.testing.assert_allclose(own.estimates[code, :2], w, rtol=1e-5)
        np.testing.assert_allclose(own.errors[code, :2], errors, rtol=1e-4)
        w, errors = _maximum_likelihood(x[rows], y[rows])
        # one Newton step: the error is of second order in an effect of 0.1
        assert own.estimates[code, 2] == pytest.approx(w[2], abs=0.01)
        assert own.errors[code, 2] == pytest.approx(errors[2], rel=0.02)


def test_separated_classes_identify_nothing():
    x = np.linspace(-1, 1, 40)[None]
    apart, alike, overlapping = (x[0] > 0).astype(float), np.zeros(40), (np.arange(40) % 3 == 0).astype(float)
    own = logistic_effects([LogisticRows(x, y, np.ones(40)) for y in (apart, alike, overlapping)], np.array([True]))
    assert np.isnan(own.estimates[:, 0]).tolist() == [True, True, False]


def test_a_feature_that_is_constant_within_environments_has_no_effect_there():
    random = np.random.default_rng(0)
    codes = np.repeat(np.arange(40), 50)
    x = np.column_stack([random.standard_normal(2000), np.sin(codes)])
    y = x @ [1.0, 0.5] + random.standard_normal(2000)
    known = standardized(collect_moments(x, y, group_rows(codes, 2000)))
    own = squared_effects(known, np.array([True, False]))
    assert np.isnan(own.estimates[:, 1]).all()
    assert np.isfinite(own.estimates[:, 0]).all()
