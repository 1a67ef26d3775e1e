"""Names that are resolved when they are used. Imports nothing heavy, so that the command line starts at once."""

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple


class Named(NamedTuple):
    """A part of the library behind a name.

    Attributes:
        target: "module:attribute".
        words: what it is, for the help texts of the command line and the docs.

    Example:
        >>> Named("math:tau", "the circumference of the unit circle").load()
        6.283185307179586
    """

    target: str
    words: str

    def load(self) -> Any:
        """Import the part."""
        module, attribute = self.target.split(":")
        return getattr(import_module(module), attribute)


ORDERS = {
    "independent": Named("holdfast.core.order:independent", "drawn anew in each step, as in the papers"),
    "reshuffled": Named("holdfast.core.order:reshuffled", "in cycles through all, each in a fresh random order"),
    "cyclic": Named("holdfast.core.order:cyclic", "in cycles through all, always in the same order"),
}
"""Orders of environments or observed entries: (visits of a cycle, seed of the run) -> `holdfast.core.order.Order`."""


def for_comparisons(module: str, purpose: str) -> Any:
    """A module of a package that only comparisons need; a ValueError says how to install it.

    Example:
        >>> for_comparisons("no_such_package.module", "a test of anchors")
        Traceback (most recent call last):
        ValueError: a test of anchors needs the package no_such_package: pip install 'holdfast[compare]'
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        raise ValueError(f"{purpose} needs the package {package}: pip install 'holdfast[compare]'") from error


@contextlib.contextmanager
def modules_in(folder: str) -> Iterator[None]:
    """Modules are looked for in a folder first, until the block ends; threads may overlap.

    Example:
        >>> before = list(sys.path)
        >>> with modules_in("."):
        ...     sys.path == [str(Path.cwd()), *before]
        True
        >>> sys.path == before
        True
    """
    path = str(Path(folder).resolve())
    sys.path.insert(0, path)  # once for each thread, so that none takes away what another one needs
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # a module of the user's may have changed the list
            sys.path.remove(path)


class Choice(NamedTuple):
    """In the type of a setting: it takes one of these names.

    `holdfast.core.validation` reads the allowed names from it, the command line the choices and the help text.

    Attributes:
        subject: what is chosen.
        names: the choices.

    Example:
        >>> Choice("The constant", {"tau": Named("math:tau", "of the unit circle")}).sentence
        'The constant. tau: of the unit circle.'
    """

    subject: str
    names: Mapping[str, Named]

    @property
    def sentence(self) -> str:
        """What is chosen, and between what."""
        described = "; ".join(f"{name}: {named.words}" for name, named in self.names.items())
        return f"{self.subject}. {described}."


def lazy_names(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package whose public names are imported when they are first used.

    The names are listed in its `__init__.pyi`, which type checkers read as well.

    Args:
        package: `__name__`.
        file: `__file__`.

    Example:
        >>> import holdfast
        >>> load, listed, names = lazy_names("holdfast", holdfast.__file__)
        >>> load("Settings")(steps=7).steps, listed() == names
        (7, True)
    """
    try:
        from lazy_loader import attach_stub
    except ModuleNotFoundError:
        # On an accelerator with jax, numpy and scipy alone, modules of the numerical core are imported by full names.
        return partial(_missing, package), list, []
    return attach_stub(package, file)


def _missing(package: str, name: str) -> Any:
    raise AttributeError(f"{package} has no attribute {name!r}: its public names need lazy_loader, modules do not")


def readable(part: Any) -> str:
    """A name for an object that a user brought, the same in every process: without addresses in memory.

    Example:
        >>> from functools import partial
        >>> readable(partial(sorted, reverse=True))
        'sorted(reverse=True)'
    """
    if isinstance(part, partial):
        arguments = [*map(readable, part.args), *(f"{name}={readable(value)}" for name, value in part.keywords.items())]
        return f"{readable(part.func)}({', '.join(arguments)})"
    kind: Any = type(part)
    plain = kind if kind.__repr__ is object.__repr__ else part  # the plain representation of an object is its address
    return getattr(plain, "__qualname__", None) or repr(plain)
