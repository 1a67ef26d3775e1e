"""Configuration of the documentation; writes one page of the API reference for each subpackage."""

import importlib
import inspect
import pkgutil
import re
import sys
from pathlib import Path
from typing import NewType

import jax.typing
from sphinx.pycode import ModuleAnalyzer

import holdfast

sys.path.insert(0, str(Path(__file__).parent))  # for gallery.py and mathml.py

# A union of seven types: the reference calls it by its name. Set before any module of the package is loaded.
jax.typing.ArrayLike = NewType("ArrayLike", object)  # type: ignore[misc]

project = "Holdfast"
author = "The Holdfast developers"
extensions = ["mathml", "myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_gallery.gen_gallery"]
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "Holdfast"
html_show_copyright = False
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
sphinx_gallery_conf = {
    "examples_dirs": ["../examples/science", "../examples/tutorials", "../examples/more"],
    "gallery_dirs": ["science", "tutorials", "more"],
    "filename_pattern": r"/(?!selection)[a-z_]+\.py$",  # all run but one, which takes minutes
    "within_subsection_order": "gallery.position",
    "image_scrapers": ("gallery.scrape",),
    "reset_modules": ("gallery.warnings_are_errors",),
    "reset_modules_order": "both",
    "download_all_examples": False,
    "write_computation_times": False,
    "show_signature": False,
    "nested_sections": False,
}
# tables are included by pages
exclude_patterns = ["_build", "comparison_table.md", "coloured_mnist_*.md"]
default_role = "code"
autodoc_default_options = {
    "members": True,
    "imported-members": True,  # what a package exports is documented there, by its public name
    "show-inheritance": True,
}
autodoc_typehints = "description"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
napoleon_use_ivar = True
suppress_warnings = ["ref.python"]  # several settings have a step size

SECTIONS = re.compile(r"(Args|Attributes|Returns|Yields|Raises|Example|Examples|Note|References):$")
RESULT = re.compile(r" {4}([a-z_]\w*(?:, [a-z_]\w*)*): (.*)")
CODE = re.compile(r"(`+[^`]*`+)")


# What Sphinx documents by itself; everything else that is public is a constant.
OBJECTS = (inspect.ismodule, inspect.isclass, inspect.isroutine)
# Public name of a constant -> the text below its definition, which Sphinx finds only where it is defined.
CONSTANTS: dict[str, list[str]] = {}


def write_reference(folder: Path) -> None:
    """Write `api/NAME.md` for each subpackage: its public names, then those of the packages in it."""
    folder.mkdir(exist_ok=True)
    rows = []
    parts = set(dir(holdfast)) & {module.name for module in pkgutil.iter_modules(holdfast.__path__)}
    for name in (*(f"holdfast.{part}" for part in sorted(parts)), "holdfast_studies"):
        package = importlib.import_module(name)
        found = pkgutil.iter_modules(package.__path__, f"{name}.")
        inner = [importlib.import_module(module.name) for module in found if module.ispkg]
        faces = [package, *(each for each in inner if not set(getattr(each, "__all__", ())) <= set(package.__all__))]
        sections = [f"# {name}"]
        for face in faces:
            texts = constants(face)
            CONSTANTS.update(texts)
            lines = [f".. automodule:: {face.__name__}", *(f".. autodata:: {each}\n   :no-value:" for each in texts)]
            values = (getattr(face, each) for each in face.__all__)
            public = [value for value in values if inspect.ismodule(value) and not hasattr(value, "__path__")]
            lines += [f".. automodule:: {module.__name__}\n   :no-imported-members:" for module in public]
            heading = [] if face is package else [f"## {face.__name__}"]
            sections += [*heading, "```{eval-rst}", *lines, "```"]
        write(folder / f"{name}.md", "\n\n".join(sections) + "\n")
        rows.append(f"| [{name}]({name}.md) | {inspect.getdoc(package).splitlines()[0]} |")
    shortcuts = [name for name in dir(holdfast) if not inspect.ismodule(getattr(holdfast, name))]
    listed = ", ".join(f"`hf.{name}`" for name in shortcuts)
    text = f"`import holdfast as hf` gives the subpackages and, for short, {listed}."
    write(folder / "index.md", "\n".join(["# Reference", "", text, "", "| package | |", "|---|---|", *rows]) + "\n")


