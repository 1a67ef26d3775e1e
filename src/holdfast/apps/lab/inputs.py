"""Inputs of a view: the fields of a dataclass, each with a label and the values it may take.

The page builds its form from them, and the server checks with them what the page sends.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, Protocol

from holdfast.apps.lab.uploads import ENDINGS, LARGEST_FILE

# Columns of a table, and characters of the name of one.
MOST_COLUMNS, LONGEST_NAME = 200, 200


class Input(Protocol):
    """What a field of a view's settings may hold, and how the page asks for it."""

    label: str

    def checked(self, name: str, value: Any) -> Any:
        """The value, as the settings hold it; a ValueError that names the field if it is not allowed."""


@dataclass(frozen=True)
class NumberInput:
    """A number between two bounds; the page shows a slider.

    Attributes:
        label: next to the slider, with the symbol of the theory.
        low: least value.
        high: largest value.
        step: of the slider; of a logarithmic one in decades.
        whole: only whole numbers.
        logarithmic: the slider moves by factors.
        unit: after the number.
        group: heading above it.
        only_for: another field, and its values for which the number means something; the page hides it for others.
    """

    label: str
    low: float
    high: float
    step: float
    whole: bool
    logarithmic: bool
    unit: str
    group: str
    only_for: tuple[str, tuple[Any, ...]] | None = None
    kind: Literal["number"] = "number"

    def checked(self, name: str, value: Any) -> float:
        """A number within the bounds."""
        kind = "a whole number" if self.whole else "a number"
        fits = isinstance(value, int | float) and not isinstance(value, bool) and self.low <= value <= self.high
        if not fits or (self.whole and value != int(value)):
            raise ValueError(f"{name} must be {kind} from {self.low:g} to {self.high:g}, got {_short(value)}")
        return int(value) if self.whole else float(value)


@dataclass(frozen=True)
class ChoiceInput:
    """One of several values, each with words that say what it means.

    Attributes:
        label: next to the menu.
        options: value -> words.
        group: heading above it.
        display: only changes how results are drawn, so nothing is computed again.
    """

    label: str
    options: Mapping[Any, str]
    group: str
    display: bool
    kind: Literal["choice"] = "choice"

    def checked(self, name: str, value: Any) -> Any:
        """One of the options."""
        found = [option for option in self.options if type(option) is type(value) and option == value]
        if not found:
            raise ValueError(f"{name} must be one of {', '.join(map(str, self.options))}, got {_short(value)}")
        return found[0]


@dataclass(frozen=True)
class TextInput:
    """A short text: typed, or one of those that the view offers once it knows its table, such as names of columns.

    Attributes:
        label: next to the field or menu.
        longest: number of characters.
        group: heading above it.
        display: only changes how results are drawn, so nothing is computed again.
        empty: words of the menu for no choice.
        kind: a field to type in, or a menu of columns.
    """

    label: str
    longest: int
    group: str
    display: bool
    empty: str = ""
    kind: Literal["text", "column"] = "text"

    def checked(self, name: str, value: Any) -> str:
        """A text that can be written; the view knows whether its table has it."""
        if not _is_text(value, self.longest):
            raise ValueError(f"{name} must be a text of at most {self.longest} characters, got {_short(value)}")
        return value


@dataclass(frozen=True)
class ColumnsInput:
    """Some of the columns of a table; the page shows boxes to check.

    Attributes:
        label: above the boxes.
        group: heading above it.
    """

    label: str
    group: str
    kind: Literal["columns"] = "columns"

    def checked(self, name: str, value: Any) -> tuple[str, ...]:
        """Different names."""
        fits = isinstance(value, list | tuple) and len(value) <= MOST_COLUMNS
        fits = fits and all(_is_text(each, LONGEST_NAME) for each in value)
        if not fits or len(set(value)) < len(value):
            raise ValueError(f"{name} must be at most {MOST_COLUMNS} different names of columns, got {_short(value)}")
        return tuple(value)


@dataclass(frozen=True)
class UploadInput:
    """A file of the person; the settings hold the number that the server has given it, or nothing yet.

    Attributes:
        label: next to the button.
        endings: of the files that the button offers.
        largest: bytes of a file, so that the page need not send a larger one to hear that.
        group: heading above it.
    """

    label: str
    endings: tuple[str, ...]
    largest: int
    group: str
    kind: Literal["upload"] = "upload"

    def checked(self, name: str, value: Any) -> str:
        """The number of an upload, or an empty text."""
        if not isinstance(value, str) or not re.fullmatch(r"([0-9a-f]{32})?", value):
            raise ValueError(f"{name} must be the number of an upload, got {_short(value)}")
        return value


