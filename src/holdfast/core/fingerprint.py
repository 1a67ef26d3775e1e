"""What decides a result: a fingerprint of the code, of modules and what they use of others; versions of packages."""

import ast
import hashlib
import importlib.util
import re
import sys
import threading
from collections.abc import Iterator
from functools import cache
from importlib.machinery import PathFinder
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from platform import python_version
from typing import NamedTuple

from holdfast.core.validation import PACKAGES

COMPUTING = ("jax", "jaxlib", "numba", "numpy")
"""Packages that decide the last bits of a simulation."""
# An object named by a string, "module:attribute", is imported by whoever looks it up.
_REFERENCE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
# Python 3.11 cannot parse source in two threads at once.
_LOCK = threading.RLock()
_PACKAGE = __name__.partition(".")[0]
# Code that runs work and saves its results, but decides no number of them: imports of it are not followed.
_STORAGE = (f"{_PACKAGE}.sweeps.store.", f"{_PACKAGE}.sweeps.engines.")


@cache  # reading the metadata of a package takes longer than reading a small result
def installed_version(package: str) -> str:
    """The version of a package, or "none" where it is not installed; "python" is that of the interpreter.

    Example:
        >>> installed_version("numpy")[0].isdigit(), installed_version("a package that nobody wrote")
        (True, 'none')
    """
    try:
        return python_version() if package == "python" else version(package)
    except PackageNotFoundError:
        return "none"


def fingerprint(modules: tuple[str, ...]) -> str:
    """SHA-256 of the code of modules and of what they import, also inside functions.

    Of a module from which names are imported, the statements that these names depend on count, not the others.
    Comments, docstrings, layout and imports that only serve type checkers do not count, nor do the engines and the
    store of `holdfast.sweeps`, which compute and save results and decide none. Imports are followed within this
    package, within the packages of `modules`, and from a script to the modules and packages in its folder. A package
    that resolves its names lazily counts as a whole where such a name is used. Safe to call from several threads; the
    source is read once in the life of a process.

    Args:
        modules: dotted names; "module:name" counts only what one function or constant of the module uses in it.

    Example:
        >>> statistics = fingerprint(("holdfast.core.statistics",))
        >>> statistics == fingerprint(("holdfast.core.statistics", "holdfast.core.statistics"))
        True
        >>> statistics == fingerprint(("holdfast.core.grouping",))
        False
    """
    with _LOCK:
        return _fingerprint(tuple(sorted(set(modules))))


def reached(modules: tuple[str, ...]) -> set[str]:
    """The modules themselves, and what they import: other modules, or "module:name".

    Example:
        >>> sorted(reached(("holdfast.core.statistics:median",)))
        ['holdfast.core.statistics:median', 'holdfast.core.validation:require']
    """
    with _LOCK:
        names = {re.split("[.:]", name)[0] for name in modules}
        folders = (_folder(name) for name in names)
        roots = frozenset({_PACKAGE, *names, *(folder for folder in folders if folder)})
        seen: set[str] = set()
        waiting = list(modules)
        while waiting:
            name = waiting.pop()
            if name not in seen and name.partition(":")[0] not in seen:
                seen.add(name)
                waiting += _imports(name, roots)
        return {name for name in seen if ":" not in name or name.partition(":")[0] not in seen}


@cache
def _fingerprint(modules: tuple[str, ...]) -> str:
    digest = hashlib.sha256()
    for name in sorted(reached(modules)):
        digest.update("\n".join([name, *(each.code for each in _part(name)), ""]).encode())
    return digest.hexdigest()


