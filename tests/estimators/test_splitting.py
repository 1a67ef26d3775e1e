import numpy as np
import pandas as pd
import pytest
from scipy.stats import t
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from holdfast.estimators import HeteroRegressor
from holdfast.estimators.splitting import split_intervals

EFFECTS = np.full(6, 0.1)


class Significant(RegressorMixin, BaseEstimator):
    """Selects the features that pay for themselves in the Bayesian information criterion."""

    def __init__(self, level="common"):
        self.level = level

    def fit(self, X, y, environments):
        if self.level == "environment":
            y = y - np.array([y[environments == 0].mean(), y[environments == 1].mean()])[environments]
        design = np.column_stack([X, np.ones(len(X))])
        self.coef_ = np.linalg.lstsq(design, y)[0]
        variance = np.sum((y - design @ self.coef_) ** 2) / (len(y) - design.shape[1])
        self.errors_ = np.sqrt(variance * np.diag(np.linalg.inv(design.T @ design)))
        self.invariant_ = (np.abs(self.coef_ / self.errors_) > np.sqrt(np.log(len(y))))[:-1]
        return self


class FirstFeature(ClassifierMixin, BaseEstimator):
    """Selects the first feature."""

    def fit(self, X, y, environments):
        del y, environments
        self.invariant_ = np.arange(X.shape[1]) == 0
        return self


def _rows(seed, rows=400):
    random = np.random.default_rng(seed)
    x = random.standard_normal((rows, 6))
    codes = np.arange(rows) % 2
    return x, x @ EFFECTS + (0.5 + codes) * random.standard_normal(rows), codes


def test_intervals_cover_after_splitting_and_not_without():
    """Effects near the threshold of selection: those that pass it look too large in the rows that selected them."""
    naive, honest = [], []
    for seed in range(250):
        x, y, codes = _rows(seed)
        fitted = Significant().fit(x, y, codes)
        half = t.isf(0.025, len(x) - 7) * fitted.errors_
        naive += (np.abs(fitted.coef_[:-1] - EFFECTS) <= half[:-1])[fitted.invariant_].tolist()
        found = split_intervals(Significant(), x, y, environments=codes, random_state=seed)
        honest += ((found["low"] <= 0.1) & (found["high"] >= 0.1)).tolist()
    assert min(len(naive), len(honest)) > 200
    assert abs(np.mean(honest) - 0.95) < 4 * np.sqrt(0.95 * 0.05 / len(honest))
    assert np.mean(naive) < 0.95 - 4 * np.sqrt(0.95 * 0.05 / len(naive))


def test_intervals_of_log_odds_cover():
    """100 draws, two environments with different means; 95 % within 4 standard errors."""
    covered = []
    for seed in range(100):
        random = np.random.default_rng(seed)
        codes = np.arange(600) % 2
        x = random.standard_normal((600, 2)) + codes[:, None]
        y = np.where(2 * x[:, 0] - 2 + random.logistic(size=600) > 0, "yes", "no")
        found = split_intervals(FirstFeature(), x, y, environments=codes)
        covered.append(found["low"].iloc[0] <= 2 <= found["high"].iloc[0])
    assert abs(np.mean(covered) - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 100)


def test_the_halves_are_halves_of_each_environment_and_names_are_those_of_the_table():
    x, y, codes = _rows(0, rows=4000)
    table = pd.DataFrame(x, columns=list("abcdef"))
    first, again, other = (
        split_intervals(Significant(), table, y, environments=codes, random_state=seed) for seed in (0, 0, 1)
    )
    pd.testing.assert_frame_equal(first, again)
    assert set(first.index) <= set("abcdef")
    assert not first["coefficient"].equals(other["coefficient"])
    # with a level for each environment, shifting one of them changes nothing
    settings = {"environments": codes, "random_state": 3}
    alike, shifted = (
        split_intervals(Significant("environment"), x, values, **settings) for values in (y, y + 100.0 * codes)
    )
    np.testing.assert_allclose(alike[["low", "high"]], shifted[["low", "high"]], rtol=1e-6)


def test_what_cannot_be_split_is_refused():
    x, y, codes = _rows(0)
    with pytest.raises(ValueError, match="confidence must be a number between 0 and 1, got 95"):
        split_intervals(Significant(), x, y, confidence=95)
    with pytest.raises(ValueError, match="rotation must be False"):
        split_intervals(HeteroRegressor(rotation=True), x, y, environments=codes)
    with pytest.raises(ValueError, match="environments must have two rows or more"):
        split_intervals(Significant(), x, y, environments=range(len(x)))


def test_nothing_selected_has_no_intervals():
    x, _, codes = _rows(0)
    noise = np.random.default_rng(9).standard_normal(len(x))
    found = split_intervals(Significant(), x, noise, environments=codes)
    assert len(found) == 0


@pytest.mark.slow
def test_coefficients_of_the_regressor_are_covered_after_splitting():
    """100 tables with weak and strong causes and a consequence that varies; the fit selects some of the causes."""
    covered = []
    for seed in range(100):
        random = np.random.default_rng(seed)
        codes = np.repeat(np.arange(4), 150)
        x = random.standard_normal((600, 4))
        effects = np.array([1.0, 0.5, 0.12, 0.12])
        y = x @ effects + random.standard_normal(600)
        follower = (0.5 + codes) * y + random.standard_normal(600)
        found = split_intervals(
            HeteroRegressor(), np.column_stack([x, follower]), y, environments=codes, random_state=seed
        )
        inside = found[found.index != "x4"]
        true = effects[[int(name[1:]) for name in inside.index]]
        covered += ((inside["low"] <= true) & (inside["high"] >= true)).tolist()
    assert abs(np.mean(covered) - 0.95) < 4 * np.sqrt(0.95 * 0.05 / len(covered))
