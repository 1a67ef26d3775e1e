"""The logistic loss from few looks at the rows, against formulas, scikit-learn and searches that refit every set."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from holdfast.algorithms.losses import logistic
from holdfast.algorithms.losses.logistic import LogisticRows, look
from holdfast.estimators.effects import logistic_effects
from holdfast.estimators.search.class_evidence import LogisticEvidence
from holdfast.estimators.search.feature_sets import Groups
from holdfast.estimators.search.selection import select

LEVEL = 0.001


class ByFits(LogisticEvidence):
    """Every set that the search tries is fitted to all rows."""

    def near(self, fitted):
        return self


def _rows(seed, rows=750, environments=3, features=9):
    """Three causes, two idle features, and consequences that follow the class differently in each environment."""
    random = np.random.default_rng(seed)
    codes = np.arange(rows) % environments
    x = random.standard_normal((rows, features))
    labels = (x[:, :3] @ [1.0, -1.0, 0.5] + random.logistic(size=rows) > 0).astype(float)
    x[:, 5:] += random.standard_normal((environments, features - 5))[codes] * labels[:, None]
    z, weights = (x - x.mean(0)) / x.std(0), random.integers(1, 3, rows).astype(float)
    own = [codes == each for each in range(environments)]
    return [LogisticRows(z[each].T, labels[each], weights[each]) for each in own]


def test_a_look_at_the_rows_is_made_of_the_losses_and_their_derivatives():
    parts, w = _rows(0, rows=9000), np.linspace(-0.5, 0.5, 10)  # more than one block of rows
    found = look(parts, w, covariance=True)
    for number, rows in enumerate(parts):
        whole = rows._replace(columns=np.vstack([rows.columns, np.ones(len(rows.labels))]))
        for part, function in (
            (found.loss, logistic.risk),
            (found.gradient, logistic.gradient),
            (found.curvature, logistic.curvature_matrix),
            (found.covariance, logistic.gradient_covariance),
        ):
            np.testing.assert_allclose(part[number], function(whole, w), rtol=1e-10, atol=1e-14)


def test_the_fit_is_that_of_scikit_learn_wherever_it_begins():
    parts = _rows(1, rows=60_000)
    x, y, weights = (np.concatenate(part, axis=-1) for part in zip(*parts, strict=True))
    columns = np.array([0, 1, 6])
    # C = 1 is the same ridge
    other = LogisticRegression(C=1.0, tol=1e-12, max_iter=1000).fit(x[columns].T, y, sample_weight=weights)
    evidence = LogisticEvidence(parts)
    everything = evidence.solve(np.arange(9))
    evidence.near(everything)
    for fitted in (evidence.solve(columns, everything), LogisticEvidence(parts).solve(columns)):
        np.testing.assert_allclose(fitted.coefficients[columns], other.coef_[0], atol=1e-6)
        assert fitted.intercept == pytest.approx(other.intercept_[0], abs=1e-6)
        assert not np.delete(fitted.coefficients, columns).any()


def test_moments_come_from_the_looks_at_the_rows():
    parts = _rows(2)
    evidence = LogisticEvidence(parts)
    found, working, fitted = evidence.second_moments(), evidence.working(), evidence.solve(np.arange(9))
    labels, weights = (
        np.concatenate(part) for part in zip(*[(rows.labels, rows.weights) for rows in parts], strict=True)
    )
    share = np.average(labels, weights=weights)
    for number, rows in enumerate(parts):
        table = np.vstack([rows.columns, (rows.labels - share) / np.sqrt(share * (1 - share))])
        products = np.cov(table, aweights=rows.weights, bias=True)
        np.testing.assert_allclose(found.covariances[number], products, atol=1e-8)
        p = logistic.probabilities(rows, *fitted)
        response = fitted.coefficients @ rows.columns + (rows.labels - p) / (p * (1 - p))
        spread = rows.weights * p * (1 - p)
        products = np.cov(np.vstack([rows.columns, response]), aweights=spread, bias=True) * spread.sum()
        np.testing.assert_allclose(working[number], products / rows.weights.sum(), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(("rows", "environments"), [(750, 3), (3600, 6)])
@pytest.mark.parametrize("seed", range(6))
def test_a_search_near_few_fits_selects_what_a_search_by_fits_selects(rows, environments, seed):
    parts = _rows(seed, rows, environments)
    quick, slow = (select(kind(parts), Groups(np.arange(9)), LEVEL) for kind in (LogisticEvidence, ByFits))
    if quick.selected.tolist() != slow.selected.tolist():  # both only where a test is about to change its mind
        assert min(abs(np.log(test.significance / LEVEL)) for test in (quick.test, slow.test)) < np.log(3)
    else:
        np.testing.assert_allclose(quick.fitted.coefficients, slow.fitted.coefficients, atol=1e-6)
        assert quick.criterion == pytest.approx(slow.criterion, abs=1e-6)
    np.testing.assert_allclose(quick.pooled.coefficients, slow.pooled.coefficients, atol=1e-6)


def test_effects_of_environments_do_not_depend_on_where_their_fits_begin():
    parts, selected = _rows(3), np.arange(9) < 4
    quick, slow = LogisticEvidence(parts).own_effects(selected), logistic_effects(parts, selected)
    np.testing.assert_allclose(quick.estimates, slow.estimates, atol=1e-6)
    np.testing.assert_allclose(quick.errors, slow.errors, rtol=1e-3)
