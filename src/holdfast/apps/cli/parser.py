"""From words to arguments: tyro's parsers of the data classes, with placeholders and defaults that people can read."""

import dataclasses
import functools
import re
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import tyro
from typing_extensions import Doc
from tyro.constructors import ConstructorRegistry, StructConstructorSpec, StructFieldSpec, StructTypeInfo
from tyro.constructors._struct_spec_dataclass import dataclass_rule

from holdfast.apps.cli.help import MARK

REGISTRY = ConstructorRegistry()
"""How tyro turns our data classes into options."""
# A switch is off unless it is given: nobody needs --no-quick.
MARKERS = (tyro.conf.FlagCreatePairsOff,)
# How tyro marks positional arguments.
_POSITIONAL = get_args(tyro.conf.Positional[int])[1]
_PLACEHOLDERS = {int: "INT", float: "FLOAT", str: "STR", Path: "PATH"}


def parse_command(name: str, data_class: Any, words: Sequence[str]) -> Any:
    """The arguments of one command; prints its help, with `MARK` for the description, if that is asked for."""
    prog = f"holdfast {name}"
    return tyro.cli(data_class, prog=prog, description=MARK, args=words, config=MARKERS, registry=REGISTRY)


class Option(NamedTuple):
    """An option of a command; one without a flag is given by its position."""

    flag: str | None
    choices: tuple[str, ...]
    kind: Literal["switch", "number", "text"]
    text: str


def options_of(data_class: Any) -> list[Option]:
    """The options of a command, with those of the settings inside its data class.

    Example:
        >>> @dataclasses.dataclass
        ... class Arguments:
        ...     step_size: float = 0.1
        ...     order: Literal["cyclic", "reshuffled"] = "cyclic"
        >>> [(option.flag, option.choices) for option in options_of(Arguments)]
        [('--step-size', ()), ('--order', ('cyclic', 'reshuffled'))]
    """
    spec = _readable(StructTypeInfo.make(data_class, tyro.MISSING_NONPROP, in_union_context=False))
    options: list[Option] = []
    for field in () if spec is None else spec.fields:
        base, *metadata = get_args(field.type)
        if dataclasses.is_dataclass(base):
            options += options_of(base)
            continue
        flag = None if _POSITIONAL in metadata else f"--{field.name.replace('_', '-')}"
        literals = [each for each in (base, *get_args(base)) if get_origin(each) is Literal]
        choices = tuple(choice for each in literals for choice in get_args(each))
        texts = [each.documentation for each in metadata if isinstance(each, Doc)]
        text = texts[-1] if texts else _paragraph(field.helptext) or ""
        options.append(Option(flag, choices, _kind(base), text))
    return options


@REGISTRY.struct_rule
def _readable(info: StructTypeInfo) -> StructConstructorSpec | None:
    """The fields of a data class as tyro finds them, made readable."""
    spec = dataclass_rule(info)
    if spec is None:
        return None
    return dataclasses.replace(spec, fields=tuple(map(_readable_field, spec.fields)))


def _readable_field(field: StructFieldSpec) -> StructFieldSpec:
    """A field with its text in one paragraph, a placeholder without `None`, and a default only if it says something."""
    base, *metadata = get_args(field.type) if get_origin(field.type) is Annotated else (field.type,)
    hint = "" if field.default is None or field.default is False or field.default == () else None
    options = tyro.conf.arg(metavar=placeholder(base), help_behavior_hint=hint)
    # What the field says about itself comes last, and wins.
    annotated: Any = Annotated[(base, options, *metadata)]
    return dataclasses.replace(field, type=annotated, helptext=functools.partial(_paragraph, field.helptext))


def _kind(hint: Any) -> Literal["switch", "number", "text"]:
    if hint is bool:
        return "switch"
    found = placeholder(hint) or ""
    return "number" if "INT" in found or "FLOAT" in found else "text"


def _paragraph(text: Any) -> str | None:
    """A text without the line breaks of the source."""
    found = text() if callable(text) else text
    return None if found is None else re.sub(r"\s*\n\s*", " ", found)


def placeholder(hint: Any) -> str | None:
    """What stands for a value in a help text; None for a type that is left to tyro.

    Example:
        >>> placeholder(int | None), placeholder(float | tuple[float, ...]), placeholder(Literal[".", ","] | None)
        ('INT', 'FLOAT ...', "{'.',','}")
    """
    if hint in _PLACEHOLDERS:
        return _PLACEHOLDERS[hint]
    origin, inner = get_origin(hint), [each for each in get_args(hint) if each not in (type(None), ...)]
    if origin is Literal:
        return "{" + ",".join(each if each[:1].isalnum() else repr(each) for each in inner) + "}"
    if origin in (Union, types.UnionType):
        parts = [placeholder(each) for each in inner]
        several = {each.removesuffix(" ...") for each in parts if each and each.endswith(" ...")}
        return None if None in parts else "|".join(each for each in parts if each and each not in several)
    if isinstance(origin, type) and issubclass(origin, Sequence) and len(inner) == 1:
        each = placeholder(inner[0])
        return None if each is None else f"{each} ..."
    return None
