"""The effect of a column as a curve, in each environment on its own, with its error."""

from typing import NamedTuple

import numpy as np

from holdfast.core.moments import MomentSums, standardized
from holdfast.estimators.expansion import EffectExpansion

# Points of a curve, between these quantiles of its column: beyond them there are too few rows to say anything.
POINTS, OUTER = 41, (0.01, 0.99)
# Directions with less than this share of the largest eigenvalue are not measured in an environment, where each feature
# counts in units of its standard deviation over all rows.
NEGLIGIBLE = 1e-9


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
