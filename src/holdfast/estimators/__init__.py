"""Invariant prediction for tables, in scikit-learn's conventions: `fit(X, y, *, environments=None)`."""

from holdfast.estimators.classifier import HeteroClassifier
from holdfast.estimators.grouping import Grouping, group_rows
from holdfast.estimators.matrix_sensing import HeteroMatrixSensing, HeteroQuadraticRegressor
from holdfast.estimators.regressor import HeteroRegressor

__all__ = [
    "Grouping",
    "HeteroClassifier",
    "HeteroMatrixSensing",
    "HeteroQuadraticRegressor",
    "HeteroRegressor",
    "group_rows",
]
