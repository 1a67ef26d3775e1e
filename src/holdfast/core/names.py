"""Parts of the library that settings choose by name. Imports nothing heavy, so that the command line starts at once."""

from collections.abc import Mapping
from functools import partial
from importlib import import_module
from typing import Annotated, Any, Literal, NamedTuple

try:
    from typing_extensions import Doc
except ModuleNotFoundError:  # it comes with the command line, whose help texts are the only readers
    Doc = str  # type: ignore[misc, assignment]


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


def choice(subject: str, names: Mapping[str, Named]) -> Any:
    """The type of a setting that takes one of these names.

    `holdfast.core.validation` reads the allowed names from it, the command line the choices and the help text.

    Args:
        subject: what is chosen.
        names: the choices.
    """
    described = "; ".join(f"{name}: {named.words}" for name, named in names.items())
    return Annotated[Literal[tuple(names)], Doc(f"{subject}. {described}.")]


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
