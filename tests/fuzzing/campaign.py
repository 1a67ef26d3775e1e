"""Fuzzed files, options and models through the command line: no traceback, no silent loss, no half-written file.

`python -m fuzzing.campaign 10000` runs cases 0 to 9999 and prints what they ended in; a second number is the first
case. The number of a case is its seed.
"""

import contextlib
import io
import json
import random
import shutil
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from unittest import mock

import pandas as pd

from fuzzing import generator
from holdfast.apps.cli.main import main
from holdfast.tables.models import TableModel

OLD = "what was there before"
# What must not be said about a file that is in order and has a column of numbers.
UNREADABLE = ("cannot be read as a table", "target must be one of", "at least one column that can be a feature")


def call(arguments: list[str]) -> tuple[int, str, str]:
    """Run the command line; returns the exit code and what it printed. Any other exception is a finding."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(arguments)
        except SystemExit as stop:
            code = int(stop.code or 0)
    return code, out.getvalue(), err.getvalue()


def check_refusal(code: int, out: str, err: str) -> None:
    """What cannot be used is one sentence, and nothing else."""
    assert code == 2, (code, err)
    assert err.startswith("holdfast: "), err
    assert err.count("\n") == 1, err
    assert out == "", out


def check_files(folder: Path, names: set[str]) -> None:
    """Nothing but what was asked for lies in the folder: no temporary files."""
    left = {path.name for path in folder.iterdir()} - names
    assert not left, left


def fit_case(source: random.Random, folder: Path) -> str:
    """A random table is fitted and predicted, or refused."""
    decimal = source.choice([".", ".", ","])
    table = generator.fuzzed_table(source, decimal)
    path, undamaged = generator.write(source, table, folder, decimal)
    options, environment = generator.options(source, table), generator.environment(source, table)
    table.clean = [name for name in table.clean if not any(name in words for words in environment)]
    model = folder / "model.json"
    model.write_text(OLD)
    command = ["fit", str(path), "--target", table.target, *environment, *options, "--out", str(model), "--overwrite"]
    code, out, err = call(command)
    if code != 0:
        check_refusal(code, out, err)
        if undamaged and not options and table.clean:
            assert not any(words in err for words in UNREADABLE), err
        assert model.read_text() == OLD
        check_files(folder, {path.name, model.name})
        return "fit refused"
    loaded = TableModel.load(model)
    assert loaded.json() == model.read_bytes()
    if undamaged:
        check_columns(table, loaded, environment, options)
    return predict_case(source, folder, model, path, loaded)


def check_columns(table: generator.FuzzedTable, model: TableModel, environment: list[str], options: list[str]) -> None:
    """A clean column of numbers is used, unless the user said otherwise or a note names it."""
    used = {column.name for column in model.columns}
    named = " ".join([*environment, *options])
    for name in table.clean:
        assert name in used or name in named or any(name in note for note in model.notes), (name, model.notes)


def predict_case(source: random.Random, folder: Path, model: Path, path: Path, loaded: TableModel) -> str:
    """The rows that were fitted are predicted with the model; some of the time they are damaged first."""
    target = folder / source.choice(["predictions.csv", "predictions.tsv", "predictions.csv.gz"])
    if damaged := source.random() < 0.3:
        path.write_bytes(generator.damage(source, path.read_bytes()))
    code, out, err = call(["predict", str(model), str(path), "--out", str(target)])
    if code != 0:
        check_refusal(code, out, err)
        check_files(folder, {path.name, model.name})
        return "predict refused"
    check_files(folder, {path.name, model.name, target.name})
    separator = "\t" if ".tsv" in target.name else ","
    written = pd.read_csv(target, sep=separator, skip_blank_lines=False)
    if not damaged:
        assert len(written) >= loaded.rows
        assert written["prediction"].notna().sum() >= loaded.rows
    assert ("rows have no prediction" in err) == bool(written["prediction"].isna().any())
    return "predicted"


def model_case(source: random.Random, folder: Path) -> str:
    """A mutated model predicts, or is refused."""
    columns = [
        {"name": "light", "fill": 0.5},
        {"name": "soil", "kind": "category", "categories": ["clay", "sand"], "fill": "sand"},
        {"name": "day", "kind": "date", "knots": [18_000.0, 18_200.0, 18_500.0]},
    ]
    curve = [0.01, 0.02, 0.0, -0.01]
    regression = {"task": "regression", "coefficients": [[2.0, 0.25, 0.5, 0.1, *curve]], "intercepts": [1.0]}
    rows = {
        "coefficients": [[1.0, 0, 0, 0, *curve], [0, 0, 2.0, 0, 0, 0, 0, 0], [0, 1.0, 0, 0, *curve]],
        "intercepts": [0, 1.0, 2.0],
    }
    classes = {"task": "classification", "classes": ["oak", "pine", "yew"], **rows}
    base = {
        "format": "holdfast linear model 3",
        "target": "yield",
        "columns": columns,
        "advice": ["Use it."],
        "rows": 9,
    }
    relations = [{"feature": "light", "coefficient": 2.0, "varies": False, "exponent": None}]
    content = {**base, "relations": relations, **source.choice([regression, classes])}
    model, path, target = folder / "model.json", folder / "new.csv", folder / "predictions.csv"
    model.write_bytes(generator.mutated(source, content))
    path.write_text("light,soil,day,x\n1.5,sand,2020-01-31,1\n,clay,2020-02-29,2\n2,,,3\n")
    code, out, err = call(["predict", str(model), str(path), "--out", str(target)])
    if code != 0:
        check_refusal(code, out, err)
        check_files(folder, {path.name, model.name})
        return "model refused"
    assert len(pd.read_csv(target, skip_blank_lines=False)) == 3
    return "model used"


def option_case(source: random.Random, folder: Path) -> str:
    """Words in random order: a command line that is refused, whatever it says."""
    path = folder / "table.csv"
    path.write_text("light,soil,yield\n1,clay,2\n2,sand,3\n3,clay,4\n")
    words = [
        *("--target", "yield", "soil", "--environment", "soil", "--out", str(folder / "model.json"), "-", "--format"),
        *("json", "table", "--seed", "one", "--tolerance", "nan", "-1", str(path), str(folder), str(folder / "*.csv")),
        *("--missing", "impute", "--id", "--separator", "", "\t", "--held-out", "--level", "--task", "--decimal", ","),
    ]
    command = [source.choice(["fit", "predict", "advise"]), *source.sample(words, source.randrange(1, 8))]
    with mock.patch("sys.stdin", io.TextIOWrapper(io.BytesIO(source.choice([b"", b"light,yield\n1,2\n2,4\n"])))):
        code, out, err = call(command)
    if code != 0:
        check_refusal(code, out, err)
        return "options refused"
    return "options used"


CASES = {fit_case: 0.65, model_case: 0.25, option_case: 0.10}


def run_case(seed: int) -> str:
    """One case in a folder of its own; returns what it ended in. AssertionError or any other error is a finding."""
    source = random.Random(seed)
    folder = Path(tempfile.mkdtemp(prefix="holdfast-fuzzing-"))
    (case,) = source.choices(list(CASES), list(CASES.values()))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return case(source, folder)
    finally:
        shutil.rmtree(folder)


def campaign(first: int, count: int) -> tuple[Counter, list[tuple[int, BaseException]]]:
    """Run cases; returns how often each end occurred, and the findings with their seeds."""
    ends: Counter = Counter()
    findings: list[tuple[int, BaseException]] = []
    for seed in range(first, first + count):
        try:
            ends[run_case(seed)] += 1
        except Exception as error:
            findings.append((seed, error))
    return ends, findings


if __name__ == "__main__":
    total, begin = [*map(int, sys.argv[1:]), 0][:2]
    counts, found = campaign(begin, total)
    print(json.dumps({"cases": total, **dict(counts), "findings": len(found)}, indent=1))
    for number, error in found[:20]:
        print(f"case {number}: {type(error).__name__}: {str(error)[:500]}", file=sys.stderr)
    sys.exit(bool(found))
