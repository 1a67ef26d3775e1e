"""The rules of the house that a program can check: class names, sizes of files, widths of lines."""

import ast
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = sorted(path for folder in ("src", "tests", "examples") for path in (ROOT / folder).rglob("*.py"))
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
# written by `make compare`, by `make licences` and from recorded results
GENERATED = {"comparison_table.md", "licences.md"}
GENERATED |= {
    "coloured_mnist_table.md",
    "coloured_mnist_scripts.md",
    "coloured_mnist_gains.md",
    "coloured_mnist_trials.md",
}


def _at(path: Path, line: int, what: str = "") -> str:
    return f"{path.relative_to(ROOT)}:{line} {what}".rstrip()


def test_no_class_name_is_defined_twice():
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in SOURCES if path.is_relative_to(ROOT / "src")]
    names = Counter(node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    assert [name for name, count in names.items() if count > 1] == []


def test_files_are_short_and_their_names_say_what_is_in_them():
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES}
    assert [_at(path, length) for path, length in lengths.items() if length > 400] == []
    assert [str(path) for path in SOURCES if path.stem in {"utils", "helpers", "misc", "common"}] == []


def test_documents_are_at_most_120_columns_wide():
    pages = [page for page in PAGES if page.name not in GENERATED]
    lines = [(page, *line) for page in pages for line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1)]
    found = [_at(page, number) for page, number, line in lines if len(line) > 120]
    assert not found, "\n".join(found)


def test_no_path_of_a_machine_is_written_down():
    pattern = re.compile(r"/(?:home|root|Users|work|tmp)/\w+")
    texts = {path: path.read_text(encoding="utf-8") for path in (*SOURCES, *PAGES)}
    assert [_at(path, 0, found) for path, text in texts.items() for found in pattern.findall(text)] == []
