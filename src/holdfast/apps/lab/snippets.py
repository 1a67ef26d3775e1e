"""Settings as Python and as words of a command: only what differs from the defaults."""

import shlex
from dataclasses import MISSING, fields
from typing import Any


def different(settings: Any) -> dict[str, Any]:
    """The fields of a dataclass that do not have their default values."""
    return {
        field.name: value
        for field in fields(settings)
        if (value := getattr(settings, field.name)) != field.default or field.default is MISSING
    }


def as_call(name: str, settings: Any) -> str:
    """A dataclass as the Python call that makes it, one argument in each line.

    Example:
        >>> from holdfast.sensing.settings import Settings
        >>> print(as_call("hf.Settings", Settings(dimension=20, order="cyclic")))
        hf.Settings(
            dimension=20,
            order="cyclic",
        )
    """
    lines = [f"    {field}={literal(value)},\n" for field, value in different(settings).items()]
    return f"{name}(\n{''.join(lines)})" if lines else f"{name}()"


def as_command(name: str, settings: Any) -> str:
    """A dataclass as options of a command.

    Example:
        >>> from holdfast.sensing.settings import Settings
        >>> as_command("simulate", Settings(dimension=20, init_scale=1e-05))
        'holdfast simulate --dimension 20 --init-scale 1e-05'
    """
    words = ["holdfast", *name.split()]
    for field, value in different(settings).items():
        words += [f"--{field.replace('_', '-')}", str(value)]
    return shlex.join(words)


def literal(value: Any) -> str:
    """As Python writes it, with the double quotes of the house."""
    if not isinstance(value, str):
        return repr(value)
    plain = value.isprintable() and not {'"', "\\"} & set(value)
    return f'"{value}"' if plain else repr(value)
