"""Cubic splines of one column, straight beyond the outer knots: the columns of a linear model with a smooth effect."""

import numpy as np

DEGREE = 3


def spline_width(knots: int) -> int:
    """How many columns a curve with so many knots has.

    Example:
        >>> spline_width(5) == spline_basis(np.zeros(1), np.arange(5)).shape[1]
        True
    """
    return knots + DEGREE - 2


def spline_basis(values: np.ndarray, knots: np.ndarray) -> np.ndarray:
    """The B-splines of a column, all but the last one, since they add up to 1 and a model has an intercept.

        B_k(x) between the outer knots a and b,    B_k(a) + (x - a) B_k'(a) below,    B_k(b) + (x - b) B_k'(b) above

    The knots are continued at the distance of the outer two, as scikit-learn's `SplineTransformer` does.

    Args:
        values: (rows,); what is not finite has no splines.
        knots: (knots,), two or more, increasing.

    Returns:
        (rows, knots + 1), NaN where a value is not finite.

    Reference: P. H. C. Eilers and B. D. Marx, *Flexible smoothing with B-splines and penalties*, Statistical Science 11
        (1996), for the knots beyond the outer ones.

    Example, splines span the straight lines:
        >>> x = np.array([-7.0, 0.5, 2.0, 11.0])
        >>> columns = np.column_stack([np.ones(4), spline_basis(x, np.array([0.0, 1.0, 2.0, 4.0]))])
        >>> fitted = np.linalg.lstsq(columns, x, rcond=None)[0]
        >>> bool(np.allclose(columns @ fitted, x))
        True
    """
    from scipy.interpolate import BSpline  # takes a while to import, and few tables to be predicted have curves

    x, knots = np.asarray(values, float), np.asarray(knots, float)
    finite = np.isfinite(x)
    beyond = np.arange(1, DEGREE + 1)
    before = knots[0] - (knots[1] - knots[0]) * beyond[::-1]
    after = knots[-1] + (knots[-1] - knots[-2]) * beyond
    count = len(knots) + DEGREE - 1
    splines = BSpline(np.concatenate([before, knots, after]), np.eye(count)[:, :-1], DEGREE)
    inside = np.clip(np.where(finite, x, knots[0]), knots[0], knots[-1])
    found = splines(inside)
    slopes = splines.derivative()(knots[[0, -1]])
    for outer, slope in zip(knots[[0, -1]], slopes, strict=True):
        outside = finite & (inside == outer) & (x != outer)
        with np.errstate(over="ignore", invalid="ignore"):  # of values that are as large as numbers can be
            found[outside] += (x[outside] - outer)[:, None] * slope
    found[~finite] = np.nan
    return found
