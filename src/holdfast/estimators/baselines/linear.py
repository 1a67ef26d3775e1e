"""Linear regressions and logistic regression to compare with: pooled, and by published methods that need no descent."""

from itertools import combinations
from typing import Any

import numpy as np
from scipy.linalg import eigh
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, lars_path
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from holdfast.core.grouping import Grouping, group_rows
from holdfast.core.moments import StandardizedMoments, collect_moments, standard_units, standardized
from holdfast.core.names import for_comparisons
from holdfast.estimators.contract import LinearClassifier, LinearRegressor

# A reference with fewer rows for each feature has no second moments to speak of.
ROWS_PER_FEATURE = 2
# The objective has no minimum from a certain gamma on; of the way there, this share is taken at most.
LARGEST_SHARE = 0.5
# Second moments are compared up to this share of the reference, for features that do not vary in it.
RIDGE = 1e-8
# A test of equal residuals in an environment needs a few of them; smaller ones are left out of the tests.
FEWEST_ROWS = 10
# All sets of features are searched: 2^16 of them take seconds, each further feature doubles that.
MOST_FEATURES = 16


def regression_rows(
    estimator: Any, X: Any, y: Any, environments: Any, **options: Any
) -> tuple[np.ndarray, np.ndarray, Grouping]:
    """Rows of numbers for a linear regression, and their environments, whose labels the estimator learns.

    Args:
        estimator: that is fitted.
        X: (rows, features).
        y: (rows,).
        environments: one label for each row; None: one environment.
        options: of scikit-learn's `validate_data`.

    Example:
        >>> regression_rows(PooledRegressor(), [[1], [2]], [3, 4], ["a", "b"])[2].labels
        ['a', 'b']
    """
    inputs, targets = validate_data(estimator, X, y, y_numeric=True, dtype=np.float64, **options)
    grouping = group_rows(environments, len(targets))
    estimator.environments_ = grouping.labels
    return inputs, targets, grouping


class PooledRegressor(LinearRegressor):
    """Least squares or ridge regression on all rows: scikit-learn's, with an argument for the environments.

        sum_i (y_i - w x_i - b)^2 + regularization * rows * |w|^2

    Args:
        regularization: 0 for least squares.

    Attributes:
        coef_: (features,), w.
        intercept_: b.
        environments_: the labels of the environments.

    Example:
        >>> PooledRegressor().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).predict([[3.0]]).round(6)
        array([7.])
    """

    def __init__(self, regularization: float = 0.0):
        self.regularization = regularization

    def fit(self, X: Any, y: Any, *, environments: Any = None) -> "PooledRegressor":
        """Fit; the environments are checked and not used."""
        inputs, targets, _ = regression_rows(self, X, y, environments)
        if self.regularization < 0:
            raise ValueError(f"regularization must be at least 0, got {self.regularization}")
        penalty = self.regularization * len(targets)
        fitted = (Ridge(penalty) if penalty else LinearRegression()).fit(inputs, targets)
        self.coef_, self.intercept_ = fitted.coef_, float(fitted.intercept_)
        return self


class PooledClassifier(LinearClassifier):
    """Logistic regression on all rows with standardised features: scikit-learn's, with an argument for environments.

    Args:
        regularization: of the coefficients of standardised features, relative to the mean loss.

    Attributes:
        classes_: the labels.
        coef_: (1, features) for two classes, (classes, features) for more.
        intercept_: (1,) or (classes,).

    Example:
        >>> PooledClassifier().fit([[-2.0], [-1.0], [1.0], [2.0]], list("aabb")).predict([[3.0]])
        array(['b'], dtype='<U1')
    """

    def __init__(self, regularization: float = 1e-4):
        self.regularization = regularization

    def fit(self, X: Any, y: Any, *, environments: Any = None) -> "PooledClassifier":
        """Fit; the environments are checked and not used."""
        inputs, labels = validate_data(self, X, y, dtype=np.float64)
        group_rows(environments, len(labels))
        if not self.regularization > 0:
            raise ValueError(f"regularization must be above 0, got {self.regularization}")
        inverse = 1 / (self.regularization * len(labels))
        scaling = standard_units(inputs)
        fitted = LogisticRegression(C=inverse, max_iter=1000).fit(scaling.apply(inputs), labels)
        self.coef_, shift = scaling.undo(fitted.coef_)
        self.classes_, self.intercept_ = fitted.classes_, fitted.intercept_ + shift
        return self


