"""Effects of the directions of a matrix in each environment, and how much they vary, as tables."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from holdfast.algorithms.losses.slopes import Slopes
from holdfast.core.meta_analysis import random_effects


def effect_table(slopes: Slopes, coefficients: np.ndarray, names: Sequence[str], labels: Sequence[Any]) -> pd.DataFrame:
    """Environments x features: the coefficient that each feature would have in each environment, all others as fitted.

    Args:
        slopes: at the fit.
        coefficients: of the fit.
        names: of the features.
        labels: of the environments.
    """
    curvature = np.asarray(slopes.curvature)
    own = coefficients - np.asarray(slopes.gradient) / np.where(curvature > 0, curvature, np.nan)
    return pd.DataFrame(own, index=pd.Index(list(labels), name="environment"), columns=list(names))


def stability_table(effects: pd.DataFrame, kind: str, **columns: np.ndarray) -> pd.DataFrame:
    """Features x (coefficient, exponent, range of the effect, spread, varies, survived).

    Args:
        effects: environments x features; NaN where an effect is not measured.
        kind: what a row is: feature or direction.
        columns: coefficient, exponent, spread, varies and survived, each (features,).

    Example:
        >>> effects = pd.DataFrame({"x0": [1.0, 3.0]})
        >>> one = dict.fromkeys(("coefficient", "exponent", "spread", "varies", "survived"), np.ones(1))
        >>> stability_table(effects, "feature", **one)["effect_range"].tolist()
        [2.0]
    """
    low, high = effects.min(), effects.max()
    ranges = {"lowest_effect": low, "highest_effect": high, "effect_range": high - low}
    order = ("coefficient", "exponent", *ranges, "spread", "varies", "survived")
    found = columns | ranges
    return pd.DataFrame({name: found[name] for name in order}, index=pd.Index(effects.columns, name=kind))


def effect_spread(slopes: Slopes) -> np.ndarray:
    """(features,): the standard deviation of each effect over environments that sampling error does not explain.

    That of `random_effects`, for standardised variables.

    Example, effects 1 and 3, both measured exactly:
        >>> ones = np.ones((2, 1))
        >>> effect_spread(Slopes(np.array([[-1.0], [-3.0]]), ones[:, 0], ones, 1e-12 * ones)).round(3).tolist()
        [1.414]
    """
    gradient, curvature, variance = (np.asarray(part) for part in (slopes.gradient, slopes.curvature, slopes.variance))
    measured = (curvature > 0) & (variance > 0)
    curvature = np.where(measured, curvature, np.nan)
    spread = random_effects(-gradient / curvature, np.sqrt(np.where(measured, variance, np.nan)) / curvature).between
    return np.nan_to_num(spread)
