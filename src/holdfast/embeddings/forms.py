"""Which stays the same in all environments: the features given the class, or the class given the features?

The head and `discover` assume the first: class differences that vary are a shortcut. If instead the class given the
features is what stays, and features are only distributed differently, class differences vary as well, but nothing is
spurious. Both assumptions can be tested.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import softmax
from scipy.stats import chi2

from holdfast.embeddings.variation import Variation
from holdfast.estimators.search.class_means import class_differences
from holdfast.estimators.search.logistic_fit import softmax_regression

# A class of an environment with fewer rows for each coefficient says nothing about them.
ROWS_PER_COEFFICIENT = 5


class InvarianceForms(NamedTuple):
    """Probabilities of the data under both assumptions; small ones speak against them.

    Attributes:
        differences: the classes differ equally in all environments, in every direction.
        levels: outside of the directions that vary, features are at the same level in all environments, given the
            class.
        classes: the class given all features is the same in all environments.
        classes_of_rest: the class given the features outside of the directions that vary is.

    NaN where the rows are too few to tell.

    Example:
        >>> InvarianceForms(0.001, 0.5, 0.001, 0.5).differences
        0.001
    """

    differences: float
    levels: float
    classes: float
    classes_of_rest: float


def compare_forms(
    variation: Variation, coordinates: np.ndarray, targets: np.ndarray, environments: np.ndarray
) -> InvarianceForms:
    """Test both assumptions on the same rows.

    The class given the features is compared by multinomial logistic regression (a continuous target by least squares):
    do its coefficients differ between environments by more than their sampling errors, which hold also where the model
    is not linear?

    Args:
        variation: what varies.
        coordinates: (rows, components), of its components.
        targets: (rows,), the number of the class of each row, or a continuous target.
        environments: (rows,), the number of the environment.

    Reference: H. White, Econometrica 50 (1982), sampling errors of models that are not true.

    Example, features move between environments, but the class given the features stays:
        >>> from holdfast.embeddings.variation import find_variation
        >>> from holdfast.estimators.class_moments import collect_class_moments
        >>> from holdfast.estimators.grouping import Grouping
        >>> random = np.random.default_rng(0)
        >>> environments = np.arange(6000) % 2
        >>> x = random.standard_normal((6000, 2)) + np.outer(environments, [1.5, 0.0])
        >>> y = (random.random(6000) < 1 / (1 + np.exp(-2 * x[:, 0]))).astype(int)
        >>> found = find_variation(collect_class_moments(x, y, Grouping(environments, [0, 1])))
        >>> forms = compare_forms(found, found.components.coordinates(x), y, environments)
        >>> forms.differences < 0.01 < forms.classes
        True
    """
    rest = coordinates @ variation.rest
    return InvarianceForms(
        float(variation.significance[0]) if len(variation.significance) else np.nan,
        _levels_of_rest(variation),
        equal_given_features(coordinates, targets, environments, variation.components.continuous),
        equal_given_features(rest, targets, environments, variation.components.continuous),
    )


def _levels_of_rest(variation: Variation) -> float:
    """Cochran's test of equal levels a_e, in coordinates of variance 1 within classes."""
    statistics, components = variation.statistics, variation.components
    if components.continuous:
        sums = components.moments.sums[:, 0]
        rows = sums[:, 0, 0]
        slope = np.diff(class_differences(statistics).differences, axis=0)[0]
        total = sums.sum(0)
        mean = total[0, 1] / total[0, 0]
        deviation = np.sqrt(total[1, 1] / total[0, 0] - mean**2)
        levels = sums[:, 0, 2:] / rows[:, None] - np.outer((sums[:, 0, 1] / rows - mean) / deviation, slope)
    else:
        rows = statistics.counts.sum(1)
        own = statistics.means - class_differences(statistics).differences
        levels = np.einsum("ec,ecf->ef", statistics.counts / rows[:, None], own)
    levels = levels @ variation.found.directions[:, variation.count :]
    degrees = (len(rows) - 1) * levels.shape[1]
    statistic = float(rows @ (levels - rows @ levels / rows.sum()) ** 2 @ np.ones(levels.shape[1]))
    return float(chi2.sf(statistic, degrees)) if degrees else np.nan


