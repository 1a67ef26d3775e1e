"""Commands as cyclopts takes them: the fields of their data classes become options and arguments given by position.

Errors of its parser become one sentence: the argument, the value and what is allowed.
"""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from cyclopts import App, Group, Parameter, Token, convert
from cyclopts.exceptions import (
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    UnknownOptionError,
    UnusedCliTokensError,
)
from docstring_parser import parse_from_object

from holdfast import __version__
from holdfast.apps.cli.command import Command, Positional
from holdfast.core.names import Choice
from holdfast.core.validation import suggestion

STREAM = "\0-"
"""Stands for the `-` of standard input, which cyclopts takes for an option."""
_KINDS = {int: "a whole number", float: "a number", Path: "a path", str: "text"}


def command_line(
    commands: Mapping[str, Command], groups: Sequence[str], help_texts: tuple[str, str], only: str | None = None
) -> App:
    """The command line as an application of cyclopts.

    Args:
        commands: name -> the command.
        groups: their headings in the overview, in order.
        help_texts: what stands before and after the commands in the overview.
        only: the command whose options are needed, since it takes time to collect them; None: all, for completion.
    """
    introduction, closing = map(_in_paragraphs, help_texts)
    app = App(
        name="holdfast", help=introduction, help_epilogue=closing, version=f"holdfast {__version__}",
        help_format="plaintext", default_parameter=Parameter(negative=()), group_parameters=Group("Options"),
        group_commands=Group("Options", sort_key=len(groups)),
    )  # fmt: skip
    headings = {name: Group(name, sort_key=number) for number, name in enumerate(groups)}
    for number, (name, command) in enumerate(commands.items()):
        text, mark, examples = (inspect.getdoc(command.arguments) or "").partition("Examples:\n")

        def parsed() -> None:
            """Only the signature is used."""

        if only in (None, name):
            parameters = sorted(
                _parameters(command.arguments, command, completes=only is None), key=lambda each: each.kind
            )
            parsed.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        app.command(
            parsed, name=name, help=_in_paragraphs(text), help_epilogue=_in_paragraphs(mark + examples),
            group=headings.get(command.group, command.group), sort_key=number,
        )  # fmt: skip
    return app


def _in_paragraphs(text: str) -> str:
    """A text without the line breaks of the source; indented paragraphs are examples, and stay as they are."""
    paragraphs = text.strip("\n").split("\n\n")
    return "\n\n".join(each if each.startswith(" ") else " ".join(each.split()) for each in paragraphs)


def arguments_of(data_class: Any, given: Mapping[str, Any]) -> Any:
    """An object of a command's data class, and of those inside it, from what was given on the command line.

    Example:
        >>> from holdfast.sensing.settings import Settings
        >>> found = arguments_of(Settings, {"step_size": (0.1,), "bias": (0.0, 1.0)})
        >>> found.step_size, found.bias
        (0.1, (0.0, 1.0))
    """
    hints, values = get_type_hints(data_class), {}
    for field in fields(data_class):
        if is_dataclass(hints[field.name]):
            values[field.name] = arguments_of(hints[field.name], given)
        elif field.name in given:
            value = "-" if given[field.name] == STREAM else given[field.name]
            # A setting that may be one number or several is one number if one is given.
            is_one = isinstance(value, tuple) and len(value) == 1 and get_origin(hints[field.name]) is not tuple
            values[field.name] = value[0] if is_one else value
    return data_class(**values)