def _is_docstring(statement: ast.stmt) -> bool:
    """Also the text below a constant, which documents it."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


@cache
def _imports(name: str, roots: frozenset[str]) -> tuple[str, ...]:
    found: list[str] = []
    for node in (node for statement in _part(name) for node in statement.imports):
        if isinstance(node, ast.Import):
            for alias in node.names:
                # `import a.b` binds a, and whatever a offers may be used.
                bound = alias.name if alias.asname else alias.name.partition(".")[0]
                found += [alias.name, *_lazy(bound, roots)]
        elif isinstance(node, ast.ImportFrom):
            origin = _absolute(name, node)
            for alias in node.names:
                found += _imported(origin, alias.name, roots)
        else:
            found.append(str(node.value))
    modules = {each: each.partition(":")[0] for each in found}
    return tuple(each for each, module in modules.items() if _counts(module, roots) and _path(module))


def _imported(origin: str, name: str, roots: frozenset[str]) -> list[str]:
    """What `from origin import name` brings in: a module, one name of a module, or all of a package."""
    inner = f"{origin}.{name}"
    if _within(inner, roots) and _path(inner):
        return [origin, inner]
    lazy = _lazy(origin, roots)
    return [origin, *lazy] if lazy or name == "*" else [f"{origin}:{name}"]


def _counts(module: str, roots: frozenset[str]) -> bool:
    return _within(module, roots) and not f"{module}.".startswith(_STORAGE)


def _executed(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those under `if TYPE_CHECKING`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and getattr(child.test, "id", getattr(child.test, "attr", "")) == "TYPE_CHECKING":
            continue
        yield child
        yield from _executed(child)


def _absolute(name: str, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    module = name.partition(":")[0]
    path = _path(module)
    package = module if path is not None and path.name == "__init__.py" else module.rpartition(".")[0]
    return importlib.util.resolve_name("." * node.level + (node.module or ""), package)


def _lazy(name: str, roots: frozenset[str]) -> list[str]:
    """All modules of a package whose names are resolved by its `__getattr__`; none for other modules."""
    path = _path(name) if _within(name, roots) else None
    if path is None or path.name != "__init__.py":
        return []
    if not any("__getattr__" in each.bound for each in _statements(name)):
        return []
    inner = (each.relative_to(path.parent).with_suffix("").parts for each in path.parent.rglob("*.py"))
    return [".".join((name, *(part for part in parts if part != "__init__"))) for parts in inner]


def _within(name: str, roots: frozenset[str]) -> bool:
    root = name.partition(".")[0]
    return root in roots or _home(root) in roots


def _folder(root: str) -> str:
    """Of a module that belongs to no package, so that a script goes together with what lies next to it."""
    path = _path(root) if root else None
    is_script = path is not None and path.name != "__init__.py" and path.parent.name not in PACKAGES
    return _home(root) if is_script else ""


def _home(root: str) -> str:
    """The folder in which a module or a package lies."""
    path = _path(root) if root else None
    if path is None:
        return ""
    return str(path.parent.parent if path.name == "__init__.py" else path.parent)


class _Statement(NamedTuple):
    """A statement of a module, without docstrings: the names that it binds and uses, its imports, its code as text."""

    bound: frozenset[str]
    used: frozenset[str]
    imports: tuple[ast.Import | ast.ImportFrom | ast.Constant, ...]
    code: str


def _part(name: str) -> tuple[_Statement, ...]:
    """The statements of a module; of "module:name" those that bind it or what it uses, and those that bind nothing."""
    module, _, wanted = name.partition(":")
    statements = _statements(module)
    if not any(wanted in each.bound for each in statements):
        return statements
    needed, before = {wanted}, 0
    chosen = statements
    while before < len(needed):
        before = len(needed)
        chosen = tuple(each for each in statements if not each.bound or each.bound & needed)
        needed = needed.union(*(each.used for each in chosen))
    return chosen


@cache
def _statements(module: str) -> tuple[_Statement, ...]:
    path = _path(module)
    if path is None:
        raise ValueError(f"modules must have a file with their source, got {module!r}")
    tree = ast.parse(path.read_bytes())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [statement for statement in node.body if not _is_docstring(statement)]
    return tuple(map(_described, tree.body))


def _described(statement: ast.stmt) -> _Statement:
    nodes = list(_executed(ast.Module([statement], [])))
    used = frozenset(node.id for node in nodes if isinstance(node, ast.Name))
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom | ast.Constant)]
    return _Statement(frozenset(_bound(statement)), used, tuple(filter(_leads_on, imports)), ast.dump(statement))


def _leads_on(node: ast.Import | ast.ImportFrom | ast.Constant) -> bool:
    """Whether it is an import, and no constant but a reference to an object."""
    if not isinstance(node, ast.Constant):
        return True
    return isinstance(node.value, str) and _REFERENCE.fullmatch(node.value) is not None


def _bound(node: ast.AST) -> set[str]:
    """The names that a statement binds in its module."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name.partition(".")[0] for alias in node.names}
    found = {node.id} if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else set()
    return found.union(*map(_bound, ast.iter_child_nodes(node)))


def _path(name: str) -> Path | None:
    """The file with the source of a module; None if there is none."""
    return _located(name)[0]


@cache
def _located(name: str) -> tuple[Path | None, tuple[str, ...]]:
    """The file with the source of a module, and the folders of modules within it, found without importing anything."""
    if name in sys.modules:
        origin, folders = (getattr(sys.modules[name], each, None) for each in ("__file__", "__path__"))
    else:
        package, _, last = name.rpartition(".")
        found = PathFinder.find_spec(last, _located(package)[1]) if package else importlib.util.find_spec(name)
        origin, folders = (found.origin, found.submodule_search_locations) if found else (None, None)
    return Path(origin) if origin and origin.endswith(".py") else None, tuple(folders or ())
