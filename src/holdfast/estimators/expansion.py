"""Smooth effects and interactions as columns of a linear model, in groups that are tested together."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from holdfast.core.grouping import group_rows
from holdfast.core.linear_algebra import spline_basis, spline_width
from holdfast.core.moments import MomentSums, Scaling, standard_units, standardized
from holdfast.estimators.contract import KnotCount, Significance, check_settings
from holdfast.estimators.screening import MOST_INTERACTING, LineErrors, needed_terms, sampled_rows, squared_errors

# Rows beyond each of the outer knots, but never more than a share of all: too few to say how an effect bends there.
OUTER_ROWS, OUTER_SHARE = 40, 0.05
# Knots for so many rows, and how they grow: the misfit of a cubic spline with K knots falls with K^-4, and must stay
# below the sampling error, n^-1/2, or the tests take it for a difference between environments. So K grows faster than
# n^1/8.
KNOTS, KNOT_ROWS, KNOT_RATE, MOST_KNOTS = 8, 2_000, 0.2, 40
# Terms are looked for in at most so many rows: what that many do not reveal bends too little to matter.
SCREENED_ROWS = 20_000
# Knots are placed, and terms looked for, in a random sample of at most so many rows: a quantile of these is off by at
# most a rank of 0.4 %, at three standard errors, and a sample of 20 columns takes 20 MiB.
SAMPLED_ROWS = 1 << 17
# A column with fewer different knots than this, such as an indicator, has no curve.
FEWEST_KNOTS = 4
# Points of a curve, between these quantiles of its column: beyond them there are too few rows to say anything.
POINTS, OUTER = 41, (0.01, 0.99)
# Directions with less than this share of the largest eigenvalue are not measured in an environment, where each feature
# counts in units of its standard deviation over all rows.
NEGLIGIBLE = 1e-9


@dataclass(kw_only=True, eq=False, repr=False)
class TermSettings:
    """Which curves and products a model has; `EffectExpansion` explains the fields."""

    effects: Literal["auto", "smooth", "linear"] = "auto"
    interactions: bool | Literal["auto"] = "auto"
    knots: KnotCount = "auto"
    significance: Significance = 0.001


class EffectExpansion(TermSettings, TransformerMixin, BaseEstimator):
    """The columns of a table with curves and products, so that a linear model of them has smooth effects.

        x_j  ->  B_1(x_j), ..., B_m(x_j),    (x_i, x_j)  ->  (x_i - mean) (x_j - mean)

    with B_k the cubic splines that scikit-learn's `SplineTransformer` has, straight beyond the outer knots. `groups_`
    says which of the new columns belong together, and is what `HeteroRegressor(groups=...)` expects: all columns of one
    curve share the number of the column that they come from, and a product needs both of its columns.

    With "auto" a column gets a curve, and a pair a product, if the straight lines of single environments miss it
    (`holdfast.estimators.screening`): a curve that is seen within environments is no difference between them.

    Args:
        effects: "auto": curves for columns that need one; "smooth": for all columns; "linear": for none.
        interactions: "auto": products of pairs that need one; True: of all pairs; False: of none. With "auto", none
            are looked for among more than 30 columns.
        knots: of each curve; "auto": 8 for 2,000 rows, growing with the fifth root of their number.
        significance: level of the tests that a curve or a product is needed, over all of them together.

    Attributes:
        curved_: (columns,), which columns have a curve.
        interacting_: pairs of columns with a product.
        knots_: column with a curve -> its knots.
        groups_: for each new column the number of its column, or the pair of numbers of a product.

    Reference: J. H. Friedman, *Multivariate adaptive regression splines*, Annals of Statistics 19 (1991), for terms of
        one and two columns that are added where the data ask for them.

    Example:
        >>> random = np.random.default_rng(0)
        >>> x = random.standard_normal((1000, 3))
        >>> y = x[:, 0] ** 2 + x[:, 1] * x[:, 2] + random.standard_normal(1000)
        >>> expansion = EffectExpansion().fit(x, y)
        >>> expansion.curved_.tolist(), expansion.interacting_
        ([True, False, False], [(1, 2)])
    """

    def fit(self, X: Any, y: Any = None, *, environments: Any = None) -> "EffectExpansion":
        """Place the knots and choose the terms.

        Args:
            X: (rows, columns).
            y: (rows,), numbers; only "auto" needs them.
            environments: one label for each row; None: one environment.
        """
        check_settings(self)
        if y is None:
            x = validate_data(self, X, dtype=np.float64)
            errors = None
        else:
            x, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
            errors = squared_errors(x, y, group_rows(environments, len(x)).rows())
        return self.fit_errors(x, errors)

    def fit_errors(
        self,
        x: np.ndarray,
        errors: LineErrors | None,
        *,
        rows: int | None = None,
        scaling: Scaling | None = None,
    ) -> "EffectExpansion":
        """As `fit`, for any loss, and for some rows of a larger table.

        Args:
            x: (rows, columns), checked.
            errors: of the straight lines, from `screening`; None where nothing is "auto".
            rows: of the table that these are drawn from, of which there can be more knots; None: these are all.
            scaling: means and standard deviations of its columns; None: of these rows.
        """
        self.n_features_in_ = x.shape[1]
        self._scaling = standard_units(x) if scaling is None else scaling
        columns = range(x.shape[1])
        placed = {number: self._place_knots(x[:, number], len(x) if rows is None else rows) for number in columns}
        known = {number: knots for number, knots in placed.items() if knots is not None}
        can_bend = list(known)
        pairs = list(combinations(columns, 2)) if self.interactions else []
        if self.interactions == "auto" and len(columns) > MOST_INTERACTING:
            pairs = []
        if "auto" not in (self.effects, self.interactions):
            chosen = set(range(len(can_bend) + len(pairs)))
        elif errors is None:
            # scikit-learn's own checks ask for these words
            raise ValueError("effects or interactions 'auto' requires y to be passed, but the target y is None")
        else:
            sample = sampled_rows(len(x), SCREENED_ROWS)
            curves = [spline_basis(x[sample, number], known[number]) for number in can_bend]
            products = list(self._products(pairs, x[sample]).T[:, :, None])
            chosen = set(needed_terms([*curves, *products], errors.at(sample), self.significance))
        bent = [number for position, number in enumerate(can_bend) if position in chosen]
        joined = [pair for position, pair in enumerate(pairs, len(can_bend)) if position in chosen]
        curved = {"linear": [], "smooth": can_bend, "auto": bent}[self.effects]
        self.knots_ = {number: known[number] for number in curved}
        self.curved_ = np.isin(np.arange(x.shape[1]), curved)
        self.interacting_ = joined if self.interactions == "auto" else pairs
        self.groups_ = [number for number in columns for _ in range(self._width(number))] + list(self.interacting_)
        return self

    @property
    def has_terms(self) -> bool:
        """Whether there is a curve or a product."""
        return bool(self.curved_.any() or self.interacting_)

    def transform(self, X: Any) -> np.ndarray:
        """(rows, new columns)."""
        check_is_fitted(self)
        x = validate_data(self, X, reset=False, dtype=np.float64)
        columns = [
            spline_basis(x[:, number], self.knots_[number]) if curved else x[:, number, None]
            for number, curved in enumerate(self.curved_)
        ]
        return np.column_stack([*columns, self._products(self.interacting_, x)])

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> np.ndarray:
        """Names such as age, age curve 1 and age * weight."""
        check_is_fitted(self)
        if input_features is None:
            input_features = getattr(self, "feature_names_in_", [f"x{number}" for number in range(self.n_features_in_)])
        names: list[str] = []
        for number, (name, curved) in enumerate(zip(input_features, self.curved_, strict=True)):
            parts = range(1, self._width(number) + 1) if curved else ()
            names += [f"{name} curve {part}" for part in parts] or [name]
        names += [f"{input_features[first]} * {input_features[second]}" for first, second in self.interacting_]
        return np.array(names, dtype=object)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()  # the way scikit-learn asks for it
        tags.target_tags.required = "auto" in (self.effects, self.interactions)
        return tags

    def _place_knots(self, column: np.ndarray, rows: int) -> np.ndarray | None:
        """The knots of a curve of a column, of which these are some or all of its rows; None if it cannot have one."""
        outside, count = min(OUTER_ROWS / len(column), OUTER_SHARE), self.knots
        if count == "auto":
            count = int(np.clip(round(KNOTS * (rows / KNOT_ROWS) ** KNOT_RATE), FEWEST_KNOTS, MOST_KNOTS))
        quantiles = np.quantile(column, np.linspace(outside, 1 - outside, count))
        if self.effects == "linear" or len(np.unique(quantiles)) < FEWEST_KNOTS:
            return None
        # quantiles alone leave wide gaps in the tails, equal distances alone waste knots where no rows are
        return (quantiles + np.linspace(quantiles[0], quantiles[-1], len(quantiles))) / 2

    def _width(self, number: int) -> int:
        """How many of the new columns a column has."""
        return spline_width(len(self.knots_[number])) if number in self.knots_ else 1

    def _products(self, pairs: Sequence[tuple[int, int]], x: np.ndarray) -> np.ndarray:
        first, second = np.array(pairs, int).reshape(-1, 2).T
        z = self._scaling.apply(x)
        return z[:, first] * z[:, second]


class EffectCurves(NamedTuple):
    """The effect of one column: the response along it, all else fixed, less the mean of that over all rows.

    Attributes:
        grid: (points,), values of the column.
        fitted: (points,), the effect in the fitted model.
        estimates: (environments, points), in a regression on the rows of one environment with the invariant columns;
            NaN where its rows do not identify it, and where it has next to no rows.
        errors: (environments, points), their standard errors.
        degrees: (environments,), the degrees of freedom of the errors.

    Example, the fitted line has the slope 2:
        >>> grid = np.linspace(-1, 1, 3)
        >>> EffectCurves(grid, 2 * grid, 2 * grid[None], np.ones((1, 3)), np.array([10.0])).fitted.tolist()
        [-2.0, 0.0, 2.0]
    """

    grid: np.ndarray
    fitted: np.ndarray
    estimates: np.ndarray
    errors: np.ndarray
    degrees: np.ndarray


def effect_curves(
    expansion: EffectExpansion,
    sums: MomentSums,
    sample: tuple[np.ndarray, np.ndarray],
    coefficients: np.ndarray,
    selected: np.ndarray,
) -> list[EffectCurves]:
    """The curves of all columns, or straight lines where they have no curve.

    In each environment the selected features are fitted together, by least squares with an intercept; a column that is
    not selected is added to them. Products with other columns are taken at the mean of these, where they vanish.

    Args:
        expansion: of the columns.
        sums: of the expanded columns and the response.
        sample: (rows, columns) and the labels of their environments: all rows, or enough for quantiles.
        coefficients: (features,), of the fit to the expanded columns.
        selected: (features,), the invariant ones.

    Example, y = x^2 in both environments:
        >>> from holdfast.core.grouping import group_rows
        >>> from holdfast.core.moments import collect_moments
        >>> x, labels = np.random.default_rng(0).standard_normal((2000, 1)), np.repeat([0, 1], 1000)
        >>> expansion = EffectExpansion(effects="smooth", interactions=False).fit(x)
        >>> features = expansion.transform(x)
        >>> w = np.linalg.lstsq(features - features.mean(0), x[:, 0] ** 2 - 1, rcond=None)[0]
        >>> sums = collect_moments(features, x[:, 0] ** 2, group_rows(labels, 2000))
        >>> (found,) = effect_curves(expansion, sums, (x, labels), w, np.ones(len(w), bool))
        >>> middle = np.abs(found.grid) < 1.5
        >>> bool(np.abs(found.estimates - (found.grid**2 - 1))[:, middle].max() < 0.1)
        True
    """
    known = standardized(sums, within=True)
    x, labels = sample
    units, response = known.scale[:-1], known.scale[-1]
    owners = np.array([-1 if isinstance(group, tuple) else group for group in expansion.groups_])
    found = []
    for number in range(x.shape[1]):
        own = np.flatnonzero(owners == number)
        low, high = np.quantile(x[:, number], OUTER)
        grid = np.linspace(low, high, POINTS)
        point = np.tile(x.mean(0), (POINTS, 1))
        point[:, number] = grid
        basis = (expansion.transform(point)[:, own] - known.location[own]) / units[own]
        used = np.union1d(np.flatnonzero(selected), own)
        within = np.searchsorted(used, own)
        estimates, errors = np.full((2, len(sums.labels), POINTS), np.nan)
        degrees = np.full(len(sums.labels), np.nan)
        for place, (label, count) in enumerate(zip(sums.labels, known.counts, strict=True)):
            rows, spare = x[labels == label, number], count - len(used) - 1
            second, cross, square = (count * moment[place] for moment in known.moments)
            # directions that do not vary here are left out, so that what they would say about the column is missing
            values, vectors = np.linalg.eigh(second[np.ix_(used, used)])
            measured = values > NEGLIGIBLE * max(float(values[-1]), 1e-300)
            hidden = np.abs(vectors[within][:, ~measured]).max(initial=0.0)
            if len(rows) == 0 or spare <= 0 or hidden > np.sqrt(NEGLIGIBLE):
                continue
            inverse = (vectors[:, measured] / values[measured]) @ vectors[:, measured].T
            w = inverse @ cross[used]
            variance = max(float(square - w @ cross[used]), 0.0) / spare
            low, high = np.quantile(rows, OUTER)
            estimates[place] = np.where((grid >= low) & (grid <= high), response * basis @ w[within], np.nan)
            squares = np.einsum("pi,ij,pj->p", basis, inverse[np.ix_(within, within)], basis).clip(0.0)
            errors[place], degrees[place] = response * np.sqrt(variance * squares), spare
        found.append(EffectCurves(grid, basis @ (coefficients * units)[own], estimates, errors, degrees))
    return found