class AnchorRegressor(LinearRegressor):
    """Least squares that pays more for errors which differ between environments on average.

        sum_i (y_i - w x_i)^2 + (gamma - 1) sum_i (mean of y - w x in the environment of i)^2,    y and x centred

    The work is done by the package `ivmodels`, which gets an indicator of each environment but the first as anchors.

    Reference: D. Rothenhäusler, N. Meinshausen, P. Bühlmann, J. Peters, *Anchor regression: heterogeneous data meet
    causality*, Journal of the Royal Statistical Society B 83 (2021), eq. 6.

    Args:
        gamma: 1 is least squares; larger values protect against larger shifts of the means.

    Attributes:
        coef_: (features,).
        intercept_: a number.
        environments_: the labels of the environments.

    Example:
        >>> inputs, environments = np.array([[0.0], [1.0], [2.0], [4.0]]), ["a", "a", "b", "b"]
        >>> AnchorRegressor(gamma=1.0).fit(inputs, 2 * inputs[:, 0], environments=environments).coef_.round(6)
        array([2.])
    """

    def __init__(self, gamma: float = 5.0):
        self.gamma = gamma

    def fit(self, X: Any, y: Any, *, environments: Any = None) -> "AnchorRegressor":
        """Fit; with one environment there is no anchor, and the result is least squares."""
        inputs, targets, grouping = regression_rows(self, X, y, environments, ensure_min_samples=2)
        if not self.gamma > 0:
            raise ValueError(f"gamma must be above 0, got {self.gamma}")
        if grouping.count == 1:
            fitted = PooledRegressor().fit(inputs, targets)
        else:
            indicators = (grouping.codes[:, None] == np.arange(1, grouping.count)).astype(float)
            package = for_comparisons("ivmodels.models.anchor_regression", "anchor regression")
            fitted = package.AnchorRegression(gamma=self.gamma).fit(inputs, targets, Z=indicators)
        self.coef_ = np.asarray(fitted.coef_, float).ravel()
        self.intercept_ = float(fitted.intercept_)
        return self


class InvariantGradientRegressor(LinearRegressor):
    """Least squares that pays more for the errors that environments add to those of a reference.

        L_0(w) + gamma sum_e p_e (L_e(w) - L_0(w)),    L_e(w) = E_e (y - w x)^2,    p_e = share of the rows in e

    A quadratic in w, solved from second moments. gamma = 1 is least squares through the origin; as gamma grows, the
    gradients of the losses become equal. If an environment varies less than the reference in some direction, the
    objective has no minimum from a certain gamma on, and a smaller one is used. Known as DRIG.

    The means of a known reference are the origin, so that shifts of the mean count as interventions. Where nobody knows
    the reference, its means are as arbitrary as any, and the origin is the mean of all rows.

    Reference: X. Shen, P. Bühlmann, A. Taeb, *Causality-oriented robustness: exploiting general noise interventions*,
    arXiv:2307.10299 (2023). Objective, weights and origin are those of the authors' code (`est_drig` of
    github.com/xwshen51/DRIG). Neither has a default gamma: the examples of the paper use 5, single cells up to 20.

    Args:
        gamma: at least 0; larger values protect against stronger interventions than those seen.
        reference: the label of the environment without interventions; None: the one whose features and target vary
            least, in standard units, among those with two rows for each feature.

    Attributes:
        coef_: (features,).
        intercept_: a number.
        gamma_: what was used.
        reference_: the label of the reference.
        environments_: the labels of the environments.

    Example, the second feature follows y and is disturbed in the second environment:
        >>> random, environments = np.random.default_rng(0), np.repeat(["calm", "storm"], 500)
        >>> cause = np.where(environments == "calm", 1, 2) * random.standard_normal(1000)
        >>> y = cause + random.standard_normal(1000)
        >>> follower = y + np.where(environments == "calm", 0.5, 2) * random.standard_normal(1000)
        >>> X = np.column_stack([cause, follower])
        >>> for gamma in (1.0, 20.0):
        ...     model = InvariantGradientRegressor(gamma).fit(X, y, environments=environments)
        ...     print(model.reference_, model.coef_.round(1))
        calm [0.7 0.3]
        calm [1.  0.1]
    """

    def __init__(self, gamma: float = 5.0, *, reference: Any = None):
        self.gamma = gamma
        self.reference = reference

    def fit(self, X: Any, y: Any, *, environments: Any = None) -> "InvariantGradientRegressor":
        """Fit; with one environment the result is least squares."""
        inputs, targets, grouping = regression_rows(self, X, y, environments)
        if not self.gamma >= 0:
            raise ValueError(f"gamma must be at least 0, got {self.gamma}")
        labels, parts = list(grouping.labels), grouping.rows()
        if self.reference is not None and self.reference not in labels:
            raise ValueError(f"reference must be among {labels}, got {self.reference!r}")
        scaling, response = standard_units(inputs), standard_units(targets[:, None])
        counts = np.array([len(rows) for rows in parts])
        if self.reference is None:
            both = np.column_stack([scaling.apply(inputs), response.apply(targets[:, None])])
            large = counts >= min(ROWS_PER_FEATURE * inputs.shape[1], counts.max())
            reference = int(np.argmin(np.where(large, [both[rows].var(0).sum() for rows in parts], np.inf)))
        else:
            reference = labels.index(self.reference)
            scaling = scaling._replace(location=inputs[parts[reference]].mean(0))
            response = response._replace(location=targets[parts[reference]].mean(keepdims=True))
            both = np.column_stack([scaling.apply(inputs), response.apply(targets[:, None])])
        products = np.stack([both[rows].T @ both[rows] / len(rows) for rows in parts])
        second, cross = products[:, :-1, :-1], products[:, :-1, -1]
        shares = counts / counts.sum()
        pooled, pooled_cross = np.einsum("e,eij->ij", shares, second), shares @ cross
        self.gamma_ = min(float(self.gamma), _largest_gamma(pooled, second[reference]))
        quadratic = second[reference] + self.gamma_ * (pooled - second[reference])
        linear = cross[reference] + self.gamma_ * (pooled_cross - cross[reference])
        found = np.linalg.pinv(quadratic, hermitian=True) @ linear
        self.coef_, shift = scaling.undo(found * response.scale[0])
        self.intercept_ = float(response.location[0] + shift)
        self.reference_ = labels[reference]
        return self


