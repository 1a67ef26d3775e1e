"""The command line: finds the command by its name, and turns what went wrong into a sentence and an exit code."""

import atexit
import gc
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from cyclopts import App, CycloptsError
from rich.console import Console

from holdfast import __version__
from holdfast.apps.cli.command import Command, installed_commands
from holdfast.apps.cli.commands import data, simulations, sweeps, tools
from holdfast.apps.cli.parser import STREAM, arguments_of, command_line, sentence
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
# Objects between two searches for garbage. The modules of a command are never garbage: by default, searching them takes
# a third of the time of a short command, while they are imported and once more when the process ends.
COLLECT_AFTER = 100_000
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
    "simulate": Command(SIMULATIONS, simulations.SimulateArguments, simulations.execute_simulate),
    "window": Command(SIMULATIONS, simulations.WindowArguments, simulations.execute_window),
    "phase": Command(SIMULATIONS, simulations.PhaseArguments, simulations.execute_phase),
    "jumps": Command(SIMULATIONS, simulations.JumpsArguments, simulations.execute_jumps),
    "sweep": Command(SWEEPS, sweeps.SweepArguments, sweeps.execute_sweep),
    "sweep-status": Command(SWEEPS, sweeps.SweepStatusArguments, sweeps.execute_sweep_status),
    "sweep-plot": Command(SWEEPS, sweeps.SweepPlotArguments, sweeps.execute_sweep_plot),
    "advise": Command(DATA, data.AdviseArguments, data.execute_advise),
    "fit": Command(DATA, data.FitArguments, data.execute_fit),
    "predict": Command(DATA, data.PredictArguments, data.execute_predict),
    "lab": Command(TOOLS, tools.LabArguments, tools.execute_lab),
    "doctor": Command(TOOLS, tools.DoctorArguments, tools.execute_doctor),
    "completion": Command(TOOLS, tools.CompletionArguments, tools.execute_completion),
    **installed_commands(),
}


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; what went wrong becomes a sentence on stderr and an exit code, 2 for input without use."""
    gc.set_threshold(COLLECT_AFTER)
    atexit.register(gc.freeze)
    try:
        code = _run(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the other side of a pipe is closed, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more at exit
        return 141  # as if ended by SIGPIPE
    except ValueError as error:
        message, code = str(error), 2
    except (FailedCellsError, RefusedWorkerError, ConnectionError) as error:  # the latter two of a cluster
        message, code = str(error), 1
    except OSError as error:
        message, code = f"cannot write or read: {error}", 1
    except KeyboardInterrupt as error:
        message, code = str(error) or "interrupted", 130
    print(f"holdfast: {message}", file=sys.stderr)
    return code


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
