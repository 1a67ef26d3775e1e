"""Which stays the same in all environments: the features given the class, or the class given the features?

The head and `discover` assume the first: class differences that vary are a shortcut. If instead the class given the
features is what stays, and features are only distributed differently, class differences vary as well, but nothing is
spurious. Both assumptions can be tested.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import softmax
from scipy.stats import chi2

from holdfast.embeddings.variation import Variation, target_units
from holdfast.estimators.search.class_fits import softmax_regression
from holdfast.estimators.search.class_means import NEGLIGIBLE, quadratic_form_p_value

# An environment with fewer rows for each coefficient says nothing about them.
ROWS_PER_COEFFICIENT = 5


class InvarianceTests(NamedTuple):
    """P-values of both assumptions; small ones speak against them.

    Attributes:
        differences: the classes differ equally in all environments, in every direction.
        environment_effects: outside of the directions that vary, the environments have equal effects on the features,
            given the class.
        classes: the class given all features is the same in all environments, by logistic (or linear) regression.
        classes_of_rest: the class given the features outside of the directions that vary is.

    NaN where the rows are too few to tell.

    Example:
        >>> InvarianceTests(0.001, 0.5, 0.001, 0.5).differences
        0.001
    """

    differences: float
    environment_effects: float
    classes: float
    classes_of_rest: float


def compare_invariance(
    variation: Variation, coordinates: np.ndarray, targets: np.ndarray, environments: np.ndarray
) -> InvarianceTests:
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
        >>> from holdfast.core.class_moments import collect_class_moments
        >>> from holdfast.core.grouping import Grouping
        >>> random = np.random.default_rng(0)
        >>> environments = np.arange(6000) % 2
        >>> x = random.standard_normal((6000, 2)) + np.outer(environments, [1.5, 0.0])
        >>> y = (random.random(6000) < 1 / (1 + np.exp(-2 * x[:, 0]))).astype(int)
        >>> found = find_variation(collect_class_moments(x, y, Grouping(environments, [0, 1])))
        >>> tests = compare_invariance(found, found.components.coordinates(x), y, environments)
        >>> tests.differences < 0.01 < tests.classes
        True
    """
    rest = coordinates @ variation.rest
    return InvarianceTests(
        float(variation.p_values[0]) if len(variation.p_values) else np.nan,
        equal_environment_effects(variation),
        equal_given_features(coordinates, targets, environments, variation.components.continuous),
        equal_given_features(rest, targets, environments, variation.components.continuous),
    )


def equal_environment_effects(variation: Variation) -> float:
    """The p-value of equal effects a_e of the environments, outside of the directions that vary, given the target.

    This is the two-way analysis of variance of the means of the classes, m_ec = a_e + delta_c: the sum of squares that
    the environments explain beyond the classes. Observations are sqrt(n_ec) m_ec, with the covariances S_ec. For a
    continuous target they are sqrt(n_e) times the mean of the features and sqrt(n_e v_e) times the slope, with the
    covariance S_e, and the environments are compared at the same value of the target.

    Args:
        variation: the directions that vary, with the statistics of the classes.

    Example, class 1 is frequent in one environment, where all features are larger:
        >>> from holdfast.embeddings.variation import find_variation
        >>> from holdfast.core.class_moments import collect_class_moments
        >>> from holdfast.core.grouping import Grouping
        >>> random = np.random.default_rng(0)
        >>> environments = np.arange(2000) % 2
        >>> y = (random.random(2000) < np.array([0.1, 0.9])[environments]).astype(int)
        >>> x = random.standard_normal((2000, 2)) + y[:, None]
        >>> moved = x + environments[:, None]
        >>> found = [collect_class_moments(each, y, Grouping(environments, [0, 1])) for each in (x, moved)]
        >>> [equal_environment_effects(find_variation(each)) < 0.01 for each in found]
        [False, True]
    """
    statistics = variation.statistics
    if variation.components.continuous:
        observed, common, roots = _slope_observations(variation)
        covariances = np.concatenate([statistics.covariances[:, 0]] * 2)
    else:
        present = statistics.counts > 0
        environment, label = np.nonzero(present)
        weights = np.sqrt(statistics.counts[present])[:, None]
        observed, covariances = weights * statistics.means[present], statistics.covariances[present]
        common = weights * (label[:, None] == np.arange(present.shape[1]))
        roots = weights * (environment[:, None] == np.arange(present.shape[0]))
    effects = _projection(np.column_stack([common, roots])) - _projection(common)
    rest = variation.found.directions[:, variation.count :]
    if rest.shape[1] == 0 or round(np.trace(effects)) == 0:
        return np.nan
    statistic = float(np.sum((effects @ observed @ rest) ** 2))
    return quadratic_form_p_value(statistic, effects, rest.T @ covariances @ rest, statistics.freedom)


def _slope_observations(variation: Variation) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means and slopes of all environments, and the columns of their common line and of a mean for each."""
    sums = variation.components.moments.sums[:, 0]
    rows = sums[:, 0, 0]
    _, deviation = target_units(variation.components)
    slopes = np.diff(variation.statistics.means, axis=1)[:, 0]
    weights = np.sqrt(variation.statistics.counts[:, 0] / 2)  # sqrt(n_e v_e)
    none, roots = np.zeros(len(rows)), np.sqrt(rows)
    observed = np.concatenate([sums[:, 0, 2:] / roots[:, None], weights[:, None] * slopes])
    common = np.column_stack([[*roots, *none], [*(sums[:, 0, 1] / roots / deviation), *weights]])
    return observed, common, np.concatenate([np.diag(roots), np.zeros((len(rows), len(rows)))])


def _projection(columns: np.ndarray) -> np.ndarray:
    """On the space that the columns span."""
    vectors, values, _ = np.linalg.svd(columns, full_matrices=False)
    base = vectors[:, values > np.sqrt(NEGLIGIBLE) * values[0]]
    return base @ base.T


def equal_given_features(
    coordinates: np.ndarray, targets: np.ndarray, environments: np.ndarray, continuous: bool = False
) -> float:
    """The p-value of equal coefficients in all environments, of the regression of the target on the features.

        Q = sum_e (b_e - b)^T A_e (b_e - b),    A_e = H_e V_e^(-1) H_e,

    with H_e the curvature of the loss in environment e, V_e the sum of the squared gradients of its rows, b_e one
    Newton step from the fit of all rows, and b the mean with the weights A_e. Q is a chi-square variable with
    (environments - 1) * coefficients degrees of freedom if the regression is the true relation: a curved one has other
    coefficients where features are distributed differently.

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
    chances = softmax(design[:, :-1] @ scores.coefficients.T + scores.intercept, axis=1)
    errors = (chances - np.eye(classes)[targets])[:, 1:]
    own = chances[:, 1:]
    return errors, own[:, :, None] * (np.eye(classes - 1) - own[:, None, :])
