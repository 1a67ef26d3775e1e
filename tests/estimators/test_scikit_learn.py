"""The conventions of scikit-learn: its own checks, pipelines, searches and the routing of environments."""

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from holdfast.estimators import (
    EffectExpansion,
    HeteroClassifier,
    HeteroMatrixSensing,
    HeteroQuadraticRegressor,
    HeteroRegressor,
    HeteroSelector,
    HeteroSplineRegressor,
    MixedRegressor,
)

ESTIMATORS = [HeteroRegressor, HeteroClassifier, HeteroQuadraticRegressor, HeteroMatrixSensing]


@parametrize_with_checks([HeteroRegressor(), HeteroRegressor(after=[0]), MixedRegressor()])
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        HeteroClassifier(),
        HeteroClassifier(before=[0]),
        HeteroQuadraticRegressor(n_runs=1),
        HeteroMatrixSensing(n_runs=1),
    ]
)
def test_estimator_checks_of_the_others(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([HeteroSplineRegressor(after=[0]), HeteroSelector(before=[0]), EffectExpansion()])
def test_estimator_checks_of_curves_and_selection(estimator, check):
    check(estimator)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture
def table():
    """A cause, and a follower that would be used if the environments did not arrive."""
    random = np.random.default_rng(0)
    codes = np.arange(3000) % 3
    cause = random.standard_normal(3000)
    y = cause + random.standard_normal(3000)
    follower = np.array([0.2, 0.8, 1.6])[codes] * y + random.standard_normal(3000)
    return np.column_stack([cause, follower]), y, np.array(["a", "b", "c"])[codes]


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_environments_can_be_requested(estimator):
    requested = estimator().set_fit_request(environments=True).get_metadata_routing()
    assert requested.fit.requests["environments"] is True


@pytest.mark.usefixtures("routing")
def test_pipeline(table):
    x, y, environments = table
    pipeline = make_pipeline(StandardScaler(), HeteroRegressor().set_fit_request(environments=True))
    pipeline.fit(x, y, environments=environments)
    assert pipeline[-1].invariant_.tolist() == [True, False]
    assert pipeline[-1].environments_ == ["a", "b", "c"]


@pytest.mark.usefixtures("routing")
def test_grid_search(table):
    x, y, environments = table
    model = HeteroRegressor().set_fit_request(environments=True)
    search = GridSearchCV(model, {"tolerance": [0.0, 0.01]}, cv=3).fit(x, y, environments=environments)
    assert search.best_estimator_.invariant_.tolist() == [True, False]


@pytest.mark.usefixtures("routing")
def test_cross_validation_over_environments(table):
    """Left-out environments, with the labels both as groups of the split and as environments of the fit."""
    x, y, environments = table
    model = HeteroRegressor().set_fit_request(environments=True)
    splits = GroupKFold(3).set_split_request(groups=True)
    scores = cross_val_score(model, x, y, cv=splits, params={"environments": environments, "groups": environments})
    np.testing.assert_allclose(scores, 0.5, atol=0.12)  # the cause explains one half, everywhere
