"""Invariant logistic regression."""

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from holdfast.estimators.contract import BinaryClassifier, check_settings, two_classes, weighted_rows
from holdfast.estimators.linear import SimulatedDynamics, TableDescription, fit_linear
from holdfast.estimators.scaling import standard_units
from holdfast.estimators.search.coordinates import Coordinates, coordinate_systems
from holdfast.estimators.search.dynamics import logistic_program
from holdfast.estimators.search.evidence import logistic_evidence
from holdfast.losses.logistic import LogisticRows


class HeteroClassifier(SimulatedDynamics, BinaryClassifier):
    """Logistic regression, for two classes, on the features whose effects are the same in all environments.

    As `HeteroRegressor`, with the logistic loss

        loss_e = mean over the rows of e of log(1 + exp(-s (z^T w + b))),    s = +-1

    The runs see at most 512 rows of each environment, drawn at random; the tests and the final fit of the surviving
    features see all of them. That fit has the weak ridge of one observation, so that it is finite if the classes can be
    separated.

    Args:
        amplification: k; None: chosen from the data.
        step_size: eta; None: chosen from the data.
        significance: level of the tests whether an effect varies. Smaller values select more features.
        tolerance: standard deviation of an effect over environments, as a share of it, that is too small to matter.
            With 0, the default, any variation beyond sampling error counts. A larger one needs more care than for
            regression: where classes are nearly separable, coefficients grow without bounds, and so does what is
            tolerated.
        orders: random orders of the environments whose runs are reported in `stability_`.
        rotation: the features may be an unknown rotation of what is invariant and what is not: look for coordinates
            first.
        random_state: of the orders and of the rows.

    Attributes:
        classes_: the two labels; coefficients are for the second.
        coef_: (1, features), exactly 0 where washed out.
        intercept_: (1,).
        invariant_, stability_, effects_, advice_, amplification_, step_size_, compares_, choice_, environments_,
            directions_, coordinates_, scale_, response_scale_, paths_: as in `HeteroRegressor`, effects in log-odds.

    Example:
        >>> random = np.random.default_rng(0)
        >>> environments = np.repeat(["north", "south", "west"], 1000)
        >>> cause = random.standard_normal(3000)
        >>> y = np.where(cause + random.logistic(size=3000) > 0, "yes", "no")
        >>> strength = np.repeat([2.0, 0.2, 1.0], 1000)
        >>> follower = strength * (y == "yes") + random.standard_normal(3000)
        >>> model = HeteroClassifier().fit(np.column_stack([cause, follower]), y, environments=environments)
        >>> model.invariant_.tolist()
        [True, False]
    """

    def __init__(
        self,
        *,
        pooling="auto",
        search="exponents",
        groups=None,
        significance=0.001,
        tolerance=0.0,
        rotation=False,
        amplification=None,
        step_size=None,
        orders=8,
        random_state=0,
    ):
        self.pooling = pooling
        self.search = search
        self.groups = groups
        self.significance = significance
        self.tolerance = tolerance
        self.rotation = rotation
        self.amplification = amplification
        self.step_size = step_size
        self.orders = orders
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, environments: Any = None, sample_weight: Any = None) -> "HeteroClassifier":
        """Fit to a table.

        Args:
            X: (rows, features).
            y: (rows,), two different labels.
            environments: one label for each row, of any kind; None: one environment.
            sample_weight: how many rows each row stands for.
        """
        seed = check_settings(self)
        X, y = validate_data(self, X, y, dtype=np.float64)
        x, y, grouping, weights = weighted_rows(X, y, environments, sample_weight)
        self.classes_, positive = two_classes(y)
        scaling = standard_units(x, weights)
        z, parts = scaling.apply(x), grouping.rows()
        names = getattr(self, "feature_names_in_", [f"x{number}" for number in range(x.shape[1])])
        share = float(np.average(positive, weights=weights))
        deviation, words = float(np.sqrt(share * (1 - share))), "the share of each class, whatever the features are"
        table = TableDescription(names, grouping.labels, scaling.scale, 1.0, scaling.constant, deviation, words)

        def problem(system: Coordinates):
            columns = (z if system.name == "features" else z @ system.directions).T
            rows = [LogisticRows(columns[:, own], positive[own].astype(float), weights[own]) for own in parts]
            return logistic_evidence(rows, self.tolerance), logistic_program(rows, self.tolerance, seed)

        counts = np.array([weights[own].sum() for own in parts])
        second = np.stack([(z[own] * weights[own, None]).T @ z[own] / weights[own].sum() for own in parts])
        systems = coordinate_systems(second, counts, self.rotation)
        found = fit_linear(self, table, systems, problem, seed)
        self.coef_, self.strict_coef_, self.pooled_coef_ = (model.coefficients[None] for model in found)
        self.intercept_ = np.atleast_1d(found.blended.intercept - scaling.location @ found.blended.coefficients)
        return self
