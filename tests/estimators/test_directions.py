import numpy as np
import pytest

from estimators.relation_tables import (
    found_relations,
    known_moments,
    shifted_rows,
    standard_units_of,
    textbook_regression,
    within_environments,
)
from holdfast.algorithms.losses import LogisticRows, logistic
from holdfast.core.statistics import random_effects
from holdfast.estimators.directions import (
    WithinEnvironments,
    differences,
    effect_tests,
    effects_and_slopes,
    ridged_inverse,
    without,
)
from holdfast.estimators.search.class_evidence import LogisticEvidence


def test_both_directions_are_regressions_in_each_environment():
    x, y, codes = shifted_rows()
    z, t = standard_units_of(x, y)
    known = known_moments(x, y, codes)
    spare = known.counts - 5
    forward, reverse = effects_and_slopes(ridged_inverse(known.covariances), spare)
    for code in range(3):
        own = codes == code
        w, errors = textbook_regression(t[own], z[own])
        np.testing.assert_allclose(forward.estimates[code], w, rtol=1e-5)
        np.testing.assert_allclose(forward.errors[code], errors, rtol=1e-5)
        assert forward.degrees[code].tolist() == [own.sum() - 5] * 4
        for feature in range(4):
            others = np.column_stack([t[own], np.delete(z[own], feature, axis=1)])
            w, errors = textbook_regression(z[own, feature], others)
            assert reverse.estimates[code, feature] == pytest.approx(w[0], rel=1e-5)
            assert reverse.errors[code, feature] == pytest.approx(errors[0], rel=1e-5)
    found = found_relations(x, y, codes)
    np.testing.assert_allclose(found.reverse.mean, random_effects(*reverse).mean)
    np.testing.assert_allclose(found.reverse.between, random_effects(*reverse).between)


def test_the_precision_of_fewer_columns_is_that_of_a_smaller_matrix():
    covariance = known_moments(*shifted_rows()).covariances
    for gone in range(4):
        left = np.delete(np.arange(5), gone)
        expected = np.linalg.inv(covariance[:, left[:, None], left])
        np.testing.assert_allclose(without(np.linalg.inv(covariance), gone), expected, rtol=1e-9)


@pytest.mark.parametrize("inside", [[0, 1, 2, 3], [0, 2, 3], [1]])
def test_the_statistic_of_equal_effects_is_that_of_regressions(inside):
    """Chow: one regression of all environments, and one of each, in units of the errors of each."""
    x, y, codes = shifted_rows(sizes=(200, 200, 200))
    z, t = standard_units_of(x, y)
    known, inside = known_moments(x, y, codes), np.array(inside)
    columns = np.append(inside, 4)
    precision = np.linalg.inv(known.covariances[:, columns[:, None], columns])
    statistic, degrees = differences(WithinEnvironments.of(known, known.covariances), precision, inside)
    rows, spare = within_environments(z[:, inside], t, codes), 200 - len(inside) - 1
    separate = 0.0
    for code in range(3):
        own = codes == code
        left = rows[own, -1] - rows[own, :-1] @ np.linalg.lstsq(rows[own, :-1], rows[own, -1])[0]
        rows[own] /= np.sqrt(left @ left / spare)
        separate += spare
    together = np.sum((rows[:, -1] - rows[:, :-1] @ np.linalg.lstsq(rows[:, :-1], rows[:, -1])[0]) ** 2)
    assert degrees == 2 * len(inside)
    assert statistic == pytest.approx((together - separate) * (spare - 2) / spare, rel=1e-6)


def test_tests_in_company_are_those_of_regressions():
    """The largest probability over all sets with at most one feature left out."""
    x, y, codes = shifted_rows()
    known = known_moments(x, y, codes)
    found = effect_tests(WithinEnvironments.of(known, known.covariances))
    largest = np.zeros(4)
    for columns in (np.arange(4), *(np.delete(np.arange(4), gone) for gone in range(4))):
        fits = [textbook_regression(y[codes == code], x[codes == code][:, columns]) for code in range(3)]
        b, s = (np.stack(part) for part in zip(*fits, strict=True))
        degrees = np.broadcast_to((known.counts - len(columns) - 1)[:, None], b.shape)
        probabilities = random_effects(b, s, degrees).significance
        largest[columns] = np.maximum(largest[columns], probabilities)
        if len(columns) == 4:
            np.testing.assert_allclose(found.given_all, probabilities, rtol=1e-4)
    np.testing.assert_allclose(found.given_any, largest, rtol=1e-4)


def _logistic_rows(seed=0, rows=500):
    random = np.random.default_rng(seed)
    codes = np.repeat(np.arange(3), rows)
    x = random.standard_normal((3 * rows, 3)) + 0.3 * codes[:, None]
    labels = (x @ [1.0, -0.5, 0.0] + 0.5 * codes * x[:, 2] + random.logistic(size=3 * rows) > 0.5).astype(float)
    weights = random.integers(1, 3, 3 * rows).astype(float)
    z = ((x - np.average(x, axis=0, weights=weights)) / x.std(0)).T
    return [LogisticRows(z[:, codes == code], labels[codes == code], weights[codes == code]) for code in range(3)]


def test_working_covariances_have_the_regressions_of_one_newton_step():
    rows = _logistic_rows()
    evidence = LogisticEvidence(rows)
    fitted = evidence.solve(np.arange(3))
    forward, _ = effects_and_slopes(np.linalg.inv(evidence.working()), evidence.counts - 4)
    for code, own in enumerate(rows):
        whole = own._replace(columns=np.vstack([own.columns, np.ones(own.columns.shape[1])]))
        start = np.append(fitted.coefficients, fitted.intercept)
        step = np.linalg.solve(logistic.curvature_matrix(whole, start), logistic.gradient(whole, start))
        np.testing.assert_allclose(forward.estimates[code], (start - step)[:-1], rtol=1e-8)


def test_second_moments_of_classes_are_those_of_the_rows():
    rows = _logistic_rows()
    known = LogisticEvidence(rows).second_moments()
    share = np.average(
        np.concatenate([own.labels for own in rows]), weights=np.concatenate([own.weights for own in rows])
    )
    for code, own in enumerate(rows):
        table = np.vstack([own.columns, (own.labels - share) / np.sqrt(share * (1 - share))])
        np.testing.assert_allclose(known.covariances[code], np.cov(table, aweights=own.weights, ddof=0), atol=1e-12)
        np.testing.assert_allclose(known.means[code], np.average(table, axis=1, weights=own.weights), atol=1e-12)
    assert known.counts.tolist() == [own.weights.sum() for own in rows]
