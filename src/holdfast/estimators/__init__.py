"""Invariant prediction for tables, in scikit-learn's conventions: `fit(X, y, *, environments=None)`."""

from holdfast.estimators.classifier import HeteroClassifier
from holdfast.estimators.contract import EnvironmentEstimator
from holdfast.estimators.files import FittedTable, fit_table, predict_table
from holdfast.estimators.grouping import Grouping, group_rows
from holdfast.estimators.held_out import held_out_errors
from holdfast.estimators.matrix_sensing import HeteroMatrixSensing, HeteroQuadraticRegressor
from holdfast.estimators.regressor import HeteroRegressor

__all__ = [
    "EnvironmentEstimator",
    "FittedTable",
    "Grouping",
    "HeteroClassifier",
    "HeteroMatrixSensing",
    "HeteroQuadraticRegressor",
    "HeteroRegressor",
    "fit_table",
    "group_rows",
    "held_out_errors",
    "predict_table",
]
__dir__ = __all__.copy
