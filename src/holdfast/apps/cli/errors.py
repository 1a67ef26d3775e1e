"""Errors of the command line's parser as one sentence: the argument, the value and what is allowed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from cyclopts import App
from cyclopts.exceptions import (
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    UnknownOptionError,
    UnusedCliTokensError,
)

from holdfast.core.validation import suggestion

_KINDS = {int: "a whole number", float: "a number", Path: "a path", str: "text"}


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
