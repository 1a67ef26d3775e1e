"""Random tables, files, options and models, with what is true about them: everything from one seed."""

import copy
import datetime
import gzip
import json
import random
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

NAMES = [
    "light",
    "soil type",
    "größe",
    "x",
    "y[0]",
    "a,b",
    "date:year",
    "[/red]",
    "id",
    "環境",
    "e=1",
    "1",
    "environment",
]
WORDS = ["clay", "sand", "loam", "Zürich", "yes", "no", "a;b", 'q"uote', "it's", "TRUE", "01"]
SEPARATORS = [",", ";", "\t", "|"]
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "latin-1"]
# What damages a number: as a missing value, as stray text, as a number in another way of writing.
STRAY = ["", "NA", "?", "n/a", "inf", "-inf", "nan", "1e400", "twelve", "1.2.3", "--", "0x1F", "\uff11\uff12"]


@dataclass
class FuzzedTable:
    """A table with what a reader has to find.

    Attributes:
        cells: column -> texts, one for each row.
        clean: numeric columns without any flaw: a fit has to use them, or say why not.
        target, environment: names of columns.
    """

    cells: dict[str, list[str]]
    clean: list[str] = field(default_factory=list)
    target: str = ""
    environment: str | None = None


def fuzzed_table(source: random.Random, decimal: str) -> FuzzedTable:
    """A table with columns of all kinds, some of them damaged."""
    rows = source.choice([1, 3, 8, 30, 60, 120, 120, 250])
    names = source.sample(NAMES, source.randrange(2, 8))
    table = FuzzedTable({})
    for name in names:
        kind = source.choice(
            ["number", "number", "number", "whole", "category", "date", "id", "mixture", "empty", "truth"]
        )
        table.cells[name] = column(source, kind, rows, decimal)
        if kind == "number":
            table.clean.append(name)
    target = source.choice(names)
    table.cells[target] = column(source, source.choice(["number"] * 8 + ["two", "two", "category"]), rows, decimal)
    table.target = target
    others = [name for name in names if name != target]
    if others and source.random() < 0.7:
        table.environment = source.choice(others)
        table.cells[table.environment] = [source.choice(["north", "south", "west"]) for _ in range(rows)]
    table.clean = [name for name in table.clean if name not in (target, table.environment)]
    return table


def column(source: random.Random, kind: str, rows: int, decimal: str) -> list[str]:
    """The texts of a column."""
    match kind:
        case "number":
            return [f"{source.gauss(0, 3):.4f}".replace(".", decimal) for _ in range(rows)]
        case "whole":
            return [str(source.randrange(1000)) for _ in range(rows)]
        case "two":
            return [source.choice(["yes", "no"]) for _ in range(rows)]
        case "category":
            words = source.sample(WORDS, 3)
            return [source.choice(words) for _ in range(rows)]
        case "date":
            begin = datetime.date(2019, 1, 1)
            return [(begin + datetime.timedelta(source.randrange(900))).isoformat() for _ in range(rows)]
        case "id":
            return [f"row {number}" for number in range(rows)]
        case "truth":
            return [source.choice(["True", "False"]) for _ in range(rows)]
        case "mixture":
            share = source.choice([0.005, 0.05, 0.5])
            numbers = column(source, "number", rows, decimal)
            return [source.choice(STRAY) if source.random() < share else text for text in numbers]
    return [""] * rows


def write(source: random.Random, table: FuzzedTable, folder: Path, decimal: str) -> tuple[Path, bool]:
    """Write a table in a random dialect or format; returns the path and whether the file is undamaged."""
    if source.random() < 0.25 and decimal == ".":
        return write_arrow(source, table, folder), True
    separator, encoding = source.choice(SEPARATORS), source.choice(ENCODINGS)
    name = source.choice(["table.csv", "TABLE.CSV", "table.csv.gz", "table.tsv"])
    frame = pd.DataFrame(table.cells)
    text = frame.to_csv(index=False, sep=separator)
    if encoding == "latin-1" and any(ord(letter) > 255 for letter in text):
        encoding = "utf-8"
    content = text.encode(encoding)
    damaged = source.random() < 0.3
    if damaged:
        content = damage(source, content)
    path = folder / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    if damaged and source.random() < 0.2:
        path.write_bytes(damage(source, path.read_bytes()))
    return path, not damaged


