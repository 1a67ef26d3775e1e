"""Checks of settings, and errors in words: the argument, the value and what is allowed. Imports nothing heavy."""

import difflib
import os
import sysconfig
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from functools import cache
from numbers import Integral, Real
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin

from holdfast.core.names import Choice

# Folders of installed packages, wherever they are.
PACKAGES = {"site-packages", "dist-packages"}
# The most characters of a message of a server or of another package that are repeated.
MOST_REPEATED = 300
# Numbers beyond this cannot mean anything in settings, and their squares would overflow in float32.
LARGEST = 1e12


class Rule(NamedTuple):
    """A condition on a number.

    Attributes:
        allowed: in words.
        holds: number -> whether it is allowed.
        whole: whether it has to be a whole number.
    """

    allowed: str
    holds: Callable[[Any], bool]
    whole: bool = False

    def check(self, name: str, value: Any) -> None:
        """Raise a ValueError unless the rule holds for the argument of this name.

        Example:
            >>> COUNT.check("seeds", 0)
            Traceback (most recent call last):
            ValueError: seeds must be a whole number of at least 1, got 0
        """
        number = isinstance(value, Integral if self.whole else Real) and not isinstance(value, bool)
        bound = f" and below {LARGEST:,.0f}" if number and self.whole and value >= LARGEST else ""
        fits = number and abs(value) < LARGEST and self.holds(value)
        require(fits, f"{name} must be {self.allowed}{bound}", repr(value))


def require(holds: bool, contract: str, found: Any) -> None:
    """Raise a ValueError that says what was expected and what was found instead, unless it holds.

    Example:
        >>> require(False, "algorithm must make an Algorithm", None)
        Traceback (most recent call last):
        ValueError: algorithm must make an Algorithm, got None
    """
    if not holds:
        raise ValueError(f"{contract}, got {found}")


def suggestion(word: str, known: Iterable[str], most: int = 1) -> str:
    """The nearest of the known words in brackets, otherwise those that start with it, for the end of an error.

    Dashes in front do not count: all options of a command have them.

    Example:
        >>> suggestion("step_sise", ["step_size", "steps"])
        ' (perhaps step_size)'
        >>> suggestion("example1", ["Example1", "Example1s", "Plants"], most=3)
        ' (perhaps Example1 or Example1s)'
        >>> suggestion("--env", ["--level", "--environment"])
        ' (perhaps --environment)'
    """
    folded, wanted = {each.lstrip("-").casefold(): each for each in known}, word.lstrip("-").casefold()
    close = difflib.get_close_matches(wanted, list(folded), n=most)
    close = close or [each for each in folded if wanted and each.startswith(wanted)][:most]
    return f" (perhaps {' or '.join(folded[each] for each in close)})" if close else ""


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
    return tuple(f"{folder}{os.sep}" for folder in {str(Path(__file__).parents[1]), *installed})


NUMBER = Rule("a number between -1e12 and 1e12", lambda value: True)
POSITIVE = Rule("a positive number", lambda value: value > 0)
NOT_NEGATIVE = Rule("a number of at least 0", lambda value: value >= 0)
SHARE = Rule("a number from 0 to 1", lambda value: 0 <= value <= 1)
COUNT = Rule("a whole number of at least 1", lambda value: value >= 1, whole=True)
COUNT_OR_ZERO = Rule("a whole number of at least 0", lambda value: value >= 0, whole=True)
SEED = Rule("a whole number from 0 to 2^32 - 1", lambda value: 0 <= value < 2**32, whole=True)

# Types of settings.
Count = Annotated[int, COUNT]
CountOrZero = Annotated[int, COUNT_OR_ZERO]
Seed = Annotated[int, SEED]


class SettingType(NamedTuple):
    """What the type of a field of settings says about its values.

    Attributes:
        rule: for numbers; None: it holds none.
        several: whether it may hold a tuple of numbers instead of one.
        optional: whether it may be None.
        choices: the names that it may hold; none: it holds no name.
        boolean: whether it holds a truth value.
    """

    rule: Rule | None
    several: bool
    optional: bool
    choices: tuple[str, ...]
    boolean: bool


@cache
def setting_types(settings: Any) -> dict[str, SettingType]:
    """What the types of the fields of a dataclass say: of int, or of Annotated[float | Sequence[float], POSITIVE].

    Example:
        >>> from holdfast.sensing.settings import Settings
        >>> found = setting_types(Settings)
        >>> found["step_size"].several, found["panel"].optional, found["dtype"].choices
        (True, True, ('float32', 'float64'))
    """
    found = {}
    for field in fields(settings):
        kind, *metadata = get_args(field.type) if get_origin(field.type) is Annotated else [field.type]
        inner = get_args(kind)
        names = next((tuple(each.names) for each in metadata if isinstance(each, Choice)), ())
        found[field.name] = SettingType(
            next((each for each in metadata if isinstance(each, Rule)), None),
            any(get_origin(each) is Sequence for each in inner),
            NoneType in inner,
            names or (inner if get_origin(kind) is Literal else ()),
            kind is bool,
        )
    return found


def check_fields(settings: Any) -> None:
    """Check the fields of a dataclass by what their types say about numbers, names and truth values.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass
        ... class Folds:
        ...     count: Count
        >>> check_fields(Folds(0))
        Traceback (most recent call last):
        ValueError: count must be a whole number of at least 1, got 0
    """
    for name, kind in setting_types(settings.__class__).items():
        value = getattr(settings, name)
        known = not kind.choices or value in kind.choices
        require(known, f"{name} must be one of {', '.join(kind.choices)}", repr(value))
        require(not kind.boolean or isinstance(value, bool), f"{name} must be True or False", repr(value))
        if kind.rule is None or (kind.optional and value is None):
            continue
        require(kind.several or not isinstance(value, Sequence), f"{name} must be one number", repr(value))
        require(value != (), f"{name} must hold at least one value", "an empty sequence")
        values = value if isinstance(value, tuple) else (value,)
        for number in values:
            kind.rule.check(name, number)
        require(len(set(values)) == len(values), f"{name} must hold each value once", repr(value))


def check_settings(settings: Any) -> None:
    """Check the settings of runs with consecutive seeds."""
    check_fields(settings)
    last = settings.seed + settings.seeds
    require(last <= 2**32, "seed + seeds must be at most 2^32", f"{settings.seed} + {settings.seeds}")
