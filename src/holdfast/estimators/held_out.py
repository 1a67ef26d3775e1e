"""Errors in environments that a fit has not seen."""

from collections.abc import Mapping
from inspect import signature
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone, is_classifier

from holdfast.core.grouping import group_rows
from holdfast.core.progress import Progress
from holdfast.estimators.contract import EnvironmentEstimator


def held_out_errors(
    estimators: Mapping[str, EnvironmentEstimator],
    X: Any,
    y: Any,
    environments: Any,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Leave out one environment after the other, fit the rest, and predict it.

    Args:
        estimators: name -> estimator: one of ours, or one of scikit-learn, which is fitted without the environments.
        X: (rows, features).
        y: (rows,).
        environments: one label for each row; at least two different ones.
        progress: called with (fits done, fits in all).

    Returns:
        environments x estimators: mean squared errors, or shares of wrong classes.

    Example, the second environment is shifted by 1:
        >>> from holdfast.estimators.baselines import PooledRegressor
        >>> x, environments = np.arange(20.0)[:, None], np.repeat(["a", "b"], 10)
        >>> y = x[:, 0] + (environments == "b")
        >>> held_out_errors({"pooled": PooledRegressor()}, x, y, environments).round(3)["pooled"].to_dict()
        {'a': 1.0, 'b': 1.0}
    """
    grouping = group_rows(environments, len(X))
    if grouping.count < 2:
        raise ValueError(f"environments must hold two different labels, for one to be held out, got {grouping.labels}")
    labels = np.array(grouping.labels, dtype=object)[grouping.codes]
    table, response = pd.DataFrame(X).reset_index(drop=True), np.asarray(y)
    out = pd.DataFrame(index=pd.Index(grouping.labels, name="environment"), columns=list(estimators), dtype=float)
    for number, label in enumerate(grouping.labels):
        held_out = grouping.codes == number
        if len(np.unique(response[~held_out])) < 2:
            raise ValueError(f"y must vary among the rows that are left when {label!r} is held out, got one value only")
        for name, estimator in estimators.items():
            takes = "environments" in signature(estimator.fit).parameters
            extra = {"environments": labels[~held_out]} if takes else {}
            predicted = clone(estimator).fit(table[~held_out], response[~held_out], **extra).predict(table[held_out])
            true = response[held_out]
            losses = predicted != true if is_classifier(estimator) else (predicted - true) ** 2
            out.loc[label, name] = float(np.mean(losses))
            if progress is not None:
                progress(int(out.notna().to_numpy().sum()), out.size)
    return out
