"""The command line: finds the command by its name, and turns what went wrong into a sentence and an exit code."""

import contextlib
import functools
import io
import operator
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import tyro

from holdfast import __version__
from holdfast.cli.commands import advise, bench, compare, fit, jumps, phase, predict, reproduce, simulate, window
from holdfast.cli.errors import sentence

COMMANDS: dict[str, Any] = {
    "simulate": simulate,
    "window": window,
    "phase": phase,
    "advise": advise,
    "jumps": jumps,
    "reproduce": reproduce,
    "fit": fit,
    "predict": predict,
    "compare": compare,
    "bench": bench,
}
# Columns that hold any sentence of the parser.
WIDE = 10_000


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit code, 2 for input that cannot be used."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments == ["--version"]:
        print(f"holdfast {__version__}")
        return 0
    parsed = _parse(arguments)
    # Compiled programs are kept between calls, unless the user has chosen a folder for them.
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(_cache_folder() / "compiled"))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
    try:
        return {module.Arguments: module.execute for module in COMMANDS.values()}[type(parsed)](parsed)
    except ValueError as error:
        return _refuse(str(error))
    except OSError as error:
        print(f"holdfast: cannot write or read: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("holdfast: interrupted", file=sys.stderr)
        return 130


def _cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "holdfast"


def _parse(arguments: list[str]) -> Any:
    named = (Annotated[module.Arguments, tyro.conf.subcommand(name)] for name, module in COMMANDS.items())
    commands: Any = functools.reduce(operator.or_, named)
    parse = functools.partial(
        tyro.cli, commands, prog="holdfast", description=sys.modules["holdfast"].__doc__, args=arguments
    )
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            return parse()
    except SystemExit as stop:
        if stop.code in (0, None):
            raise
        raise SystemExit(_refuse(sentence(_complaint(parse), "".join(arguments[:1])))) from None


def _complaint(parse: Callable[[], Any]) -> str:
    """What the parser says of arguments that it refuses, in a box in which no line is broken."""
    messages, width = io.StringIO(), os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(WIDE)
    try:
        with contextlib.redirect_stderr(messages), contextlib.suppress(SystemExit):
            parse()
    finally:
        os.environ.pop("COLUMNS")
        if width is not None:
            os.environ["COLUMNS"] = width
    return messages.getvalue()


def _refuse(sentence: str) -> int:
    print(f"holdfast: {sentence}", file=sys.stderr)
    return 2
