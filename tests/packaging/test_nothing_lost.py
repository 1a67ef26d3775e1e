"""Every public name, command and option of 0.1 is still there, or the changelog says where it went.

`face_0_1.json` was written before the packages were rearranged, and stays as it is. What is no longer at its place must
be in a line of CHANGELOG.md, in backticks (`holdfast.theory.advise`, `holdfast fit --target`): `old` -> `new`, or "is
now", "moved to", "was renamed to" in the place of the arrow, where the successor must exist; or together with the word
removed. A row of a table, | `old` | `new` | or | `old` | removed |, holds for all names below a package as well, and
for all options of a command.
"""

import contextlib
import importlib
import io
import json
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FROZEN = json.loads(Path(__file__).with_name("face_0_1.json").read_text(encoding="utf-8"))
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
SCRIPTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
ROW = re.compile(r"^\| *`([^`]+)` *\| *(?:`([^`]+)`|removed\b)", re.MULTILINE)
SUCCESSOR = re.compile(r" (?:->|is now|moved to|was renamed to) `([^`]+)`")
OPTION = re.compile(r"^[│| ] (?:\*| )? {0,2}(?:-\w, )?(--[a-z][\w-]*)", re.MULTILINE)


def imported(name: str):
    """The module of a name; None if there is none. A module that is there and breaks is an error."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if not f"{name}.".startswith(f"{error.name}."):
            raise
        return None


@cache
def options(command: str) -> set[str] | None:
    """The options that the help of a command lists; None if there is no such command."""
    script, *words = command.split()
    if script not in SCRIPTS:
        return None
    module, _, function = SCRIPTS[script].partition(":")
    page = io.StringIO()
    with contextlib.redirect_stdout(page), contextlib.redirect_stderr(io.StringIO()):
        try:
            code = getattr(importlib.import_module(module), function)([*words, "--help"])
        except SystemExit as stop:
            code = stop.code
    return None if code else {"--help", *OPTION.findall(page.getvalue())}


def exists(entry: str) -> bool:
    """Whether a dotted name, a command or an option of a command is there."""
    command, dashes, option = entry.partition(" --")
    if not dashes and " " not in entry and entry not in SCRIPTS:
        place, dot, name = entry.rpartition(".")
        module = imported(place if dot else entry)
        return module is not None and (not dot or (name in dir(module) and hasattr(module, name)))
    found = options(command)
    return found is not None and (not dashes or f"--{option}" in found)


def succeeds(new: str, old: str) -> bool:
    """Whether a successor exists; that of a package need not be listed by the package above it."""
    return exists(new) or (old in FROZEN["names"] and imported(new) is not None)


def explained(entry: str) -> bool:
    """Whether the changelog says that an entry was removed, or names a successor that exists."""
    for old, new in sorted(ROW.findall(CHANGELOG), key=lambda row: -len(row[0])):
        if entry == old or entry.startswith((f"{old}.", f"{old} ")):
            return not new or succeeds(new + entry[len(old) :], entry)
    for line in CHANGELOG.splitlines():
        _, found, rest = line.partition(f"`{entry}`")
        successor = SUCCESSOR.match(rest)
        if found and (re.search(r"\bremoved\b", line) or (successor and succeeds(successor[1], entry))):
            return True
    return False


def lost(entries: list[str]) -> list[str]:
    """What is neither at its place nor explained."""
    return [entry for entry in entries if not exists(entry) and not explained(entry)]


@pytest.mark.parametrize("place", FROZEN["names"])
def test_every_public_name_is_there_or_explained(place):
    assert lost([f"{place}.{name}" for name in FROZEN["names"][place]]) == []


def test_every_command_and_option_is_there_or_explained():
    commands = [f"holdfast {name}" for name in FROZEN["commands"]]
    flags = [f"holdfast {name} {option}" for name, found in FROZEN["commands"].items() for option in found]
    assert lost([*commands, *flags]) == []