def _largest_gamma(pooled: np.ndarray, reference: np.ndarray) -> float:
    """Half of the way from 1 to where gamma pooled - (gamma - 1) reference stops being positive definite.

    That is gamma / (gamma - 1) = s, for s the largest variance of the reference relative to all rows in any direction.
    """
    if not len(pooled):
        return np.inf
    ridge = RIDGE * np.eye(len(pooled))
    largest = float(eigh(reference + ridge, pooled + ridge, eigvals_only=True)[-1])
    return np.inf if largest <= 1 else 1 + LARGEST_SHARE * (largest / (largest - 1) - 1)


class InvariantCausalRegressor(LinearRegressor):
    """Least squares on the features that belong to every set which predicts the target equally well everywhere.

    All sets of features are tested, by the package `causalicp`, for residuals whose mean and variance do not depend on
    the environment; the intersection of the accepted sets is the estimate, which errs on the side of leaving out. The
    sets are drawn from the first few features on the path of the lasso, since their number doubles with each.

    Reference: J. Peters, P. Bühlmann, N. Meinshausen, *Causal inference by using invariant prediction*, Journal of the
    Royal Statistical Society B 78 (2016), Method II; the preselection as in section 3.5.

    Args:
        significance: level of the tests.
        candidates: features on the path of the lasso whose sets are tested.

    Attributes:
        invariant_: (features,), True for those in the estimate; if there are none, the mean is predicted.
        accepted_: whether any set was accepted at all; if not, the model is wrong for these data.
        coef_: (features,), of least squares on the estimate, 0 elsewhere.
        intercept_: a number.
        environments_: the labels of the environments.

    Example, the second feature follows y with a sign that changes:
        >>> random, environments = np.random.default_rng(0), np.repeat([0, 1], 100)
        >>> cause = (1 + environments) * random.standard_normal(200)
        >>> y = cause + 0.5 * random.standard_normal(200)
        >>> follower = (1 - 3 * environments) * y + 0.5 * random.standard_normal(200)
        >>> model = InvariantCausalRegressor().fit(np.column_stack([cause, follower]), y, environments=environments)
        >>> model.invariant_.tolist()
        [True, False]
    """

    def __init__(self, significance: float = 0.05, *, candidates: int = 8):
        self.significance = significance
        self.candidates = candidates

    def fit(self, X: Any, y: Any, *, environments: Any = None) -> "InvariantCausalRegressor":
        """Fit; with one environment nothing can be tested, and the estimate is empty."""
        inputs, targets, grouping = regression_rows(self, X, y, environments)
        if not 0 < self.significance < 1:
            raise ValueError(f"significance must be between 0 and 1, got {self.significance}")
        chosen = _on_lasso_path(inputs, targets, self.candidates)
        parts = [rows for rows in grouping.rows() if len(rows) >= FEWEST_ROWS]
        found: set[int] | None = set()
        if len(parts) > 1 and len(chosen):
            data = [np.column_stack([inputs[np.ix_(rows, chosen)], targets[rows]]) for rows in parts]
            package = for_comparisons("causalicp", "invariant causal prediction")
            found = package.fit(data, len(chosen), alpha=float(self.significance)).estimate
        self.accepted_ = found is not None
        self.invariant_ = np.isin(np.arange(inputs.shape[1]), chosen[sorted(found or ())])
        selected = inputs[:, self.invariant_]
        centre, mean = selected.mean(0), targets.mean()
        self.coef_ = np.zeros(inputs.shape[1])
        self.coef_[self.invariant_] = np.linalg.lstsq(selected - centre, targets - mean, rcond=None)[0]
        self.intercept_ = float(mean - self.coef_[self.invariant_] @ centre)
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # without environments it predicts the mean
        return tags


