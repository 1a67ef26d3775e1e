"""Weights of rows under which attributes say nothing about the label, and offsets that say it for the network."""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

# A continuous target is cut into so many bins of equally many rows.
BINS = 5
# Sweeps and accuracy of iterative proportional fitting.
SWEEPS, ACCURACY = 1000, 1e-10
# Factors beyond this are on their way to infinity.
HUGE = 1e100

TargetDistribution = Literal["equal", "product"]
"""Of the weighted groups: all of equal weight, or with the shares that classes and attributes have alone."""


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
    independence: Literal["joint", "each"] = "joint",
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
    independence: Literal["joint", "each"] = "joint",
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
        if bins < 2:
            raise ValueError(f"bins must be a whole number of at least 2, got {bins!r}")
        labels = np.searchsorted(np.quantile(labels, np.arange(1, bins) / bins), labels, side="right")
    counts, groups, classes, kinds = _count_groups(labels, np.asarray(attributes))
    if independence == "joint":
        factors = _joint(counts, distribution, classes, kinds)
    elif independence == "each":
        factors = _each(counts, distribution, classes, kinds)
    else:
        raise ValueError(f"independence must be joint or each, got {independence!r}")
    weights = factors.ravel()[groups]
    names = [
        (classes[index[0]].item(), *(kind[spot].item() for kind, spot in zip(kinds, index[1:], strict=True)))
        for index in np.ndindex(counts.shape)
    ]
    return RowBalance(weights / weights.mean(), groups, names, counts.ravel())


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
    counts, groups, classes, kinds = _count_groups(np.asarray(targets), np.asarray(attributes))
    _check_complete(counts, classes, kinds)
    by_attributes = counts.reshape(len(classes), -1)
    offsets = np.log(by_attributes / by_attributes.sum(0))
    return offsets.T[groups % by_attributes.shape[1]]


def _count_groups(
    labels: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[np.ndarray, ...]]:
    """Rows in each group of label and attributes, the group of each row, and the values of labels and attributes."""
    values = values[:, None] if values.ndim == 1 else values
    if len(values) != len(labels):
        raise ValueError(f"attributes must hold one row for each of the {len(labels)} targets, got {len(values)}")
    classes, codes = np.unique(labels, return_inverse=True)
    kinds, marks = zip(*(np.unique(column, return_inverse=True) for column in values.T), strict=True)
    shape = (len(classes), *map(len, kinds))
    groups = np.ravel_multi_index((codes, *marks), shape)
    return np.bincount(groups, minlength=int(np.prod(shape))).reshape(shape), groups, classes, kinds


def _joint(counts: np.ndarray, distribution: str, classes: np.ndarray, kinds: tuple[np.ndarray, ...]) -> np.ndarray:
    _check_complete(counts, classes, kinds)
    return _wanted(counts.reshape(len(classes), -1), distribution).reshape(counts.shape) / counts


def _each(counts: np.ndarray, distribution: str, classes: np.ndarray, kinds: tuple[np.ndarray, ...]) -> np.ndarray:
    axes = [tuple(a for a in range(1, counts.ndim) if a != own) for own in range(1, counts.ndim)]
    margins = [counts.sum(axis) for axis in axes]
    for number, margin in enumerate(margins):
        _check_complete(margin, classes, (kinds[number],))
    wanted = [_wanted(margin, distribution) for margin in margins]
    factors = np.ones(counts.shape)
    for _ in range(SWEEPS):
        changes = np.zeros(len(axes))
        for number, axis in enumerate(axes):
            ratio = wanted[number] / (factors * counts).sum(axis)
            changes[number] = np.abs(ratio - 1).max()
            factors = factors * np.expand_dims(ratio, axis)
        if changes.max() < ACCURACY:
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
    """(classes, values): the weight of each cell, of the same sum as the counts."""
    if distribution == "equal":
        return np.full(counts.shape, counts.sum() / counts.size)
    if distribution == "product":
        return np.outer(counts.sum(1), counts.sum(0)) / counts.sum()
    raise ValueError(f"distribution must be equal or product, got {distribution!r}")


def _check_complete(counts: np.ndarray, classes: np.ndarray, kinds: tuple[np.ndarray, ...]) -> None:
    """Raise an error if some combination of target and attributes has no rows."""
    for target, *index in np.argwhere(counts == 0)[:1]:
        values = " and ".join(f"attribute {kind[spot]}" for kind, spot in zip(kinds, index, strict=True))
        raise ValueError(
            "attributes and targets must occur in all combinations, got no row with the target "
            f"{classes[target]} and {values}"
        )
