"""A command: its arguments and what it does. Other packages add commands as entry points."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any

ENTRY_POINTS = "holdfast.commands"


@dataclass(frozen=True)
class Command:
    """What the command line knows of a command.

    Attributes:
        group: its heading in the overview.
        arguments: a frozen dataclass, whose docstrings are the help texts.
        execute: takes the arguments and returns the exit code; imports what is heavy.
        choices: what a shell completes for arguments given by position, beside the choices that their type has.
    """

    group: str
    arguments: Any
    execute: Callable[[Any], int]
    choices: Sequence[str] = ()


def installed_commands() -> dict[str, Command]:
    """The commands of installed packages, each a `Command` that an entry point of the group `holdfast.commands` names.

    Example:
        >>> "reproduce" in installed_commands()
        True
    """
    return {point.name: point.load() for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda each: each.name)}
