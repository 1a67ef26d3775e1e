"""The command line: finds the command by its name, and turns what went wrong into a sentence and an exit code."""

import os
import shutil
import sys
from pathlib import Path
from typing import Any

from cyclopts import App, CycloptsError
from rich.console import Console

from holdfast import __version__
from holdfast.apps.cli.command import Command, installed_commands
from holdfast.apps.cli.commands import (
    advise,
    completion,
    doctor,
    fit,
    jumps,
    lab,
    phase,
    predict,
    simulate,
    sweep,
    sweep_plot,
    sweep_status,
    window,
)
from holdfast.apps.cli.errors import sentence
from holdfast.apps.cli.parser import STREAM, arguments_of, command_line
from holdfast.core.validation import suggestion
from holdfast.sweeps.engines.remote import RefusedWorkerError
from holdfast.sweeps.store.work import FailedCellsError

INTRODUCTION = """What heterogeneity in the data makes SGD hold on to, and what it washes away.
"""
CLOSING = """`holdfast COMMAND --help` explains the options of a command, with examples. `holdfast --version` prints the
version.

First steps:

    holdfast doctor
    holdfast simulate --heterogeneity 6 --seeds 64
    holdfast reproduce figure_3 --quick --out look

Exit code: 0 if all went well, 1 if something failed, 2 for input that cannot be used, 130 if interrupted. Compiled
programs are cached in ~/.cache/holdfast; the variable JAX_COMPILATION_CACHE_DIR names another folder.
"""
# Characters of a line of help in a wide terminal.
WIDEST = 100
SIMULATIONS, SWEEPS, DATA, EVIDENCE, TOOLS = GROUPS = (
    "Simulations",
    "Sweeps",
    "Your data",
    "Results of the papers, and other methods",
    "Tools",
)
# The library's own; those of other packages follow them.
COMMANDS: dict[str, Command] = {
    "simulate": Command(SIMULATIONS, simulate.SimulateArguments, simulate.execute),
    "window": Command(SIMULATIONS, window.WindowArguments, window.execute),
    "phase": Command(SIMULATIONS, phase.PhaseArguments, phase.execute),
    "jumps": Command(SIMULATIONS, jumps.JumpsArguments, jumps.execute),
    "sweep": Command(SWEEPS, sweep.SweepArguments, sweep.execute),
    "sweep-status": Command(SWEEPS, sweep_status.SweepStatusArguments, sweep_status.execute),
    "sweep-plot": Command(SWEEPS, sweep_plot.SweepPlotArguments, sweep_plot.execute),
    "advise": Command(DATA, advise.AdviseArguments, advise.execute),
    "fit": Command(DATA, fit.FitArguments, fit.execute),
    "predict": Command(DATA, predict.PredictArguments, predict.execute),
    "lab": Command(TOOLS, lab.LabArguments, lab.execute),
    "doctor": Command(TOOLS, doctor.DoctorArguments, doctor.execute),
    "completion": Command(TOOLS, completion.CompletionArguments, completion.execute),
    **installed_commands(),
}


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit code, 2 for input that cannot be used."""
    try:
        code = _code(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # the other side of a pipe is closed, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more at exit
        return 141  # as if ended by SIGPIPE
    return code


def _code(words: list[str]) -> int:
    """Run a command; what went wrong becomes a sentence on stderr and an exit code."""
    try:
        return _run(words)
    except ValueError as error:
        return _fail(str(error), 2)
    except BrokenPipeError:
        raise
    except (FailedCellsError, RefusedWorkerError, ConnectionError) as error:  # the latter two of a cluster
        return _fail(str(error), 1)
    except OSError as error:
        return _fail(f"cannot write or read: {error}", 1)
    except KeyboardInterrupt as error:
        return _fail(str(error) or "interrupted", 130)


def _run(words: list[str]) -> int:
    if words == ["--version"]:
        print(f"holdfast {__version__}")
        return 0
    if {"--help", "-h"} & {*words}:
        # Through `print`: rich ends the process when the other side of a pipe is closed.
        console = Console(width=min(shutil.get_terminal_size().columns, WIDEST))
        with console.capture() as page:
            _application(words).help_print([word for word in words[:1] if word in COMMANDS], console=console)
        print(page.get(), end="")
        return 0
    parsed = _parse(words)
    # Compiled programs are cached between calls, unless the user has chosen a folder for them.
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "holdfast" / "compiled"
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(cache))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
    return COMMANDS[words[0]].execute(parsed)


def _application(words: list[str]) -> App:
    """The command line with the options of the command that the words name; a ValueError if they name none."""
    if not words or words[0] not in (*COMMANDS, "--help", "-h"):
        given = f"{words[0]!r}{suggestion(words[0], COMMANDS)}" if words else "none"
        raise ValueError(f"the command must be one of {', '.join(COMMANDS)}, got {given}")
    return command_line(COMMANDS, GROUPS, (INTRODUCTION, CLOSING), only=words[0])


def _parse(words: list[str]) -> Any:
    """The arguments of the command that the words name; a ValueError for words that cannot be used."""
    app = _application(words)
    words = [STREAM if word == "-" else word for word in words]
    try:
        _, bound, _ = app.parse_args(words, print_error=False, exit_on_error=False)
    except CycloptsError as error:
        raise ValueError(sentence(error, words, app)) from None
    return arguments_of(COMMANDS[words[0]].arguments, bound.arguments)


def _fail(message: str, code: int) -> int:
    print(f"holdfast: {message}", file=sys.stderr)
    return code
