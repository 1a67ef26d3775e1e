"""What the documents promise: their Python snippets and the examples run."""

import importlib
import re
import runpy
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import pytest

from holdfast_studies.names import FOLDERS

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SNIPPET = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Those of the gallery; the scripts on coloured MNIST, which need its files, have tests of their own.
GALLERY = ("science", "tutorials", "more")
EXAMPLES = {path.name: path for folder in GALLERY for path in sorted((ROOT / "examples" / folder).glob("*.py"))}
# `make gallery` runs the examples, and warnings are errors there, too. These are run here: one as a sample of them, and
# one that takes minutes, which the gallery shows without running it.
SAMPLE, NOT_IN_GALLERY = "absorbing_sets.py", "selection.py"


@pytest.fixture(autouse=True)
def _away_from_home(tmp_path, monkeypatch):
    """Snippets and examples may write files."""
    monkeypatch.chdir(tmp_path)
    mpl.use("Agg")


def _module(page, folder):
    """The snippets of a page as one module, with the line numbers of the page."""
    text, lines = page.read_text(encoding="utf-8"), []
    for found in SNIPPET.finditer(text):
        lines += [""] * (text[: found.start(1)].count("\n") - len(lines)) + found[1].splitlines()
    path = folder / f"snippets_of_{page.stem.lower()}.py"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("page", [page for page in PAGES if SNIPPET.search(page.read_text())], ids=lambda p: p.name)
def test_snippets_run(page, tmp_path, monkeypatch):
    path = _module(page, tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module(path.stem)


def test_the_type_checker_knows_the_contracts(tmp_path):
    """It accepts the guide to objects of one's own, and sees that a field of the experiment is missing."""
    path = _module(ROOT / "docs" / "extend.md", tmp_path)
    check = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", str(path)]
    for words in ("no issues found", 'Missing positional argument "quick_seeds"'):
        done = subprocess.run(check, capture_output=True, text=True, cwd=ROOT)
        assert words in done.stdout, done.stdout
        path.write_text(path.read_text().replace("    quick_seeds=16,\n", ""))


@pytest.mark.parametrize("name", [SAMPLE, pytest.param(NOT_IN_GALLERY, marks=pytest.mark.slow)])
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", [name, str(tmp_path)])
    runpy.run_path(str(EXAMPLES[name]), run_name="__main__")


def test_the_gallery_runs_every_other_example():
    settings = (ROOT / "docs" / "conf.py").read_text(encoding="utf-8")
    pattern = re.search(r'"filename_pattern": r"(.*)",', settings)[1]
    assert {name for name, path in EXAMPLES.items() if not re.search(pattern, str(path))} == {NOT_IN_GALLERY}


def test_every_example_has_its_line_in_the_gallery(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    order = importlib.import_module("gallery").ORDER
    assert sorted(order) == sorted(EXAMPLES)


def _tree():
    """The folders of the trees of the design by their paths, each with its words."""
    page = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    entries, path = {}, Path()
    for line in re.findall(r"^ {4,}.*", page.partition("## The tree")[2].partition("\n## ")[0], re.MULTILINE):
        if begin := re.match(r" {4}((?:  ){0,4})(\w+)/(?: |$)", line):
            path = Path(*path.parts[: len(begin[1]) // 2], begin[2])
        entries.setdefault(path, set()).update(re.findall(r"\w+", line[begin.end() if begin else 0 :]))
    return entries


def test_every_module_is_in_the_design_at_its_own_folder():
    """But for experiments, one file for each name that the command line knows."""
    entries, folder = _tree(), ROOT / "src"
    paths = {path.relative_to(folder).with_suffix("") for path in folder.rglob("*.py")}
    known = {Path("holdfast_studies", place, name) for place, titles in FOLDERS.items() for name in titles}
    modules = {path for path in paths - known if path.stem[0] != "_"}
    assert {path for path in modules if path.stem not in entries.get(path.parent, ())} == set()
    assert set(entries) == {path.parent for path in paths}
