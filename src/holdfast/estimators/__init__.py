"""Invariant prediction for tables, in scikit-learn's conventions: `fit(X, y, *, environments=None)`."""

from holdfast.estimators.grouping import Grouping, group_rows

__all__ = ["Grouping", "group_rows"]