def equal_given_features(
    coordinates: np.ndarray, targets: np.ndarray, environments: np.ndarray, continuous: bool = False
) -> float:
    """The probability of coefficients that differ so much between environments, if they are equal in all.

        Q = sum_e (b_e - b)^T A_e (b_e - b),    A_e = H_e V_e^(-1) H_e,

    with H_e the curvature of the loss in environment e, V_e the sum of the squared gradients of its rows, b_e one
    Newton step from the fit of all rows, and b the mean with the weights A_e. Q is a chi-square variable with
    (environments - 1) * coefficients degrees of freedom.

    Args:
        coordinates: (rows, features).
        targets: (rows,), codes of classes, or a continuous target.
        environments: (rows,), codes.
        continuous: whether the target is a number.

    Reference: W. G. Cochran, Biometrics 10 (1954).

    Example:
        >>> random = np.random.default_rng(0)
        >>> x, environments = random.standard_normal((2000, 1)), np.arange(2000) % 2
        >>> y = x[:, 0] * np.array([1.0, 2.0])[environments] + random.standard_normal(2000)
        >>> equal_given_features(x, y, environments, continuous=True) < 1e-6
        True
    """
    design = np.column_stack([coordinates, np.ones(len(coordinates))]).astype(float)
    classes = 2 if continuous else int(targets.max()) + 1
    size = design.shape[1] * (classes - 1)
    numbers = np.unique(environments)
    smallest = min(np.sum(environments == number) for number in numbers)
    if len(numbers) < 2 or classes < 2 or smallest < ROWS_PER_COEFFICIENT * size:
        return np.nan
    errors, curvatures = _residuals(design, targets, classes, continuous)
    steps, weights = [], []
    for number in numbers:
        own = environments == number
        gradients = (errors[own][:, :, None] * design[own][:, None]).reshape(-1, size)
        curvature = np.einsum("icd,if,ig->cfdg", curvatures[own], design[own], design[own], optimize=True)
        curvature = curvature.reshape(size, size)
        rows = int(own.sum())
        # the inverse of an estimated covariance is too large on average, by rows / (rows - size - 1)
        spread = np.cov(gradients.T).reshape(size, size) * rows**2 / (rows - size - 1)
        steps.append(-np.linalg.pinv(curvature, hermitian=True) @ gradients.sum(0))
        weights.append(curvature @ np.linalg.pinv(spread, hermitian=True) @ curvature)
    mean = np.linalg.pinv(sum(weights), hermitian=True) @ sum(a @ b for a, b in zip(weights, steps, strict=True))
    statistic = sum(float((b - mean) @ a @ (b - mean)) for a, b in zip(weights, steps, strict=True))
    return float(chi2.sf(statistic, (len(numbers) - 1) * size))


def _residuals(
    design: np.ndarray, targets: np.ndarray, classes: int, continuous: bool
) -> tuple[np.ndarray, np.ndarray]:
    """(rows, classes - 1) and (rows, classes - 1, classes - 1): derivatives of the loss by the scores, at the fit."""
    if continuous:
        fit = np.linalg.lstsq(design, np.asarray(targets, float), rcond=None)[0]
        return (design @ fit - targets)[:, None], np.ones((len(design), 1, 1))
    scores = softmax_regression(design[:, :-1].T, targets, classes, np.ones(len(design)))
    chances = softmax(design[:, :-1] @ scores.coefficients.T + scores.intercepts, axis=1)
    errors = (chances - np.eye(classes)[targets])[:, 1:]
    own = chances[:, 1:]
    return errors, own[:, :, None] * (np.eye(classes - 1) - own[:, None, :])
