"""The conventions of scikit-learn: its own checks, pipelines, searches and the routing of environments."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from holdfast.estimators import HeteroClassifier, HeteroRegressor


@parametrize_with_checks([HeteroRegressor(orders=2), HeteroClassifier(orders=2)])
def test_estimator_checks(estimator, check):
    check(estimator)
