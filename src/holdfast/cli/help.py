"""Help texts: those of tyro, with descriptions that keep their paragraphs and fit the terminal."""

import contextlib
import inspect
import io
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator
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


@contextlib.contextmanager
def described(text: str) -> Iterator[None]:
    """Print what is printed meanwhile with a description in the place of `MARK`, and no list of all commands in it."""
    outer, page = sys.stdout, _Page(sys.stdout)
    try:
        with contextlib.redirect_stdout(page):
            yield
    finally:
        width = min(shutil.get_terminal_size().columns, WIDEST)
        printed = page.getvalue().replace(MARK, wrapped(text, width), 1)
        outer.write(re.sub(r"\{[\w-]+(,[\w-]+){5,}\}", "COMMAND ...", printed, count=1))


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
