"""Errors of the command line's parser as one sentence: the argument, the value and what is allowed."""

import re
from itertools import groupby

# Parts of the parser's names for kinds of values, and what they are called here.
_KINDS = {"INT": "a whole number", "FLOAT": "a number", "PATH": "a path", "STR": "a text"}
_PARSING = re.compile(r"Error parsing (?P<name>--\S+): .*?\[?(?P<value>'[^']*'(?:, '[^']*')*)\]?\.?$")
_CHOICE = re.compile(
    r"invalid choice (?P<value>'.*') for argument '(?P<name>.*)'\. Expected one of \((?P<known>.*)\)\.$"
)
_UNKNOWN = re.compile(r"Unrecognized options:\s*(?P<value>[^\s,]+)")


def sentence(box: str) -> str:
    """What is wrong, from the box that tyro draws around an error."""
    paragraphs = _paragraphs(box)
    if not paragraphs:
        return "the command line cannot be understood; `holdfast --help` lists the commands"
    head = " ".join(paragraphs[0]).partition(" Got errors:")[0]
    unknown = next((found for lines in paragraphs if (found := _UNKNOWN.match(" ".join(lines)))), None)
    if found := _PARSING.match(head):
        return f"{found['name']} must be {_kind(paragraphs)}, got {found['value']}"
    if found := _CHOICE.match(head):
        return f"{found['name']} must be one of {found['known'].replace(chr(39), '')}, got {found['value']}"
    if found := re.match(r"Expected one of \{(.*)\}\.", head):
        return f"the command must be one of {found[1]}, got none"
    if found := re.match(r"Missing from (holdfast \w+): (.*)", head):
        named = re.findall(r"(?:^|\) )(--[\w-]+|[A-Z]+)\b", found[2])
        beside = f"; {unknown['value']} is no option of it" if unknown else ""
        return f"{found[1]} must be given {' and '.join(named)}{beside}"
    if unknown:
        return _unknown(unknown["value"], paragraphs)
    return re.sub(r"^Error parsing \S+: ", "", head)


def _unknown(value: str, paragraphs: list[list[str]]) -> str:
    for lines in paragraphs:
        if found := re.match(r"Available subcommands: (.*)", " ".join(lines)):
            return f"the command must be one of {found[1]}, got {value!r}"
        if found := re.match(r"Perhaps you meant: (--[\w-]+)", " ".join(lines)):
            return f"options must be known to the command, got {value}; perhaps you meant {found[1]}"
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