def constants(face) -> dict[str, list[str]]:
    """The constants that a package exports from its modules, each with the text below its definition."""
    values = {name: getattr(face, name) for name in face.__all__}
    wanted = {name for name, value in values.items() if not any(kind(value) for kind in OBJECTS)}
    wanted -= {name for _, name in ModuleAnalyzer.for_module(face.__name__).find_attr_docs()}
    texts = {}
    for module in pkgutil.walk_packages(getattr(face, "__path__", []), f"{face.__name__}."):
        for (owner, name), lines in ModuleAnalyzer.for_module(module.name).find_attr_docs().items():
            if not owner and name in wanted:
                texts[f"{face.__name__}.{name}"] = lines
    if len(texts) < len(wanted):
        raise ValueError(f"constants of {face.__name__} must have a text below them, got one for {list(texts)} only")
    return texts


def write_names(path: Path) -> None:
    """Write a table of the names that settings accept, which vocabulary.md includes."""
    rows = ["| kind | name | meaning |", "|---|---|---|"]
    for module in ("holdfast.sensing.settings", "holdfast.completion.settings"):
        for kind, names in vars(importlib.import_module(module)).items():
            if isinstance(names, dict) and kind.isupper():
                rows += [f"| {kind.lower()} | {name} | {part.words} |" for name, part in names.items()]
    write(path, "\n".join(rows) + "\n")


def write(path: Path, text: str) -> None:
    """Write a file unless it has this text already, so that pages that did not change are not built again."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def as_restructured_text(app, what, name, obj, options, lines) -> None:
    """Docstrings are plain text: formulas set off by indentation become literal blocks, and stars stay stars."""
    text: list[str] = []
    literal, section = False, ""
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if found := SECTIONS.match(line):
            section = found[1]
        elif line and not indent:
            section = ""
        if line and not indent:
            text += [""] if literal else []
            literal = False
        elif indent >= 4 and not section and not literal:
            literal = True
            text += ["", "::", ""]
        if section in ("Returns", "Yields") and (item := RESULT.match(line)):  # several results become a list
            line, indent = f"    - `{item[1]}`, {item[2]}", 4
        elif section in ("Returns", "Yields") and indent > 4:
            line = "      " + line.lstrip()
        verbatim = literal or line.lstrip().startswith((">>>", "..."))
        text.append(line if verbatim else "".join(_escape(part) for part in CODE.split(line)))
    lines[:] = text


def texts_of_constants(app, what, name, obj, options, lines) -> None:
    """After napoleon, which takes what stands before the first colon of such a text for a type."""
    if name in CONSTANTS:
        lines[:] = CONSTANTS[name]
        as_restructured_text(app, what, name, obj, options, lines)


def _escape(text: str) -> str:
    if text.startswith("`"):
        return text
    text = re.sub(r"([*|\\]|(?<=\w)_(?=\W|$))", r"\\\1", text)
    return re.sub(r"(?<=: )(\w)\.$", r"\1\\.", text)  # "dimension: d." has no list with an item d


def leave_out(app, what, name, obj, skip, options) -> bool | None:
    """Leave out what Python and scikit-learn add to our classes: aliases of fields, requests of metadata."""
    generated = str(obj.__doc__).startswith("Alias for field number") or re.fullmatch(r"set_\w+_request", name)
    return True if generated else None


def setup(app) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-skip-member", leave_out)
    app.connect("autodoc-process-docstring", as_restructured_text, priority=400)  # before napoleon, at 500
    app.connect("autodoc-process-docstring", texts_of_constants, priority=600)


write_reference(Path(__file__).parent / "api")
write_names(Path(__file__).parent / "api" / "names.txt")
