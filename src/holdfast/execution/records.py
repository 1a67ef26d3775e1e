"""Keeps cells of the comparison, a method on one seed of a test, so that nothing is computed twice."""

import ast
import hashlib
import importlib.util
import json
import os
import threading
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

Values = dict[str, float | str]


def cell_key(name: tuple[str, str, int], modules: tuple[str, ...], packages: tuple[str, ...]) -> str:
    """Names a cell by all that decides its numbers.

    Args:
        name: of the test, the method, and the seed.
        modules: of this package that the numbers rest on; what they import is found.
        packages: of others.
    """
    versions = {package: _version(package) for package in packages}
    told = json.dumps([name, source_fingerprint(modules), versions], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:24]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


@cache
def source_fingerprint(modules: tuple[str, ...]) -> str:
    """Of the code of modules of this package and of all that they import from it, also inside of functions.

    Comments, docstrings and layout do not count.
    """
    found = hashlib.sha256()
    for name in sorted(_reached(modules)):
        found.update(f"{name}\n{_code(name)}\n".encode())
    return found.hexdigest()


@cache
def _code(name: str) -> str:
    tree = ast.parse(_source(name))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return ast.dump(tree)


def _reached(modules: tuple[str, ...]) -> set[str]:
    seen: set[str] = set()
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for node in ast.walk(ast.parse(_source(name))):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("holdfast"):
                # what is imported may be a name or a module of its own
                inner = [f"{node.module}.{alias.name}" for alias in node.names]
                waiting += [node.module, *(each for each in inner if _is_module(each))]
            elif isinstance(node, ast.Import):
                waiting += [alias.name for alias in node.names if alias.name.startswith("holdfast")]
    return seen


@cache
def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


@cache
def _source(name: str) -> bytes:
    specification = importlib.util.find_spec(name)
    if specification is None or specification.origin is None:
        raise ValueError(f"modules must be importable, got {name!r}")
    return Path(specification.origin).read_bytes()


class Kept:
    """Cells in a file, one a line, appended when computed: a run that is killed loses the cells in work, no other."""

    def __init__(self, path: Path):
        self._path, self._lock = path, threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._cells: dict[str, Values] = {}
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        for line in text.splitlines():
            try:
                record = json.loads(line)
                self._cells[record["key"]] = record["values"]
            except (ValueError, KeyError, TypeError):
                continue  # the line that was being written when the run was killed
        if text and not text.endswith("\n"):
            with path.open("a", encoding="utf-8") as file:
                file.write("\n")

    def get(self, key: str) -> Values | None:
        """A cell that was computed, or None."""
        return self._cells.get(key)

    def keep(self, key: str, values: Values, about: Mapping[str, str | int]) -> None:
        """Add a cell; `about` is for people who read the file."""
        line = json.dumps({"key": key, **about, "values": values})
        with self._lock:
            self._cells[key] = values
            with self._path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
                file.flush()
                os.fsync(file.fileno())
