"""Weights of rows under which attributes say nothing about the label, and offsets that say it for the network."""

from collections.abc import Sequence
from itertools import product
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from holdfast.core.validation import require

# A continuous target is cut into so many bins of equally many rows.
BINS = 5
# Sweeps and accuracy of iterative proportional fitting.
SWEEPS, ACCURACY = 1000, 1e-10
# Factors beyond this are on their way to infinity.
HUGE = 1e100

TargetDistribution = Literal["equal", "product"]
"""Of the weighted groups: all of equal weight, or with the shares that classes and attributes have alone."""
Independence = Literal["joint", "each"]
"""Of all attributes together from the target, or of each."""


class RowBalance(NamedTuple):
    """Groups of rows with equal label and attributes, and weights that make both independent.

    Attributes:
        weights: (rows,), of mean 1.
        groups: (rows,), the number of the group of each row.
        names: of each group, (label or bin, value of each attribute).
        counts: (groups,), rows.

    Example:
        >>> found = balance_rows([0, 0, 0, 1], [0, 0, 1, 0], independence="each", distribution="product")
        Traceback (most recent call last):
        ValueError: attributes and targets must occur in all combinations, got no row with the target 1 and attribute 1
        >>> balance_rows([0, 0, 0, 1, 1], [0, 0, 1, 0, 1]).counts.tolist()
        [2, 1, 1, 1]
    """

    weights: np.ndarray
    groups: np.ndarray
    names: list[tuple]
    counts: np.ndarray

    def __repr__(self) -> str:
        smallest = int(self.counts.min())
        return f"RowBalance(rows={len(self.weights)}, groups={len(self.counts)}, smallest={smallest})"

    @property
    def effective_rows(self) -> float:
        """(sum of weights)^2 / sum of squares: rows of equal weight with the same sampling error."""
        return float(self.weights.sum() ** 2 / max(self.weights @ self.weights, 1e-300))


def balanced_weights(
    targets: ArrayLike,
    attributes: ArrayLike,
    *,
    distribution: TargetDistribution = "equal",
    independence: Independence = "joint",
    bins: int | None = None,
) -> np.ndarray:
    """(rows,): weights of mean 1 under which attributes and targets are independent; see `balance_rows`.

    Example, of four rows with a label that agrees with the attribute, one does not:
        >>> balanced_weights([0, 0, 0, 1, 1, 1], [0, 0, 1, 0, 1, 1]).tolist()
        [0.75, 0.75, 1.5, 1.5, 0.75, 0.75]
    """
    return balance_rows(targets, attributes, distribution=distribution, independence=independence, bins=bins).weights


def balance_rows(
    targets: ArrayLike,
    attributes: ArrayLike,
    *,
    distribution: TargetDistribution = "equal",
    independence: Independence = "joint",
    bins: int | None = None,
) -> RowBalance:
    """Weigh rows so that attributes are independent of the target.

        equal:    w = n / (G n_g),                 every one of the G groups counts the same
        product:  w = P(a) P(y) / P(a, y),         classes and attributes are as frequent as before

    Args:
        targets: (rows,), labels of classes; with `bins`, numbers.
        attributes: (rows,) or (rows, attributes), values of any kind.
        distribution: of the weighted groups.
        independence: joint: the target is independent of all attributes together, which needs rows of every
            combination; each: of every single attribute, by iterative proportional fitting, if there are such weights.
        bins: the number of bins of equally many rows that a continuous target is cut into; None: targets are classes.

    Reference: W. E. Deming, F. F. Stephan, Ann. Math. Statist. 11 (1940), iterative proportional fitting.

    Example:
        >>> found = balance_rows(["cat", "cat", "cat", "dog", "dog"], ["day", "day", "night", "day", "night"])
        >>> found.names[0], found.weights.round(3).tolist()
        (('cat', 'day'), [0.625, 0.625, 1.25, 1.25, 1.25])
    """
    labels = np.asarray(targets)
    if bins is not None:
        require(bins >= 2, "bins must be a whole number of at least 2", repr(bins))
        labels = np.searchsorted(np.quantile(labels, np.arange(1, bins) / bins), labels, side="right")
    check_balance(distribution, independence)
    found = _count_groups(labels, np.asarray(attributes))
    attribute_axes = range(1, found.counts.ndim)
    margins: list[tuple[int, ...]] = [(0, axis) for axis in attribute_axes]
    if independence == "joint":
        margins = [(0, *attribute_axes)]
    weights = _group_weights(found, margins, distribution).ravel()[found.codes]
    names = list(product(*(each.tolist() for each in found.values)))
    return RowBalance(weights / weights.mean(), found.codes, names, found.counts.ravel())


