"""What the documents promise: their Python snippets and the examples run."""

import importlib
import re
import runpy
import sys
from pathlib import Path

import matplotlib as mpl
import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SNIPPET = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
EXAMPLES = ["first_tour.py", "will_it_wash_out.py", pytest.param("tabular.py", marks=pytest.mark.slow)]


@pytest.fixture(autouse=True)
def _away_from_home(tmp_path, monkeypatch):
    """Snippets and examples may write files."""
    monkeypatch.chdir(tmp_path)
    mpl.use("Agg")


@pytest.mark.parametrize("page", [page for page in PAGES if SNIPPET.search(page.read_text())], ids=lambda p: p.name)
def test_snippets_run(page, tmp_path, monkeypatch):
    """All snippets of a page as one module, with the line numbers of the page."""
    text, lines = page.read_text(encoding="utf-8"), []
    for found in SNIPPET.finditer(text):
        lines += [""] * (text[: found.start(1)].count("\n") - len(lines)) + found[1].splitlines()
    name = f"snippets_of_{page.stem.lower()}"
    (tmp_path / f"{name}.py").write_text("\n".join(lines) + "\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module(name)


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", [name, str(tmp_path)])
    runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")


def test_every_example_is_run():
    names = {example if isinstance(example, str) else example.values[0] for example in EXAMPLES}
    assert names == {path.name for path in (ROOT / "examples").glob("*.py")}


def test_every_module_is_in_the_design():
    """Experiments and commands are one file for each name that the command line knows."""
    tree = " ".join(re.findall(r"^ {4,}.*", (ROOT / "docs" / "design.md").read_text(encoding="utf-8"), re.MULTILINE))
    folder = ROOT / "src" / "holdfast"
    modules = (path for path in folder.rglob("*.py") if path.parent.name not in ("experiments", "commands"))
    names = {path.stem for path in modules} | {path.parent.name for path in folder.rglob("*/__init__.py")}
    missing = {name for name in names if not name.startswith("__") and not re.search(rf"\b{name}\b", tree)}
    assert missing - {"holdfast"} == set()
