"""What a public test hands to a method."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

Kind = Literal["regression", "classification"]


class Split(NamedTuple):
    """Rows of data.

    Attributes:
        inputs: (rows, features).
        targets: (rows,); 0 and 1 for classification.
        environments: (rows,), the number of the environment of each row.
    """

    inputs: np.ndarray
    targets: np.ndarray
    environments: np.ndarray


@dataclass(frozen=True)
class Dataset:
    """One draw of a public test.

    Attributes:
        kind: regression (squared error) or classification (share of wrong labels).
        train: what a method learns from.
        validation: more rows of the same law, to choose hyper-parameters by.
        test: rows on which what is not invariant helps no more.
        shortcut_free: training rows in which what is not invariant says nothing about the target, which is what an
            oracle learns from; None where nobody knows what is invariant.
        coefficients: of the inputs in the invariant predictor, up to a factor for classification; None if unknown.
    """

    kind: Kind
    train: Split
    validation: Split
    test: Split
    shortcut_free: Split | None = None
    coefficients: np.ndarray | None = None


def stack(parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> Split:
    """One table from the (inputs, targets) of each environment."""
    inputs, targets = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return Split(inputs, targets, np.repeat(np.arange(len(parts)), [len(part[1]) for part in parts]))


def permute_within(table: Split, columns: np.ndarray, random: np.random.Generator) -> Split:
    """Permute some columns together over the rows of each environment, which cuts their tie to the target.

    Example:
        >>> table = Split(np.arange(8.0).reshape(4, 2), np.zeros(4), np.array([0, 0, 1, 1]))
        >>> permuted = permute_within(table, np.array([1]), np.random.default_rng(0))
        >>> permuted.inputs[:, 0].tolist(), sorted(permuted.inputs[:2, 1].tolist())
        ([0.0, 2.0, 4.0, 6.0], [1.0, 3.0])
    """
    inputs = table.inputs.copy()
    for environment in np.unique(table.environments):
        rows = np.flatnonzero(table.environments == environment)
        inputs[np.ix_(rows, columns)] = table.inputs[np.ix_(random.permutation(rows), columns)]
    return table._replace(inputs=inputs)