def check_balance(distribution: str, independence: str) -> None:
    """Raise an error unless these are names of a distribution and of an independence.

    Example:
        >>> check_balance("equal", "all")
        Traceback (most recent call last):
        ValueError: independence must be joint or each, got 'all'
    """
    require(distribution in ("equal", "product"), "distribution must be equal or product", repr(distribution))
    require(independence in ("joint", "each"), "independence must be joint or each", repr(independence))


def attribute_offsets(targets: ArrayLike, attributes: ArrayLike) -> np.ndarray:
    """(rows, classes): log P(class | attributes), added to the logits of a network in training and left out afterwards.

        P(class | x, a) = softmax(f(x) + log P(class | a))

    If the attributes a are independent of the rest of x given the class, f then learns what the rest says. Another way
    than weights to the same end: all rows count the same, so that few rows of a rare group are not learnt by heart.

    Args:
        targets: (rows,), labels of classes.
        attributes: (rows,) or (rows, attributes), values of any kind.

    Reference: C. Clark, M. Yatskar, L. Zettlemoyer, EMNLP (2019), arXiv:1909.03683; A. K. Menon et al., Long-tail
        learning via logit adjustment, ICLR (2021), arXiv:2007.07314.

    Example, an attribute that agrees with the label in two of three rows:
        >>> np.exp(attribute_offsets([0, 0, 0, 1, 1, 1], [0, 0, 1, 0, 1, 1])).round(2)[:3].tolist()
        [[0.67, 0.33], [0.67, 0.33], [0.33, 0.67]]
    """
    found = _count_groups(np.asarray(targets), np.asarray(attributes))
    _check_complete(found.counts, found.values)
    by_attributes = found.counts.reshape(len(found.counts), -1)
    offsets = np.log(by_attributes / by_attributes.sum(0))
    return offsets.T[found.codes % by_attributes.shape[1]]


class _Groups(NamedTuple):
    """Rows in each group of label and attributes, the group of each row, and the values of label and attributes."""

    counts: np.ndarray
    codes: np.ndarray
    values: tuple[np.ndarray, ...]


def _count_groups(labels: np.ndarray, attributes: np.ndarray) -> _Groups:
    contract = f"attributes must hold one row for each of the {len(labels)} targets"
    require(len(attributes) == len(labels), contract, len(attributes))
    columns = (labels, *attributes.reshape(len(labels), -1).T)
    values, codes = zip(*(np.unique(column, return_inverse=True) for column in columns), strict=True)
    shape = tuple(map(len, values))
    groups = np.asarray(np.ravel_multi_index(codes, shape))
    return _Groups(np.bincount(groups, minlength=int(np.prod(shape))).reshape(shape), groups, values)


def _group_weights(groups: _Groups, margins: list[tuple[int, ...]], distribution: str) -> np.ndarray:
    """The weight of a row of each group, under which the target is independent of the attributes of each margin.

    Iterative proportional fitting; one margin is fitted by its first step.
    """
    counts, wanted = groups.counts, []
    summed = [tuple(axis for axis in range(counts.ndim) if axis not in kept) for kept in margins]
    for kept, axes in zip(margins, summed, strict=True):
        margin = counts.sum(axes)
        _check_complete(margin, [groups.values[axis] for axis in kept])
        wanted.append(_wanted(margin, distribution))
    factors = np.ones(counts.shape)
    for _ in range(SWEEPS):
        changes = np.zeros(len(margins))
        for number, axes in enumerate(summed):
            ratio = wanted[number] / (factors * counts).sum(axes)
            changes[number] = np.abs(ratio - 1).max()
            factors = factors * np.expand_dims(ratio, axes)
        if changes.max() < ACCURACY or len(margins) == 1:
            return factors
        if not factors.max() < HUGE:  # factors of groups without rows grow without bound if the margins contradict
            break
    worst = int(np.argmax(changes))
    raise ValueError(
        "independence must be joint, or attributes other ones: there are no weights of these rows under which each "
        f"attribute is independent of the target, got a weight that is wrong by {changes[worst]:.2g} of itself for "
        f"attribute number {worst}"
    )


def _wanted(counts: np.ndarray, distribution: str) -> np.ndarray:
    """(classes, values of the attributes): the weight of each cell, of the same sum as the counts."""
    if distribution == "equal":
        return np.full(counts.shape, counts.sum() / counts.size)
    return np.multiply.outer(counts.reshape(len(counts), -1).sum(1), counts.sum(0)) / counts.sum()


def _check_complete(counts: np.ndarray, values: Sequence[np.ndarray]) -> None:
    """Raise an error if some combination of target and attributes has no rows."""
    for cell in np.argwhere(counts == 0)[:1]:
        target, *attributes = (own[code] for own, code in zip(values, cell, strict=True))
        missing = " and ".join([f"the target {target}", *(f"attribute {value}" for value in attributes)])
        raise ValueError(f"attributes and targets must occur in all combinations, got no row with {missing}")
