"""The effect of a column as a curve, in each environment on its own, with its error."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

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
    x: np.ndarray,
    y: np.ndarray,
    rows: Sequence[np.ndarray],
    coefficients: np.ndarray,
    selected: np.ndarray,
) -> list[EffectCurves]:
    """The curves of all columns, or straight lines where they have no curve.

    In each environment the selected features are fitted together, by least squares with an intercept; a column that is
    not selected is added to them. Products with other columns are taken at the mean of these, where they vanish.

    Args:
        expansion: of the columns.
        x: (rows, columns).
        y: (rows,).
        rows: the positions of the rows of each environment.
        coefficients: (features,), of the fit to the expanded columns.
        selected: (features,), the invariant ones.

    Example, y = x^2 in both environments:
        >>> random = np.random.default_rng(0)
        >>> x = random.standard_normal((2000, 1))
        >>> expansion = EffectExpansion(effects="smooth", interactions=False).fit(x)
        >>> features = expansion.transform(x)
        >>> w = np.linalg.lstsq(features - features.mean(0), x[:, 0] ** 2 - 1, rcond=None)[0]
        >>> parts, chosen = np.array_split(np.arange(2000), 2), np.ones(len(w), bool)
        >>> (found,) = effect_curves(expansion, x, x[:, 0] ** 2, parts, w, chosen)
        >>> middle = np.abs(found.grid) < 1.5
        >>> bool(np.abs(found.estimates - (found.grid**2 - 1))[:, middle].max() < 0.1)
        True
    """
    features = expansion.transform(x)
    mean = features.mean(0)
    features -= mean
    units = features.std(0)
    units[units == 0] = 1.0
    features /= units
    owners = np.array([-1 if isinstance(group, tuple) else group for group in expansion.groups_])
    groups = [np.flatnonzero(owners == number) for number in range(x.shape[1])]
    grids, bases = [], []
    for number, own in enumerate(groups):
        low, high = np.quantile(x[:, number], OUTER)
        grid = np.linspace(low, high, POINTS)
        point = np.tile(x.mean(0), (POINTS, 1))
        point[:, number] = grid
        grids.append(grid)
        bases.append((expansion.transform(point)[:, own] - mean[own]) / units[own])
    estimates, errors = np.full((2, len(rows), x.shape[1], POINTS), np.nan)
    degrees = np.full((len(rows), x.shape[1]), np.nan)
    for place, positions in enumerate(rows):
        z = features[positions] - features[positions].mean(0)
        response = y[positions] - y[positions].mean()
        second, cross, square = z.T @ z, z.T @ response, float(response @ response)
        for number, own in enumerate(groups):
            used = np.union1d(np.flatnonzero(selected), own)
            spare = len(positions) - len(used) - 1
            # directions that do not vary here are left out, so that what they would say about the column is missing
            values, vectors = np.linalg.eigh(second[np.ix_(used, used)])
            measured = values > NEGLIGIBLE * max(float(values[-1]), 1e-300)
            inverse = (vectors[:, measured] / values[measured]) @ vectors[:, measured].T
            within = np.searchsorted(used, own)
            if spare <= 0 or np.abs(vectors[within][:, ~measured]).max(initial=0.0) > np.sqrt(NEGLIGIBLE):
                continue
            w = inverse @ cross[used]
            variance = max(square - float(w @ cross[used]), 0.0) / spare
            basis, covariance = bases[number], inverse[np.ix_(within, within)]
            low, high = np.quantile(x[positions, number], OUTER)
            estimates[place, number] = np.where(
                (grids[number] >= low) & (grids[number] <= high), basis @ w[within], np.nan
            )
            errors[place, number] = np.sqrt(variance * np.einsum("pi,ij,pj->p", basis, covariance, basis).clip(0.0))
            degrees[place, number] = spare
    return [
        EffectCurves(
            grids[number],
            bases[number] @ (coefficients * units)[own],
            estimates[:, number],
            errors[:, number],
            degrees[:, number],
        )
        for number, own in enumerate(groups)
    ]
