"""A fingerprint of the code that decides a result: the modules that are named, and all that they reach by imports."""

import ast
import hashlib
import importlib.util
import re
import sys
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path

# An object named by a string, "module:attribute", is imported by whoever looks it up.
_REFERENCE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
# Python 3.11 cannot parse source in two threads at once.
_LOCK = threading.RLock()
_PACKAGE = __name__.partition(".")[0]


def fingerprint(modules: tuple[str, ...]) -> str:
    """SHA-256 of the code of modules and of everything that they import, also inside functions.

    Comments, docstrings, layout and imports that only serve type checkers do not count. Imports are followed within
    this package, within the packages of `modules`, and from a script to the modules in its folder. A package that
    resolves its names lazily counts as a whole where such a name is used. Safe to call from several threads; the source
    is read once in the life of a process.

    Args:
        modules: dotted names; "module:name" counts only what one function or constant of the module uses in it.

    Example:
        >>> statistics = fingerprint(("holdfast.core.statistics",))
        >>> statistics == fingerprint(("holdfast.core.statistics", "holdfast.core.statistics"))
        True
        >>> statistics == fingerprint(("holdfast.core.survival",))
        False
    """
    with _LOCK:
        return _fingerprint(tuple(sorted(set(modules))))


def reached(modules: tuple[str, ...]) -> set[str]:
    """The modules themselves, and those that they import.

    Example:
        >>> sorted(reached(("holdfast.core.survival",)))
        ['holdfast.core.statistics', 'holdfast.core.survival']
    """
    with _LOCK:
        names = {re.split("[.:]", name)[0] for name in modules}
        folders = (_folder(name) for name in names)
        roots = frozenset({_PACKAGE, *names, *(folder for folder in folders if folder)})
        seen: set[str] = set()
        waiting = list(modules)
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                waiting += _imports(name, roots)
        return seen


@cache
def _fingerprint(modules: tuple[str, ...]) -> str:
    digest = hashlib.sha256()
    for name in sorted(reached(modules)):
        digest.update(f"{name}\n{_code(name)}\n".encode())
    return digest.hexdigest()


@cache
def _code(name: str) -> str:
    """The syntax tree without docstrings, as text."""
    tree = _tree(name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [statement for statement in node.body if not _is_docstring(statement)]
    return ast.dump(tree)


def _is_docstring(statement: ast.stmt) -> bool:
    """Also the text below a constant, which documents it."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


@cache
def _imports(name: str, roots: frozenset[str]) -> tuple[str, ...]:
    found: list[str] = []
    for node in _executed(_tree(name)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                # `import a.b` binds a, and whatever a offers may be used.
                bound = alias.name if alias.asname else alias.name.partition(".")[0]
                found += [alias.name, *_lazy(bound, roots)]
        elif isinstance(node, ast.ImportFrom):
            origin = _absolute(name, node)
            inner = [f"{origin}.{alias.name}" for alias in node.names]
            modules = [each for each in inner if _within(each, roots) and _path(each)]
            found += [origin, *modules, *(_lazy(origin, roots) if len(modules) < len(inner) else ())]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _REFERENCE.fullmatch(node.value):
            found.append(node.value.partition(":")[0])
    return tuple(each for each in found if _within(each, roots) and _path(each))


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
    if "__getattr__" not in _bound(_tree(name)):
        return []
    inner = (each.relative_to(path.parent).with_suffix("").parts for each in path.parent.rglob("*.py"))
    return [".".join((name, *(part for part in parts if part != "__init__"))) for parts in inner]


def _within(name: str, roots: frozenset[str]) -> bool:
    root = name.partition(".")[0]
    return root in roots or _folder(root) in roots


def _folder(root: str) -> str:
    """Of a module that belongs to no package, so that a script and the modules next to it go together."""
    path = _path(root) if root else None
    return "" if path is None or path.name == "__init__.py" else str(path.parent)


def _tree(name: str) -> ast.Module:
    module, _, wanted = name.partition(":")
    path = _path(module)
    if path is None:
        raise ValueError(f"modules must have a file with their source, got {name!r}")
    tree = ast.parse(path.read_bytes())
    if wanted in _bound(tree):
        tree.body = _used(tree, wanted)
    return tree


def _used(tree: ast.Module, wanted: str) -> list[ast.stmt]:
    """The statements of a module that bind a name, those that bind what they use, and those that bind nothing."""
    needed, before = {wanted}, 0
    chosen: list[ast.stmt] = []
    while before < len(needed):
        before = len(needed)
        chosen = [statement for statement in tree.body if not (bound := _bound(statement)) or bound & needed]
        needed |= {node.id for each in chosen for node in ast.walk(each) if isinstance(node, ast.Name)}
    return chosen


def _bound(node: ast.AST) -> set[str]:
    """The names that a statement binds in its module."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name.partition(".")[0] for alias in node.names}
    found = {node.id} if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else set()
    return found.union(*map(_bound, ast.iter_child_nodes(node)))


@cache
def _path(name: str) -> Path | None:
    """The file of a module, found without importing anything; None if there is none."""
    root, *inner = name.split(".")
    if name in sys.modules or not inner:
        specification = importlib.util.find_spec(root) if root not in sys.modules else None
        origin = specification.origin if specification else getattr(sys.modules.get(name), "__file__", None)
        return Path(origin) if origin and origin.endswith(".py") else None
    package = _path(name.rpartition(".")[0])
    if package is None or package.name != "__init__.py":
        return None
    choices = (package.parent / inner[-1] / "__init__.py", package.parent / f"{inner[-1]}.py")
    return next((choice for choice in choices if choice.is_file()), None)
