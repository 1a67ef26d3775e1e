"""A data set with environments: the rows to learn from, to choose by and to be tested on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

Kind = Literal["regression", "classification"]
"""The kind of prediction, a number or one of two labels."""


class Split(NamedTuple):
    """Rows of data.

    Attributes:
        inputs: (rows, features).
        targets: (rows,); 0 and 1 for classification.
        environments: (rows,), the index of the environment of each row.

    Example:
        >>> Split(np.zeros((3, 2)), np.zeros(3), np.array([0, 0, 1])).inputs.shape
        (3, 2)
    """

    inputs: np.ndarray
    targets: np.ndarray
    environments: np.ndarray


@dataclass(frozen=True)
class Dataset:
    """The splits that a method is trained, tuned and tested on.

    Attributes:
        kind: regression (squared error) or classification (share of wrong labels).
        train: the rows to fit.
        validation: more rows of the same law, to select hyper-parameters.
        test: rows on which features that are not invariant are of no help.
        shortcut_free: training rows for an oracle, in which features that are not invariant say nothing about the
            target; None if it is not known which are invariant.
        coefficients: of the inputs in the invariant predictor, up to a factor for classification; None if unknown.

    Example:
        >>> rows = Split(np.zeros((3, 2)), np.zeros(3), np.array([0, 0, 1]))
        >>> Dataset("regression", train=rows, validation=rows, test=rows).coefficients is None
        True
    """

    kind: Kind
    train: Split
    validation: Split
    test: Split
    shortcut_free: Split | None = None
    coefficients: np.ndarray | None = None


def with_shortcuts(kind: Kind, split: Callable[[bool], Split], coefficients: np.ndarray) -> Dataset:
    """A data set whose features that are not invariant help in training and nowhere else.

    Args:
        kind: of the prediction.
        split: draws rows of one law, given whether those features tell something about the target.
        coefficients: of the inputs in the invariant predictor.

    Example:
        >>> rows = Split(np.zeros((3, 2)), np.zeros(3), np.array([0, 0, 1]))
        >>> with_shortcuts("regression", lambda shortcuts: rows, np.zeros(2)).shortcut_free is rows
        True
    """
    return Dataset(kind, split(True), split(True), split(False), split(False), coefficients)


def stack(parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> Split:
    """All rows in one split, from the (inputs, targets) of each environment.

    Example:
        >>> stack([(np.zeros((2, 1)), np.zeros(2)), (np.ones((1, 1)), np.ones(1))]).environments.tolist()
        [0, 0, 1]
    """
    inputs, targets = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return Split(inputs, targets, np.repeat(np.arange(len(parts)), [len(part[1]) for part in parts]))


def permute_within(split: Split, columns: np.ndarray, random: np.random.Generator) -> Split:
    """Permute some columns together over the rows of each environment, so that they say nothing about the target.

    Example:
        >>> split = Split(np.arange(8.0).reshape(4, 2), np.zeros(4), np.array([0, 0, 1, 1]))
        >>> permuted = permute_within(split, np.array([1]), np.random.default_rng(0))
        >>> permuted.inputs[:, 0].tolist(), sorted(permuted.inputs[:2, 1].tolist())
        ([0.0, 2.0, 4.0, 6.0], [1.0, 3.0])
    """
    inputs = split.inputs.copy()
    for environment in np.unique(split.environments):
        rows = np.flatnonzero(split.environments == environment)
        inputs[np.ix_(rows, columns)] = split.inputs[np.ix_(random.permutation(rows), columns)]
    return split._replace(inputs=inputs)
