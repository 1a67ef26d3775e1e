"""The rules of the house that a program can check: names, sizes of files, widths of lines."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
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

# Words that nobody can guess the meaning of, or that stood for several things at once.
BANNED_CLASSES = {"Build", "Table", "Moments", "Task", "Fitted", "Paths", "Draw"}
BANNED_WORDS = {"kept", "shown", "stored", "told", "posed", "places", "there"}


def _defined_names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Names that a module defines: classes, functions, arguments, variables and attributes, with their lines."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name, node.lineno
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name, node.lineno
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name, node.lineno
            case ast.alias(asname=str(name)):
                yield name, 0


def _banned(name: str) -> bool:
    if name.startswith("test_"):  # names of tests are sentences
        return False
    bare = name.strip("_")
    return bare in BANNED_CLASSES or not BANNED_WORDS.isdisjoint(bare.lower().split("_"))


def _at(path: Path, line: int, what: str = "") -> str:
    return f"{path.relative_to(ROOT)}:{line} {what}".rstrip()


def test_names_say_what_they_mean():
    found = []
    for path in SOURCES:
        names = [(path.stem, 0), *_defined_names(ast.parse(path.read_text(encoding="utf-8")))]
        found += [_at(path, line, name) for name, line in names if _banned(name)]
    assert not found, "\n".join(found)


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
