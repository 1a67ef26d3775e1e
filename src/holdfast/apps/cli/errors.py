"""Errors of the command line's parser as one sentence: the argument, the value and what is allowed."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tyro import _errors as events

from holdfast.apps.cli.parser import options_of
from holdfast.core.validation import suggestion

# Parts of the parser's names for kinds of values, and what they are called here.
_KINDS = {"INT": "a whole number", "FLOAT": "a number", "PATH": "a path", "STR": "text"}


def sentence(event: events.ParseErrorEvent, arguments: Sequence[str], commands: Mapping[str, Any]) -> str | None:
    """One sentence on what is wrong with the arguments, or None for an event that only the parser can explain.

    Args:
        event: what the parser reports.
        arguments: the words of the command line.
        commands: command -> the data class of its arguments.
    """
    match event:
        case events.InvalidChoice():
            allowed = [choice if choice[:1].isalpha() else repr(choice) for choice in event.choices if choice != "None"]
            return f"{_name(event.argument)} must be one of {', '.join(allowed)}, got {event.value!r}"
        case events.BadValue(reason="too_few_values"):
            return f"{_name(event.argument)} must be given a value"
        case events.InstantiationFailure(argument=None):
            return event.message  # the settings check themselves and say what is wrong
        case events.InstantiationFailure():
            values = ", ".join(map(repr, _values(event.argument, arguments)))
            return f"{_name(event.argument)} must be {_kind(event.argument)}, got {values}"
        case events.MissingArgs():
            needed = " and ".join(_name(missing.arg) for missing in event.missing_arguments)
            words = [word for word in event.unrecognized_tokens if word.startswith("-")]
            unknown = (f"; it has no option {word}{_perhaps(word, commands[arguments[0]])}" for word in words)
            return f"holdfast {arguments[0]} must be given {needed}{''.join(unknown)}"
        case events.UnrecognizedArgs():
            option = _option_before(event.tokens[0], arguments)
            if option is not None:
                return f"{option} must be given one value, got {event.tokens[0]!r} as well"
            hint = _perhaps(event.tokens[0], commands[arguments[0]]) or "; --help lists them"
            return f"options must be known to the command, got {event.tokens[0]}{hint}"
    return None


def _perhaps(word: str, command: Any) -> str:
    return suggestion(word, [option.flag for option in options_of(command) if option.flag])


def _option_before(word: str, arguments: Sequence[str]) -> str | None:
    """The option that a word follows as one value too many; None if it looks like an option itself."""
    if word.startswith("-") or word not in arguments:
        return None
    before = arguments[1 : arguments.index(word)]
    return next((each for each in reversed(before) if each.startswith("--")), None)


def _name(argument: Any) -> str:
    """The option, or the metavariable of an argument that is given by position."""
    return argument.lowered.metavar if argument.is_positional() else argument.display_name()


def _kind(argument: Any) -> str:
    metavar = argument.lowered.metavar
    kind = next((word for short, word in _KINDS.items() if short in metavar), "as its help text says")
    if metavar.startswith("{") and "}|" in metavar:  # words, or a value of this kind
        kind = f"{', '.join(metavar[1 : metavar.index('}')].split(','))} or {kind}"
    return f"{kind}, or several of them" if "..." in metavar else kind


def _values(argument: Any, arguments: Iterable[str]) -> list[str]:
    """The words after an option, up to the next one."""
    words = itertools.chain.from_iterable(w.split("=", 1) if w.startswith("--") else [w] for w in arguments)
    after = itertools.dropwhile(lambda word: word.replace("_", "-") != argument.display_name(), words)
    values = itertools.takewhile(lambda word: not word.startswith("--"), itertools.islice(after, 1, None))
    return list(itertools.islice(values, 1 if argument.lowered.nargs == 1 else None))
