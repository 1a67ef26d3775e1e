"""Invariant linear regression."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from holdfast.estimators.contract import LinearRegressor, check_settings, weighted_rows
from holdfast.estimators.grouping import group_rows
from holdfast.estimators.linear import TableDescription, fit_linear
from holdfast.estimators.moments import MomentSums, add_moments, collect_moments, standardized
from holdfast.estimators.search.coordinates import Coordinates, coordinate_systems, rotated
from holdfast.estimators.search.dynamics import squared_program
from holdfast.estimators.search.evidence import squared_evidence


class HeteroRegressor(LinearRegressor):
    """Linear regression on the features whose effects are the same in all environments.

    Squared loss, coefficients in the Hadamard form w = u*u - v*v, one environment after the other in random orders,
    their differences amplified:

        g = g_e + k (g_e - g_mean),    u <- u (1 - eta g),    v <- v (1 + eta g)

    An effect that varies is washed out once its exponent, the mean of log(1 - eta g), is negative. Amplification k and
    step size eta are chosen from the exponents of the features in the training table, as
    `holdfast.estimators.search.washout` explains. Differences that sampling error explains are not amplified. The
    surviving features get the coefficients of pooled least squares: the dynamics would shrink them by eta (1 + k)^2 / 2
    times the variance of their effects, which for survivors is nothing but sampling error.

    Only the second moments of each environment are used, so the rows are read once.

    Args:
        amplification: k; None: chosen from the data.
        step_size: eta; None: chosen from the data.
        significance: level of the tests whether an effect varies. Smaller values select more features.
        tolerance: standard deviation of an effect over environments, as a share of it, that is too small to matter.
            With 0, the default, any variation beyond sampling error counts; with many rows, every real effect varies
            in this sense. A larger tolerance is for features that cannot be consequences of the response.
        orders: random orders of the environments whose runs are reported in `stability_`.
        level: "common": all environments share an intercept, and features that move with the level of an environment
            are suspicious. "environment": each environment has its own mean, and only effects are compared.
        rotation: the features may be an unknown rotation of what is invariant and what is not: look for coordinates
            first.
        random_state: of the orders.

    Attributes:
        coef_: (features,), exactly 0 where washed out.
        intercept_: a number.
        invariant_: (features,), True where the feature survived. With `rotation`, of the columns of `directions_`.
        stability_: table of features: coefficient, exponent, lowest and highest effect over the environments that
            measure it well and its range, whether it varies beyond sampling error, share of runs in which it survived.
        effects_: table of environments x features: the coefficient that a feature would have in an environment, all
            others as they are.
        advice_: sentences.
        amplification_, step_size_, compares_: the choice; `choice_` says why.
        environments_: labels.
        directions_: (features, coordinates), the coordinates that were used, of standardised features.
        coordinates_: their name: features, principal or joint.
        scale_, response_scale_: standard deviations of the features and of the response.
        paths_: coefficients (of standardised variables) in the runs at the chosen amplification.

    Reference: Xu, Gu and Fang (NeurIPS 2024) for HeteroSGD; amplification and automatic choice are ours.

    Example, the second feature follows the response more closely in one environment than in the other:
        >>> random = np.random.default_rng(0)
        >>> environments = np.repeat(["north", "south"], 1000)
        >>> cause = random.standard_normal(2000)
        >>> y = cause + random.standard_normal(2000)
        >>> follower = np.where(environments == "north", 1.5, 0.5) * y + random.standard_normal(2000)
        >>> model = HeteroRegressor().fit(np.column_stack([cause, follower]), y, environments=environments)
        >>> model.invariant_.tolist(), model.coef_.round(1).tolist()
        ([True, False], [1.0, 0.0])
    """

    def __init__(
        self,
        *,
        amplification=None,
        step_size=None,
        significance=0.001,
        tolerance=0.0,
        orders=8,
        level="common",
        rotation=False,
        random_state=0,
    ):
        self.amplification = amplification
        self.step_size = step_size
        self.significance = significance
        self.tolerance = tolerance
        self.orders = orders
        self.level = level
        self.rotation = rotation
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, environments: Any = None, sample_weight: Any = None) -> "HeteroRegressor":
        """Fit to a table.

        Args:
            X: (rows, features).
            y: (rows,).
            environments: one label for each row, of any kind; None: one environment.
            sample_weight: how many rows each row stands for.
        """
        seed = check_settings(self)
        X, y = validate_data(self, X, y, y_numeric=True, dtype=[np.float64, np.float32])
        x, y, grouping, weights = weighted_rows(X, y, environments, sample_weight)
        return self._fit_moments(collect_moments(x, y, grouping, None if sample_weight is None else weights), seed)

    def fit_chunks(self, chunks: Iterable[tuple]) -> "HeteroRegressor":
        """Fit to a table that does not fit into memory.

        Args:
            chunks: of (X, y) or (X, y, environments), in any order; read once.
        """
        seed = check_settings(self)
        total: MomentSums | None = None
        for X, y, *rest in chunks:
            X, y = validate_data(
                self, X, y, y_numeric=True, dtype=[np.float64, np.float32], reset=total is None, ensure_min_samples=1
            )
            moments = collect_moments(X, y, group_rows(rest[0] if rest else None, len(X)))
            total = moments if total is None else add_moments(total, moments)
        if total is None:
            raise ValueError("chunks must hold at least one chunk, got none")
        return self._fit_moments(total, seed)

    def _fit_moments(self, moments: MomentSums, seed: int) -> "HeteroRegressor":
        known = standardized(moments, within=self.level == "environment")
        names = getattr(self, "feature_names_in_", [f"x{number}" for number in range(len(known.constant))])
        units = (known.scale[:-1], known.scale[-1], known.constant, 1.0)
        table = TableDescription(names, moments.labels, *units, "the mean of the response")

        def problem(system: Coordinates):
            turned = known if system.name == "features" else rotated(known, system.directions)
            return squared_evidence(turned, self.tolerance), squared_program(turned, self.tolerance)

        systems = coordinate_systems(known.second, known.counts, self.rotation)
        self.coef_, _ = fit_linear(self, table, systems, problem, seed)
        self.intercept_ = float(known.location[-1] - known.location[:-1] @ self.coef_)
        return self
