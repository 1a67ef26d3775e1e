"""Errors of the command line's parser as one sentence: the argument, the value and what is allowed."""

import re
from itertools import groupby

# Parts of the parser's names for kinds of values, and what they are called here.
_KINDS = {"INT": "a whole number", "FLOAT": "a number", "PATH": "a path", "STR": "a text"}
_VALUE = r"""(?:'[^']*'|"[^"]*")"""
_PARSING = re.compile(rf"Error parsing (?P<name>--\S+): .*?\[?(?P<value>{_VALUE}(?:, {_VALUE})*)\]?\.?$")
_CHOICE = re.compile(
    r"invalid choice (?P<value>'.*') for argument '(?P<name>.*)'\. Expected one of \((?P<known>.*)\)\.$"
)
_UNKNOWN = re.compile(r"Unrecognized (?:or misplaced )?options:\s*(?P<value>[^\s,]+)")


def sentence(box: str, command: str) -> str:
    """What is wrong, from the box that tyro draws around an error.

    Args:
        box: so wide that no line of it is broken.
        command: the first argument, which should be the name of a command.
    """
    paragraphs = _paragraphs(box)
    if not paragraphs:
        return "the command line cannot be understood; `holdfast --help` lists the commands"
    head = " ".join(paragraphs[0]).partition(" Got errors:")[0]
    unknown = next((found for lines in paragraphs if (found := _UNKNOWN.match(" ".join(lines)))), None)
    if found := _PARSING.match(head):
        return f"{found['name']} must be {_kind(paragraphs)}, got {found['value']}"
    if found := _CHOICE.match(head):
        return f"{found['name']} must be one of {found['known'].replace(chr(39), '')}, got {found['value']}"
    if found := re.match(r"Missing value for argument '(.*?)'", head):
        return f"{found[1]} must be given a value"
    if found := re.match(r"Expected one of \{(.*)\}\.", head):
        return f"the command must be one of {found[1]}, got none"
    if found := re.match(r"Missing from (holdfast \w+): (.*)", head):
        named = re.findall(r"(?:^|\) )(--[\w-]+|[A-Z]+)\b", found[2])
        beside = f"; {unknown['value']} is no option of it" if unknown else ""
        return f"{found[1]} must be given {' and '.join(named)}{beside}"
    if unknown:
        return _unknown(unknown["value"], command, paragraphs)
    # What our own settings refuse is a sentence already.
    return re.sub(r"^Error parsing (\S*settings|Arguments): ", "", head)


def _unknown(value: str, command: str, paragraphs: list[list[str]]) -> str:
    option = "--help lists them"
    for lines in paragraphs:
        if found := re.match(r"Available subcommands: (.*)", " ".join(lines)):
            return f"the command must be one of {found[1]}, got {value!r}"
        # Options of all commands are suggested, each with the names of the commands that have it.
        for line in lines if lines[0].startswith("Perhaps you meant") else []:
            if line.startswith("--"):
                option = f"perhaps you meant {line.split()[0].rstrip(',')}"
            elif line == f"in holdfast {command} --help":
                return f"options must be known to the command, got {value}; {option}"
    return f"options must be known to the command, got {value}; --help lists them"


def _kind(paragraphs: list[list[str]]) -> str:
    """What a value has to be, from the help text of its argument."""
    lines = next((lines for lines in paragraphs if lines[0].startswith("Argument helptext")), ["", ""])
    name = next((word for short, word in _KINDS.items() if short in lines[1]), "as its help text says")
    return f"{name}, or several of them" if "..." in lines[1] else name


def _paragraphs(box: str) -> list[list[str]]:
    texts = [line.strip("│╭╮╰╯+| ") for line in box.splitlines()[1:]]
    # Where it cannot draw lines, the box is made of hyphens.
    groups = groupby(texts, lambda text: not text.strip("─-"))
    return [lines for ruled, group in groups if not ruled and (lines := [text for text in group if text])]
