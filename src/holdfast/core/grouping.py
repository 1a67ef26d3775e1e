"""Which environment each row belongs to."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.core.validation import require

_NUMBER = re.compile(r"[-+]?\d+(?:\.\d*)?(?:e[-+]?\d+)?", re.ASCII)
# As `holdfast.tables.labels` writes bins.
_BIN = re.compile(
    rf"(?:(?P<low>{_NUMBER.pattern}) < )?(?P<name>.+?) (?:<= {_NUMBER.pattern}|> (?P<above>{_NUMBER.pattern}))",
    re.ASCII,
)
_DIGITS = re.compile(r"(\d+)", re.ASCII)


@dataclass(frozen=True)
class Grouping:
    """The environments of the rows of a table.

    Attributes:
        codes: (rows,), the number of the environment of each row, from 0 to E - 1.
        labels: the E labels that occur, in `label_order`; codes[i] is the index of the label of row i.

    Example:
        >>> grouping = group_rows(["wet", "dry", "wet"], 3)
        >>> grouping.sizes.tolist(), [rows.tolist() for rows in grouping.rows()]
        ([1, 2], [[1], [0, 2]])
    """

    codes: np.ndarray
    labels: list

    @property
    def count(self) -> int:
        """E, the number of environments."""
        return len(self.labels)

    @property
    def sizes(self) -> np.ndarray:
        """(E,), the number of rows of each environment."""
        return np.bincount(self.codes, minlength=self.count)

    def rows(self) -> list[np.ndarray]:
        """For each environment, the positions of its rows."""
        order = np.argsort(self.codes, kind="stable")
        return np.split(order, np.cumsum(self.sizes)[:-1])

    def where(self, mask: np.ndarray) -> "Grouping":
        """The grouping of the rows where `mask` is True, without the environments that have none of them."""
        used, codes = np.unique(self.codes[mask], return_inverse=True)
        return Grouping(codes, [self.labels[number] for number in used])

    def in_label_order(self) -> "Grouping":
        """The same environments, numbered in `label_order`."""
        order = label_order(self.labels)
        return Grouping(np.argsort(order)[self.codes], [self.labels[number] for number in order])


def group_rows(environments: Any, row_count: int) -> Grouping:
    """Turn labels of any kind into codes.

    Args:
        environments: one label for each row (strings, numbers, dates, a pandas column, categories); None: all rows
            belong to one environment, whose label is "all"; or what an earlier call has found.
        row_count: the number of rows of the table.

    Example:
        >>> grouping = group_rows(["wet", "dry", "wet"], 3)
        >>> grouping.codes.tolist(), grouping.labels
        ([1, 0, 1], ['dry', 'wet'])
    """
    if isinstance(environments, Grouping):
        return environments
    if environments is None:
        return Grouping(np.zeros(row_count, np.intp), ["all"])
    import pandas as pd  # not on machines that train networks only, which bring codes

    if isinstance(environments, pd.Series | pd.Index | pd.Categorical):
        column = pd.Series(environments).reset_index(drop=True)
    else:
        array = np.asarray(environments)
        if array.dtype.kind in "US" and not isinstance(environments, np.ndarray):
            array = np.asarray(environments, dtype=object)  # 1 and "1" in a list are two labels, not one
        if array.ndim == 2 and array.shape[1] == 1:
            array = array[:, 0]
        require(array.ndim == 1, "environments must be one label for each row", f"an array of shape {array.shape}")
        column = pd.Series(array)
    contract = f"environments must hold one label for each of the {row_count} rows"
    require(len(column) == row_count, contract, f"{len(column)} labels")
    missing = column.isna().to_numpy()
    if missing.any():
        raise ValueError(
            f"environments must have a label for every row, got {missing.sum()} missing labels, the first in row "
            f"{int(np.argmax(missing))}; name an environment for them or leave the rows out"
        )
    if isinstance(column.dtype, pd.CategoricalDtype):
        codes, categories = column.cat.codes.to_numpy(), column.cat.categories
        used = np.bincount(codes, minlength=len(categories)) > 0  # pandas would sort the rows to find out
        return Grouping((np.cumsum(used) - 1)[codes], categories[used].tolist())
    codes, found = pd.factorize(column, sort=True)
    return Grouping(np.asarray(codes, np.intp), found.tolist()).in_label_order()


def group_text(labels: Any) -> Grouping:
    """The same of a pandas category whose order has no meaning: labels are in `label_order`.

    Example:
        >>> import pandas as pd
        >>> group_text(pd.Series(["field 10", "field 9", "field 10"], dtype="category"))
        Grouping(codes=array([1, 0, 1]), labels=['field 9', 'field 10'])
    """
    return group_rows(labels, len(labels)).in_label_order()


def label_order(labels: Sequence[Any]) -> np.ndarray:
    """(labels,): their positions in the order a reader expects: numbers in text by their size, bins from low to high.

    Labels that are not text stay where they are.

    Example:
        >>> labels = ["20 < age <= 30", "age <= 20", "age > 30", "field 10", "field 9"]
        >>> [labels[number] for number in label_order(labels)]
        ['age <= 20', '20 < age <= 30', 'age > 30', 'field 9', 'field 10']
    """
    if not all(isinstance(label, str) for label in labels):
        return np.arange(len(labels))
    return np.array(sorted(range(len(labels)), key=lambda number: _reading_order(labels[number])), np.intp)


def _reading_order(label: str) -> list[tuple[int, float, str]]:
    """What labels are compared by: numbers and the text between them, part by part."""
    order: list[tuple[int, float, str]] = []
    for part in label.split(", "):
        if found := _BIN.fullmatch(part):
            low = found["low"] or found["above"]
            order += [(1, 0.0, found["name"]), (0, float(low) if low else -np.inf, "")]
        elif _NUMBER.fullmatch(part):
            order.append((0, float(part), ""))
        else:
            order += [(0, float(each), "") if each.isdecimal() else (1, 0.0, each) for each in _DIGITS.split(part)]
    return order
