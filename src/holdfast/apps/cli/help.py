"""Help texts: those of tyro, with descriptions that keep their paragraphs and fit the terminal."""

import contextlib
import inspect
import io
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, TextIO

MARK = "DESCRIPTION"
"""What the parser is given in the place of a description, which it would neither wrap nor leave as it is."""
# As wide as the tables of help texts become at most.
WIDEST = 100


def first_sentence(described: Any) -> str:
    """The first paragraph of a docstring, for the list of commands.

    Example:
        >>> first_sentence(first_sentence)
        'The first paragraph of a docstring, for the list of commands.'
    """
    return " ".join((inspect.getdoc(described) or "").partition("\n\n")[0].split())


def wrapped(text: str, width: int) -> str:
    r"""A docstring in lines of a width; indented paragraphs are examples, and stay as they are.

    Example:
        >>> print(wrapped("Run it over all of\nthe points:\n\n    holdfast sweep spec.toml", width=14))
        Run it over
        all of the
        points:
        <BLANKLINE>
            holdfast sweep spec.toml
    """
    paragraphs = text.strip().split("\n\n")
    return "\n\n".join(each if each.startswith(" ") else textwrap.fill(each, width) for each in paragraphs)


def overview(introduction: str, groups: Mapping[str, Mapping[str, Any]], closing: str) -> str:
    """The help of the whole command line: every command with its first sentence, in groups.

    Args:
        introduction: what stands before the groups.
        groups: heading -> command -> what has its docstring.
        closing: what stands after them.
    """
    width = _width()
    indent = 4 + max(len(name) for commands in groups.values() for name in commands)
    sections = [wrapped(introduction, width)]
    for heading, commands in groups.items():
        rows = []
        for name, described in commands.items():
            first = f"  {name}".ljust(indent)
            rows.append(
                textwrap.fill(first_sentence(described), width, initial_indent=first, subsequent_indent=" " * indent)
            )
        sections.append("\n".join([f"{heading}:", *rows]))
    return "\n\n".join([*sections, wrapped(closing, width)])


@contextlib.contextmanager
def described(text: str) -> Iterator[None]:
    """Print what is printed meanwhile with a description in the place of `MARK`."""
    outer, page = sys.stdout, _Page(sys.stdout)
    try:
        with contextlib.redirect_stdout(page):
            yield
    finally:
        outer.write(_mended(page.getvalue()).replace(MARK, wrapped(text, _width()), 1))


def _mended(page: str) -> str:
    """A help text of tyro without a usage and lines that it could have left shorter."""
    usage, newline, rest = page.partition("\n")
    if len(usage) > _width():  # it shortens usages with many options only
        usage = re.sub(r"(\[--[^]]*\] ?)+", "[OPTIONS] ", usage).rstrip()
    # A text that fills its line is followed by the space before a default that is not there, in a line of its own.
    return usage + newline + re.sub(r"\n│ +│(?=\n(?:│ -|╰))", "", rest)


def _width() -> int:
    return min(shutil.get_terminal_size().columns, WIDEST)


class _Page(io.StringIO):
    """Text that is collected for a stream, and looks like that stream to those who choose colours and frames."""

    def __init__(self, stream: TextIO) -> None:
        io.StringIO.__init__(self)
        self._stream = stream

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._stream.encoding

    def isatty(self) -> bool:
        return self._stream.isatty()
