"""Checks of settings: an error names the argument, the value and what is allowed. Imports nothing heavy."""

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from functools import cache
from numbers import Integral, Real
from types import NoneType
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin

from holdfast.core.names import Choice

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
        if not number or not abs(value) < LARGEST or not self.holds(value):
            bound = f" and below {LARGEST:,.0f}" if number and self.whole and value >= LARGEST else ""
            raise ValueError(f"{name} must be {self.allowed}{bound}, got {value!r}")


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
        if kind.choices and value not in kind.choices:
            raise ValueError(f"{name} must be one of {', '.join(kind.choices)}, got {value!r}")
        if kind.boolean and not isinstance(value, bool):
            raise ValueError(f"{name} must be True or False, got {value!r}")
        if kind.rule is None or (kind.optional and value is None):
            continue
        if isinstance(value, Sequence) and not kind.several:
            raise ValueError(f"{name} must be one number, got {value!r}")
        if value == ():
            raise ValueError(f"{name} must hold at least one value, got an empty sequence")
        for number in value if isinstance(value, tuple) else (value,):
            kind.rule.check(name, number)
        if isinstance(value, tuple) and len(set(value)) < len(value):
            raise ValueError(f"{name} must hold each value once, got {value!r}")


def check_settings(settings: Any) -> None:
    """Check the settings of runs with consecutive seeds."""
    check_fields(settings)
    if settings.seed + settings.seeds > 2**32:
        raise ValueError(f"seed + seeds must be at most 2^32, got {settings.seed} + {settings.seeds}")