def number(
    default: float,
    label: str,
    low: float,
    high: float,
    *,
    step: float,
    whole: bool = False,
    logarithmic: bool = False,
    unit: str = "",
    group: str = "",
    only_for: tuple[str, tuple[Any, ...]] | None = None,
) -> Any:
    """A field of settings that holds a number; see `NumberInput`.

    Example:
        >>> @dataclass(frozen=True)
        ... class Example:
        ...     step_size: float = number(0.05, "Step size η", 0.001, 1.0, step=0.05, logarithmic=True)
        >>> read(Example, {"step_size": 2})
        Traceback (most recent call last):
        ValueError: step_size must be a number from 0.001 to 1, got 2
    """
    made = NumberInput(label, low, high, step, whole, logarithmic, unit, group, only_for)
    return field(default=default, metadata={"input": made})


def choice(default: Any, label: str, options: Mapping[Any, str], *, group: str = "", display: bool = False) -> Any:
    """A field of settings that holds one of several values; see `ChoiceInput`."""
    return field(default=default, metadata={"input": ChoiceInput(label, dict(options), group, display)})


def text(default: str, label: str, *, longest: int = 200, group: str = "", display: bool = False) -> Any:
    """A field of settings that holds a text; see `TextInput`."""
    return field(default=default, metadata={"input": TextInput(label, longest, group, display)})


def column(label: str, *, group: str = "", empty: str = "guess", display: bool = False) -> Any:
    """A field of settings that holds the name of a column; see `TextInput`."""
    return field(default="", metadata={"input": TextInput(label, LONGEST_NAME, group, display, empty, "column")})


def columns(label: str, *, group: str = "") -> Any:
    """A field of settings that holds names of columns; see `ColumnsInput`."""
    return field(default=(), metadata={"input": ColumnsInput(label, group)})


def upload(label: str, *, endings: tuple[str, ...] = ENDINGS, group: str = "") -> Any:
    """A field of settings that holds an uploaded file; see `UploadInput`. It is never part of a permalink."""
    return field(default="", metadata={"input": UploadInput(label, endings, LARGEST_FILE, group)})


def read(settings: type, given: Any) -> Any:
    """The settings that a browser has sent; fields that it left out have their defaults.

    Args:
        settings: a dataclass whose fields are made by the functions of this module.
        given: what was sent, of whatever kind.
    """
    if not isinstance(given, dict):
        raise ValueError(f"settings must be an object with a value for each field, got {_short(given)}")
    known = inputs(settings)
    for name in given:
        if name not in known:
            raise ValueError(f"settings must be fields of this view ({', '.join(known)}), got {_short(name)}")
    return settings(**{name: known[name].checked(name, value) for name, value in given.items()})


def inputs(settings: type) -> dict[str, Input]:
    """The inputs of a dataclass of settings, by field."""
    return {each.name: each.metadata["input"] for each in fields(settings)}


def meaningful(settings: Any) -> dict[str, Any]:
    """The values of all fields that mean something for these settings: those that the page shows."""
    values = {name: getattr(settings, name) for name in inputs(settings)}
    for name, each in inputs(settings).items():
        if isinstance(each, NumberInput) and each.only_for is not None:
            other, wanted = each.only_for
            if getattr(settings, other) not in wanted:
                del values[name]
    return values


def schema(settings: type) -> list[dict[str, Any]]:
    """What the page needs in order to build a form."""
    described = []
    for each in fields(settings):
        made = asdict(each.metadata["input"])
        if "options" in made:
            made["options"] = [{"value": value, "words": words} for value, words in made["options"].items()]
        described.append({"name": each.name, "default": each.default, **made})
    return described


def _is_text(value: Any, longest: int) -> bool:
    """Whether it is short, without control characters."""
    return isinstance(value, str) and len(value) <= longest and value.isprintable()


def _short(value: Any) -> str:
    """A value in an error message: what a stranger has sent may be long."""
    words = repr(value)
    return words if len(words) <= 60 else f"{words[:57]}..."