def write_arrow(source: random.Random, table: FuzzedTable, folder: Path) -> Path:
    """Write a table as parquet or feather, clean numbers as numbers."""
    frame = pd.DataFrame(table.cells).replace("", None)
    for name in frame:
        if name in table.clean:
            frame[name] = pd.to_numeric(frame[name])
    if source.random() < 0.1:
        frame["nested"] = [[1, 2]] * len(frame)
    path = folder / source.choice(["table.parquet", "table.feather"])
    (frame.to_parquet if path.suffix == ".parquet" else frame.to_feather)(path)
    if source.random() < 0.2:
        path.write_bytes(damage(source, path.read_bytes()))
        table.clean.clear()
    return path


def damage(source: random.Random, content: bytes) -> bytes:
    """Bytes changed, cut, repeated or inserted."""
    changed = bytearray(content or b"\0")
    match source.randrange(6):
        case 0:
            for _ in range(source.randrange(1, 8)):
                changed[source.randrange(len(changed))] = source.randrange(256)
        case 1:
            del changed[source.randrange(len(changed)) :]
        case 2:
            begin = source.randrange(len(changed))
            changed[begin:begin] = source.choice([b'"', b",,,,", b"\n\n", b"\r", b"\0", b"\xff\xfe", b";", b"\t1\t"])
        case 3:
            lines = bytes(changed).split(b"\n")
            source.shuffle(lines)
            changed = bytearray(b"\n".join(lines))
        case 4:
            first, _, rest = bytes(changed).partition(b"\n")
            changed = bytearray(first + b"," + first + b"\n" + rest)
        case 5:
            changed = bytearray(source.randbytes(source.randrange(200)))
    return bytes(changed)


def options(source: random.Random, table: FuzzedTable) -> list[str]:
    """Options of the command line, some of them wrong."""
    names = [*table.cells, "nowhere"]
    found: list[str] = []
    possible = {
        "--separator": [",", ";", "tab", "::", ""],
        "--decimal": [".", ",", "x"],
        "--encoding": ["utf-8", "latin-1", "utf-16", "klingon"],
        "--categories": names,
        "--numeric": names,
        "--exclude": names,
        "--id": names,
        "--missing": ["auto", "drop", "impute", "guess"],
        "--effects": ["linear", "auto", "smooth", "bent"],
    }
    for option, values in possible.items():
        if source.random() < 0.04:
            found += [option, source.choice(values)]
    return found


def environment(source: random.Random, table: FuzzedTable) -> list[str]:
    """The option for environments: a column, several, bins, periods, or something wrong."""
    if table.environment is None:
        return []
    other = source.choice(list(table.cells))
    forms = [table.environment] * 12 + [
        f"{table.environment},{other}",
        f"{other}:bins=3",
        f"{other}:year",
        f"{other}:month",
        f"{other}:bins=x",
        "nowhere",
        "",
    ]
    return ["--environment", source.choice(forms)]


VALUES = (None, True, -1, 0, 1.5, 1e308, -1e308, 2**70, "", "clay", "sand", "light", [], {}, [[]], [1.0], {"name": "x"})


def mutated(source: random.Random, content: dict) -> bytes:
    """A JSON value with one part replaced, removed, copied or renamed, or its text with some bytes changed."""
    value = copy.deepcopy(content)
    *parents, last = source.choice([spot for spot in _spots(value) if spot])
    holder = value
    for key in parents:
        holder = holder[key]
    match source.randrange(5):
        case 0 | 1:
            holder[last] = copy.deepcopy(source.choice(VALUES))
        case 2:
            del holder[last]
        case 3 if isinstance(holder, list):
            holder.append(copy.deepcopy(holder[last]))
        case 3:
            holder[str(source.choice(VALUES))] = holder[last]
        case 4:
            return damage(source, json.dumps(value).encode())
    return json.dumps(value).encode()


def _spots(value, path=()):
    """The paths of all parts of a JSON value."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in items:
        yield from _spots(part, (*path, key))
