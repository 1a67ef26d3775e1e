"""A command: its arguments and what it does. Other packages add commands as entry points."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from importlib.metadata import entry_points
from typing import Any

from holdfast.core.validation import require

ENTRY_POINTS = "holdfast.commands"


@dataclass(frozen=True)
class Command:
    """A command of the command line.

    Attributes:
        group: its heading in the overview.
        arguments: a frozen dataclass, whose docstrings are the help texts; a field with `Positional` in its annotation
            is given by position, and a field that is a data class has its own fields as options.
        execute: takes the arguments and returns the exit code; imports what is heavy.
        choices: the words that are allowed for arguments given by position, if they are not any.
    """

    group: str
    arguments: Any
    execute: Callable[[Any], int]
    choices: Sequence[str] = ()


@dataclass(frozen=True)
class Positional:
    """Marks a field that is given by its position; `name` stands for it in help texts and errors."""

    name: str


def installed_commands() -> dict[str, Command]:
    """The commands of installed packages, each a `Command` that an entry point of the group `holdfast.commands` names.

    Example:
        >>> "reproduce" in installed_commands()
        True
    """
    return {point.name: point.load() for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda each: each.name)}


def given(options: Any) -> dict[str, Any]:
    """The fields of a dataclass that do not have their default values.

    Example:
        >>> from holdfast.tables.options import ReadingOptions
        >>> given(ReadingOptions(decimal=","))
        {'decimal': ','}
    """
    known = ((each.default, each.name, getattr(options, each.name)) for each in fields(options))
    return {name: value for default, name, value in known if value != default}


def fixed_axes(words: Iterable[str]) -> dict[str, Any]:
    """Axes with their values, from words such as bias=1 or order=cyclic; numbers become numbers.

    Example:
        >>> fixed_axes(["bias=1", "order=cyclic"])
        {'bias': 1.0, 'order': 'cyclic'}
    """
    found: dict[str, Any] = {}
    for word in words:
        name, mark, value = (part.strip() for part in word.partition("="))
        require(bool(name and mark and value), "at must be name=value", repr(word))
        require(name not in found, f"at must fix {name} at one value", f"{word!r} as well")
        try:
            found[name] = float(value)
        except ValueError:
            found[name] = value
    return found


def answer(form: str, plain: Any, show: Callable[[], object]) -> None:
    """Print an answer in the form that `--format` names: as JSON, or for people."""
    if form == "json":
        print(json.dumps(plain, allow_nan=False))
    else:
        show()
