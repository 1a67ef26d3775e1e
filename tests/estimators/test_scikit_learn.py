"""The conventions of scikit-learn: its own checks, pipelines, searches and the routing of environments."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from holdfast.estimators import HeteroClassifier, HeteroMatrixSensing, HeteroQuadraticRegressor, HeteroRegressor

ESTIMATORS = [HeteroRegressor, HeteroClassifier, HeteroQuadraticRegressor, HeteroMatrixSensing]


@parametrize_with_checks([estimator(orders=2) for estimator in ESTIMATORS])
def test_estimator_checks(estimator, check):
    check(estimator)
