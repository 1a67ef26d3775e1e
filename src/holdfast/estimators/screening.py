"""What straight lines miss within environments: curves of single columns, and products of two.

If the mean of the response bends, or one column changes the effect of another, then the best straight line depends on
where the rows of an environment lie: effects vary although the mechanism is the same everywhere. A bend can also be
seen without comparing environments. So every environment gets lines of its own, which take up all differences between
them, and a term is needed if it explains what these lines leave:

    y = b_e + x^T w_e + sum_k T_k(x)^T v_k + error,    is v_k = 0 ?

Terms are added one at a time, the most significant first, as long as its significance passes. A consequence of the
response bends with the response, so its curves are found here too; whether they hold is for the tests of equal effects
to say.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy.special import chdtrc, expit

from holdfast.algorithms.losses.squared import SMALLEST_ERROR
from holdfast.core.grouping import group_rows
from holdfast.core.moments import standard_units
from holdfast.tables.passes import row_numbers, smallest

# Of how many rows the quick look of `diagnose_curvature` takes account, and how far out; one wild row bends anything.
QUICK_ROWS, QUICK_RANGE = 4_000, 3.0
# Interactions are looked for among at most so many columns: their number grows with the square.
MOST_INTERACTING = 30
# Directions with less than this share of the largest eigenvalue are not measured.
NEGLIGIBLE = 1e-9


class LineErrors(NamedTuple):
    """What the straight lines of single environments leave unexplained.

    Attributes:
        lines: (rows, columns + 1), one and the standardised columns.
        errors: (rows,), of the response, in units of their standard deviation.
        scale: (rows,), by which terms are multiplied so that they have the same units.
        rows: the positions of the rows of each environment.
    """

    lines: np.ndarray
    errors: np.ndarray
    scale: np.ndarray
    rows: Sequence[np.ndarray]

    def at(self, positions: np.ndarray) -> "LineErrors":
        """Those of some rows, in increasing order."""
        new = np.full(len(self.errors), -1)
        new[positions] = np.arange(len(positions))
        rows = [new[own][new[own] >= 0] for own in self.rows]
        return LineErrors(self.lines[positions], self.errors[positions], self.scale[positions], rows)


def sampled_rows(count: int, most: int) -> np.ndarray:
    """The positions of all rows, or of so many drawn at random with a fixed seed, in increasing order.

    Example:
        >>> sampled_rows(3, 5).tolist(), len(sampled_rows(100, 5))
        ([0, 1, 2], 5)
    """
    return smallest(row_numbers(np.arange(count)), most)


def squared_errors(x: np.ndarray, y: np.ndarray, rows: Sequence[np.ndarray]) -> LineErrors:
    """The errors of least squares in each environment, each in units of their standard deviation there.

    Args:
        x: (rows, columns).
        y: (rows,).
        rows: the positions of the rows of each environment.

    Example, the rows of each environment lie on a line:
        >>> found = squared_errors(np.arange(6.0)[:, None], np.array([0, 1, 2, 9, 7, 5.0]), [np.r_[:3], np.r_[3:6]])
        >>> bool(np.abs(found.errors).max() < 1e-6)
        True
    """
    lines = _lines(x)
    errors, scale = np.zeros(len(y)), np.zeros(len(y))
    y = y - y.mean()
    y = y / max(float(np.abs(y).max()), np.finfo(float).tiny)  # squares of any unit neither overflow nor vanish
    smallest = SMALLEST_ERROR * max(float(np.mean(y**2)), SMALLEST_ERROR)
    for own in rows:
        left = _without(lines[own], y[own, None])[:, 0]
        free = len(own) - lines.shape[1]
        # an environment with fewer rows than columns lies on a plane, whatever the response is
        if free > 0:
            scale[own] = 1 / np.sqrt(max(left @ left / free, smallest))
            errors[own] = left * scale[own]
    return LineErrors(lines, errors, scale, rows)


def logistic_errors(x: np.ndarray, positive: np.ndarray, rows: Sequence[np.ndarray]) -> LineErrors:
    """The errors of logistic regression in each environment, divided by their standard deviations sqrt(p (1 - p)).

    A term is then judged by its score test.

    Args:
        x: (rows, columns).
        positive: (rows,), 1 for the second class and 0 for the first.
        rows: the positions of the rows of each environment.
    """
    from sklearn.linear_model import LogisticRegression  # takes a while to import, and regressions do without

    lines = _lines(x)
    errors, scale = np.zeros(len(x)), np.zeros(len(x))
    for own in rows:
        if len(own) > lines.shape[1] and 0 < positive[own].sum() < len(own):
            model = LogisticRegression(max_iter=1000).fit(lines[own, 1:], positive[own])
            p = expit(model.decision_function(lines[own, 1:]))
            # where the prediction is certain, no term could change it
            scale[own] = np.sqrt(np.maximum(p * (1 - p), 1e-6))
            errors[own] = (positive[own] - p) / scale[own]
    return LineErrors(lines, errors, scale, rows)


def needed_terms(terms: Sequence[np.ndarray], found: LineErrors, significance: float) -> list[int]:
    """Which terms explain the errors of the lines, in the order in which they were added.

        statistic = n log(|errors|^2 / |errors given the term|^2),    chi-square with the rank of the term

    at the level significance / number of terms.

    Args:
        terms: (rows, columns) each: the columns of a curve, or a product.
        found: the errors.
        significance: level of the tests, over all terms together.

    Example:
        >>> x = np.random.default_rng(0).standard_normal((500, 2))
        >>> found = squared_errors(x, x[:, 1] ** 2 + x[:, 0], [np.arange(500)])
        >>> needed_terms([x[:, :1] ** 2, x[:, 1:] ** 2], found, 0.001)
        [1]
    """
    if not terms:
        return []
    sizes = [term.shape[1] for term in terms]
    ends = np.cumsum(sizes)
    blocks = [slice(end - size, end) for size, end in zip(sizes, ends, strict=True)]
    gram, cross, square, count = np.zeros((ends[-1], ends[-1])), np.zeros(ends[-1]), 0.0, 0
    for own in found.rows:
        lines, errors, scale = found.lines[own], found.errors[own], found.scale[own, None]
        if scale.any():
            both = np.column_stack([*(term[own] * scale for term in terms), errors])
            left = _without(lines * scale, both)
            gram += left[:, :-1].T @ left[:, :-1]
            cross += left[:, :-1].T @ left[:, -1]
            square += float(left[:, -1] @ left[:, -1])
            count += len(own)
    full = np.diagonal(gram).copy()  # what is left of a column after others, against what there was
    chosen: list[int] = []
    level = significance / len(terms)
    while len(chosen) < len(terms) and square > 0:
        tests = [
            (1.0, 0.0) if number in chosen else _gain(gram[block, block], cross[block], full[block], square, count)
            for number, block in enumerate(blocks)
        ]
        best = min(range(len(terms)), key=lambda number: (tests[number][0], -tests[number][1]))
        if tests[best][0] >= level:
            break
        chosen.append(best)
        # all that this term explains is taken out of the others and out of the errors
        block = blocks[best]
        inverse = np.linalg.pinv(gram[block, block], rcond=NEGLIGIBLE, hermitian=True)
        square -= float(cross[block] @ inverse @ cross[block])
        cross = cross - gram[:, block] @ inverse @ cross[block]
        gram = gram - gram[:, block] @ inverse @ gram[block]
    return chosen


class Curvature(NamedTuple):
    """What straight lines miss in a table.

    Attributes:
        curved: columns in which the response bends.
        interacting: pairs of columns of which one changes the effect of the other.
    """

    curved: list[int]
    interacting: list[tuple[int, int]]

    def advice(self, names: Sequence[str]) -> list[str]:
        """A sentence, if anything was found.

        Args:
            names: of all columns.
        """
        found = [f"the effect of {names[number]} bends" for number in self.curved]
        found += [f"{names[first]} and {names[second]} interact" for first, second in self.interacting]
        if not found:
            return []
        more = f" and {len(found) - 3} more" if len(found) > 3 else ""
        return [
            f"Straight lines do not describe single environments ({', '.join(found[:3])}{more}), which may be why "
            'effects vary: effects="auto" fits curves to a table in files, HeteroSplineRegressor fits curves and '
            "interactions to arrays, and both test whether these hold."
        ]


def diagnose_curvature(X: Any, y: Any, environments: Any = None, *, columns: Sequence[int] | None = None) -> Curvature:
    """A quick look at whether straight lines could be the reason why effects vary.

    Squares and cubes stand for curves, and at most 4,000 rows are looked at; the rows of a table are needed, since sums
    of squares do not tell a curve from a line. `EffectExpansion` takes a closer look.

    Args:
        X: (rows, columns).
        y: (rows,), numbers.
        environments: one label for each row; None: one environment.
        columns: those in question; None: all.

    Example:
        >>> random = np.random.default_rng(0)
        >>> x = random.standard_normal((2000, 3))
        >>> y = x[:, 0] ** 2 + x[:, 1] * x[:, 2] + random.standard_normal(2000)
        >>> diagnose_curvature(x, y)
        Curvature(curved=[0], interacting=[(1, 2)])
    """
    x, y = np.asarray(X, float), np.asarray(y, float)
    grouping = group_rows(environments, len(x))
    sample = sampled_rows(len(x), QUICK_ROWS)
    x, y, grouping = x[sample], y[sample], group_rows(grouping.codes[sample], len(sample))
    z = np.clip(standard_units(x).apply(x), -QUICK_RANGE, QUICK_RANGE)
    looked_at = list(range(x.shape[1])) if columns is None else list(columns)
    pairs = list(combinations(looked_at, 2)) if len(looked_at) <= MOST_INTERACTING else []
    terms = [np.column_stack([z[:, number] ** 2, z[:, number] ** 3]) for number in looked_at]
    terms += [(z[:, first] * z[:, second])[:, None] for first, second in pairs]
    found = sorted(needed_terms(terms, squared_errors(x, y, grouping.rows()), significance=0.001))
    curved = [looked_at[number] for number in found if number < len(looked_at)]
    return Curvature(curved, [pairs[number - len(looked_at)] for number in found if number >= len(looked_at)])


def _gain(gram: np.ndarray, cross: np.ndarray, full: np.ndarray, square: float, count: int) -> tuple[float, float]:
    """The significance of a term, and the statistic."""
    values, vectors = np.linalg.eigh(gram)
    measured = values > NEGLIGIBLE * max(float(full.max()), 1e-300)
    explained = float(np.sum((vectors.T @ cross)[measured] ** 2 / values[measured]))
    statistic = -count * np.log(max(1 - explained / square, 1e-12))
    degrees = int(measured.sum())
    return (float(chdtrc(degrees, statistic)) if degrees else 1.0), statistic


def _lines(x: np.ndarray) -> np.ndarray:
    return np.column_stack([np.ones(len(x)), standard_units(x).apply(x)])


def _without(lines: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """What the lines leave of some columns."""
    return columns - lines @ np.linalg.lstsq(lines, columns, rcond=1e-5)[0]
