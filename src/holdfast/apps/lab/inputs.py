"""Inputs of a view: the fields of a dataclass, each with a label and the values it may take.

The page builds its form from them, and the server checks with them what the page sends.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

from holdfast.apps.lab.uploads import ENDINGS, LARGEST_FILE, LONGEST_NUMBER
from holdfast.core.names import Named
from holdfast.core.validation import require

# Columns of a table, and characters of the name of one.
MOST_COLUMNS, LONGEST_NAME = 200, 200


@dataclass(frozen=True)
class Input:
    """What a field of a view's settings may hold, and how the page asks for it.

    Attributes:
        form: what the page needs: the kind of control, its label, the heading (`group`) above it, and what only this
            kind has. A field with `display` only changes how results are drawn, so nothing is computed again.
            `only_for` is another field with its values for which this one means something; the page hides it for
            others.
        contract: the allowed values, in words.
        fits: whether a value is allowed.
        convert: an allowed value -> the value that the settings hold.
    """

    form: Mapping[str, Any]
    contract: str
    fits: Callable[[Any], bool]
    convert: Callable[[Any], Any]

    def checked(self, name: str, value: Any) -> Any:
        """The value as the settings hold it; a ValueError that names the field if it is not allowed."""
        require(self.fits(value), f"{name} must be {self.contract}", _short(value))
        return self.convert(value)


def number(
    default: float, label: str, low: float, high: float, *, step: float, logarithmic: bool = False, **form: Any
) -> Any:
    """A field of settings that holds a number between two bounds; the page shows a slider.

    Args:
        default: of the field; a whole number allows only whole numbers.
        label: next to the slider, with the symbol of the theory.
        low: least value.
        high: largest value.
        step: of the slider; of a logarithmic one in decades.
        logarithmic: the slider moves by factors.
        form: `group` and `only_for`, as in `Input`.

    Example:
        >>> @dataclass(frozen=True)
        ... class Example:
        ...     step_size: float = number(0.05, "Step size η", 0.001, 1.0, step=0.05, logarithmic=True)
        >>> read(Example, {"step_size": 2})
        Traceback (most recent call last):
        ValueError: step_size must be a number from 0.001 to 1, got 2
    """
    whole = isinstance(default, int)

    def fits(value: Any) -> bool:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and low <= value <= high and not (whole and value != int(value))

    contract = f"{'a whole number' if whole else 'a number'} from {low:g} to {high:g}"
    form |= {"low": low, "high": high, "step": step, "whole": whole, "logarithmic": logarithmic}
    return _field(default, "number", label, contract, fits, int if whole else float, form)


def choice(default: Any, label: str, options: Mapping[Any, str] | Mapping[str, Named], **form: Any) -> Any:
    """A field of settings that holds one of several values, each with words that say what it means."""
    words = {value: each.words if isinstance(each, Named) else each for value, each in options.items()}
    known = {(type(value), value) for value in options}

    def fits(value: Any) -> bool:
        return isinstance(value, str | int) and (type(value), value) in known

    form["options"] = [{"value": value, "words": each} for value, each in words.items()]
    return _field(default, "choice", label, f"one of {', '.join(map(str, options))}", fits, lambda value: value, form)


def text(default: str, label: str, *, longest: int = 200, kind: str = "text", **form: Any) -> Any:
    """A field of settings that holds a short text."""
    contract = f"a text of at most {longest} characters"
    return _field(default, kind, label, contract, partial(_is_text, longest=longest), str, form | {"longest": longest})


def column(label: str, *, empty: str = "guess", **form: Any) -> Any:
    """A field of settings that holds the name of a column, or another word that the view offers.

    Args:
        label: next to the menu.
        empty: words of the menu for no choice, which is an empty text.
        form: `group` and `display`, as in `Input`.
    """
    return text("", label, longest=LONGEST_NAME, kind="column", empty=empty, **form)


def columns(label: str, **form: Any) -> Any:
    """A field of settings that holds names of columns; the page shows boxes to check."""

    def fits(value: Any) -> bool:
        if not isinstance(value, list | tuple) or len(value) > MOST_COLUMNS:
            return False
        return all(_is_text(each, LONGEST_NAME) for each in value) and len(set(value)) == len(value)

    return _field((), "columns", label, f"at most {MOST_COLUMNS} different names of columns", fits, tuple, form)


def upload(label: str, **form: Any) -> Any:
    """A field of settings that holds the number of an uploaded file, or nothing yet. No permalink has it."""
    # The page need not send a file that is too large.
    return text("", label, longest=LONGEST_NUMBER, kind="upload", endings=ENDINGS, largest=LARGEST_FILE, **form)


def _field(
    default: Any, kind: str, label: str, contract: str, fits: Callable[[Any], bool], convert: Any, form: dict[str, Any]
) -> Any:
    described = {"kind": kind, "label": label, "group": "", "display": False, "only_for": None} | form
    return field(default=default, metadata={"input": Input(described, contract, fits, convert)})


def read(settings: type, given: Any) -> Any:
    """The settings that a browser has sent; fields that it left out have their defaults.

    Args:
        settings: a dataclass whose fields are made by the functions of this module.
        given: what was sent, of any type.
    """
    require(isinstance(given, dict), "settings must be an object with a value for each field", _short(given))
    known = inputs(settings)
    for name in given:
        require(name in known, f"settings must be fields of this view ({', '.join(known)})", _short(name))
    return settings(**{name: known[name].checked(name, value) for name, value in given.items()})


def inputs(settings: type) -> dict[str, Input]:
    """The inputs of a dataclass of settings, by field."""
    return {each.name: each.metadata["input"] for each in fields(settings)}


def meaningful(settings: Any) -> dict[str, Any]:
    """The values of all fields that mean something for these settings: those that the page shows."""
    conditions = {name: each.form["only_for"] for name, each in inputs(type(settings)).items()}
    return {
        name: getattr(settings, name)
        for name, only_for in conditions.items()
        if only_for is None or getattr(settings, only_for[0]) in only_for[1]
    }


def schema(settings: type) -> list[dict[str, Any]]:
    """What the page needs to build a form."""
    return [{"name": each.name, "default": each.default, **each.metadata["input"].form} for each in fields(settings)]


def _is_text(value: Any, longest: int) -> bool:
    """Whether it is short, without control characters."""
    return isinstance(value, str) and len(value) <= longest and value.isprintable()


def _short(value: Any) -> str:
    """A value in an error message, cut: anything may have been sent."""
    words = repr(value)
    return words if len(words) <= 60 else f"{words[:57]}..."