def _parameters(
    data_class: Any, command: Command, group: Group | None = None, *, completes: bool
) -> Iterator[inspect.Parameter]:
    """The fields of a data class, and of those inside it, as parameters of a function."""
    hints = get_type_hints(data_class, include_extras=True)
    described = (parse_from_object(each).params for each in data_class.__mro__ if is_dataclass(each))
    texts = {each.arg_name: each.description for params in described for each in params}
    for field in fields(data_class):
        annotation = hints[field.name]
        hint, *metadata = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
        if is_dataclass(hint):
            title, *rest = (inspect.getdoc(hint) or "").partition("Example")[0].strip().split("\n\n")
            yield from _parameters(
                hint, command, Group(title.rstrip("."), "\n\n".join(rest), sort_key=1), completes=completes
            )
            continue
        sequences = [each for each in (hint, *get_args(hint)) if get_origin(each) in (tuple, Sequence)]
        text = texts.get(field.name) or ""
        if choice := next((each for each in metadata if isinstance(each, Choice)), None):
            hint, text = Literal[tuple(choice.names)], choice.sentence
        options: dict[str, Any] = {
            "help": " ".join(text.split()),
            "show_default": field.default not in (None, False, ()),
        }
        if int in (hint, *get_args(hint)) or any(int in get_args(each) for each in sequences):
            options["converter"] = _whole
        default = inspect.Parameter.empty if field.default is MISSING else field.default
        if place := next((each for each in metadata if isinstance(each, Positional)), None):
            kind: Any = inspect.Parameter.VAR_POSITIONAL if sequences else inspect.Parameter.POSITIONAL_ONLY
            hint, default = (get_args(hint)[0], inspect.Parameter.empty) if sequences else (hint, default)
            options |= {"name": place.name, "choices": (completes and command.choices) or None, "show_choices": False}
        else:
            kind = inspect.Parameter.KEYWORD_ONLY
            hint = tuple[(get_args(sequences[0])[0], ...)] if sequences else hint  # type: ignore[misc]
            options |= {
                "consume_multiple": bool(sequences),
                "allow_repeating": True,
                **({"group": group} if group else {}),
            }
        if completes and hint in (str, str | None) and not options.get("choices"):
            hint = Path  # shells complete files
        yield inspect.Parameter(field.name, kind, default=default, annotation=Annotated[hint, Parameter(**options)])


def _whole(hint: Any, tokens: Sequence[Token]) -> Any:
    """Whole numbers as Python reads them: cyclopts rounds others."""
    for token in tokens:
        int(token.value)
    return convert(hint, tokens)


def sentence(error: CycloptsError, words: Sequence[str], app: App) -> str:
    """One sentence on what is wrong with the words of the command line."""
    command, arguments = f"holdfast {words[0]}", app[words[0]].assemble_argument_collection()
    flags = [flag for argument in arguments for flag in argument.names if flag.startswith("--")]
    name = error.argument.name if error.argument else ""
    match error:
        case CoercionError(token=token, argument=argument) if token and argument:
            return f"{name} must be {_allowed(argument.hint, argument.parameter.choices or ())}, got {token.value!r}"
        case MissingArgumentError(keyword=str()):
            return f"{name} must be given a value"
        case MissingArgumentError():
            missing = [
                each.name for each in arguments if each.required and each.name in flags and each.name not in words
            ]
            return f"{command} must be given {' and '.join(dict.fromkeys([name, *missing]))}"
        case UnknownOptionError(token=token):
            word = token.keyword or token.value
            hint = suggestion(word, flags) or "; --help lists them"
            return f"options must be known to the command, got {word}{hint}"
        case UnusedCliTokensError(unused_tokens=[word, *_]):
            before = [each for each in words[: words.index(word)] if each in flags]
            return (
                f"{before[-1]} must be given one value, got {word!r} as well"
                if before
                else f"{command} takes no {word!r}"
            )
    return str(error)


def _allowed(hint: Any, choices: Any) -> str:
    """What a type allows, in words."""
    inner = [hint, *get_args(hint)]
    texts = [text for each in inner if get_origin(each) is Literal for text in get_args(each)] or list(choices)
    listed = ", ".join(text if text[:1].isalpha() else repr(text) for text in texts)
    kind = next((words for kind, words in _KINDS.items() if kind in inner), "")
    if listed:
        return f"{listed} or {kind}" if kind and not choices else f"one of {listed}"
    return f"{kind}, or several of them" if get_origin(hint) is tuple else kind
