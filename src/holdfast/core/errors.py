"""Errors in one line, with the place in the user's code that raised them."""

import os
import sysconfig
import traceback
from functools import cache
from pathlib import Path

import holdfast

# Folders of installed packages, wherever they are.
PACKAGES = {"site-packages", "dist-packages"}
# The most characters of a message of a server or of another package that are repeated.
MOST_REPEATED = 300


def one_line(error: BaseException) -> str:
    r"""The message of an error in one line of bounded length; the name of its type where it has none.

    Example:
        >>> one_line(ValueError("no\n  way")), one_line(KeyError())
        ('no way', 'KeyError')
    """
    return " ".join(str(error).split())[:MOST_REPEATED] or type(error).__name__


def describe(error: BaseException) -> str:
    """An error in one line.

    Example:
        >>> describe(ValueError("no"))
        'ValueError: no'
    """
    message = " ".join(str(error).split())
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def describe_place(error: BaseException) -> str:
    """As `describe`, after the file and line of the user's code that raised it: "estimates.py:7: ValueError: no".

    That is the innermost frame outside of this package and of those that are installed; there may be none.

    Example:
        >>> describe_place(ValueError("no"))  # nothing raised it
        'ValueError: no'
    """
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not _is_installed(frame.filename)]
    place = f"{os.path.basename(own[-1].filename)}:{own[-1].lineno}: " if own else ""
    return f"{place}{describe(error)}"


def _is_installed(path: str) -> bool:
    return path.startswith(("<", *_installed())) or not PACKAGES.isdisjoint(Path(path).parts)


@cache
def _installed() -> tuple[str, ...]:
    """Folders of code that is not the user's."""
    installed = (sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    return tuple(f"{folder}{os.sep}" for folder in {os.path.dirname(holdfast.__file__), *installed})