def _on_lasso_path(inputs: np.ndarray, targets: np.ndarray, count: int) -> np.ndarray:
    """The features that enter the path of the lasso first, in their order in the table."""
    scaling = standard_units(inputs)
    varying = np.flatnonzero(~scaling.constant)
    if len(varying) <= count:
        return varying
    _, _, coefficients = lars_path(scaling.apply(inputs)[:, varying], targets - targets.mean(), method="lasso")
    entry = np.where(coefficients.any(1), (coefficients != 0).argmax(1), coefficients.shape[1])
    return np.sort(varying[np.argsort(entry, kind="stable")[:count]])


class InvariantLeastSquares(LinearRegressor):
    """Least squares that pays for each feature it uses whose product with the residual differs from 0 somewhere.

        mean_e E_e (y - w x)^2 + penalty sum_{j: w_j != 0} mean_e (E_e [x_j (y - w x)])^2

    For a fixed set of features this is a quadratic in w; all sets are searched. Features and target are standardised,
    so that the penalty has no unit. Known as EILLS.

    Reference: J. Fan, C. Fang, Y. Gu, T. Zhang, *Environment invariant linear least squares*, Annals of Statistics 52
    (2024), eq. 3.4; with equal weights of the environments.

    Args:
        penalty: gamma; the paper uses 20 in its simulations.

    Attributes:
        invariant_: (features,), True for those in use.
        coef_: (features,).
        intercept_: a number.
        environments_: the labels of the environments.

    Example:
        >>> from holdfast.datasets import toy_dataset
        >>> data = toy_dataset(1.0, 0.5, seed=0, samples=500).train
        >>> fitted = InvariantLeastSquares().fit(data.inputs, data.targets, environments=data.environments)
        >>> bool(fitted.invariant_[:3].all()), bool(fitted.invariant_[3:6].any())
        (True, False)
    """

    def __init__(self, penalty: float = 20.0):
        self.penalty = penalty

    def fit(self, X: Any, y: Any, *, environments: Any = None) -> "InvariantLeastSquares":
        """Fit; with one environment the result is least squares."""
        inputs, targets, grouping = regression_rows(self, X, y, environments)
        if not self.penalty >= 0:
            raise ValueError(f"penalty must be at least 0, got {self.penalty}")
        if inputs.shape[1] > MOST_FEATURES:
            raise ValueError(f"X must have at most {MOST_FEATURES} features, since all sets of them are searched, "
                             f"got {inputs.shape[1]}")  # fmt: skip
        known = standardized(collect_moments(inputs, targets, grouping))
        chosen, coefficients = _best_set(known, self.penalty)
        self.invariant_ = np.isin(np.arange(inputs.shape[1]), chosen)
        self.coef_ = np.zeros(inputs.shape[1])
        self.coef_[chosen] = coefficients * known.scale[-1] / known.scale[chosen]
        self.intercept_ = float(known.location[-1] - known.location[:-1] @ self.coef_)
        return self


def _best_set(known: StandardizedMoments, penalty: float) -> tuple[np.ndarray, np.ndarray]:
    """The set of features with the lowest objective, and their coefficients; sets of one size are solved together."""
    second, cross = known.second, known.cross
    features, count = second.shape[1], len(second)
    best: tuple[float, np.ndarray, np.ndarray] = (0.0, np.array([], int), np.array([]))  # w = 0, less E y^2
    for size in range(1, features + 1):
        sets = np.array(list(combinations(range(features), size)))
        inner = second[:, sets[:, :, None], sets[:, None, :]]  # (environments, sets, size, size)
        outer = cross[:, sets]
        # mean over e of w M w - 2 w c + penalty |M w - c|^2
        quadratic = inner.mean(0) + penalty / count * np.einsum("esji,esjk->sik", inner, inner)
        linear = outer.mean(0) + penalty / count * np.einsum("esji,esj->si", inner, outer)
        solved = np.einsum("sij,sj->si", np.linalg.pinv(quadratic, hermitian=True), linear)
        objective = penalty * np.square(outer).mean(0).sum(1) - np.einsum("si,si->s", linear, solved)
        lowest = int(objective.argmin())
        if objective[lowest] < best[0]:
            best = (float(objective[lowest]), sets[lowest], solved[lowest])
    return best[1], best[2]
