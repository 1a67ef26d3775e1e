"""The command line: finds the command by its name, and turns what went wrong into a sentence and an exit code."""

import contextlib
import inspect
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tyro import _errors as events

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
from holdfast.apps.cli.help import described, overview
from holdfast.apps.cli.parser import parse_command
from holdfast.core.validation import suggestion
from holdfast.sweeps.engines.remote import RefusedWorkerError
from holdfast.sweeps.store.work import FailedCellsError

INTRODUCTION = """usage: holdfast COMMAND [OPTIONS]

What heterogeneity in the data makes SGD hold on to, and what it washes away.
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
    arguments = sys.argv[1:] if arguments is None else arguments
    with _quiet_on_broken_pipe():
        if arguments == ["--version"]:
            print(f"holdfast {__version__}")
            return 0
        if arguments in (["--help"], ["-h"]):
            groups = {
                group: {name: each.arguments for name, each in COMMANDS.items() if each.group == group}
                for group in dict.fromkeys((*GROUPS, *(each.group for each in COMMANDS.values())))
            }
            print(overview(INTRODUCTION, groups, CLOSING))
            return 0
        parsed = _parse(arguments)
        # Compiled programs are cached between calls, unless the user has chosen a folder for them.
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(_cache_folder() / "compiled"))
        os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
        try:
            return COMMANDS[arguments[0]].execute(parsed)
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


@contextlib.contextmanager
def _quiet_on_broken_pipe() -> Iterator[None]:
    """End without a traceback when the other side of a pipe is closed, as `head` does; exit code as for SIGPIPE."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes once more at exit, then to the null device.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(141) from None


def _cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "holdfast"


def _parse(arguments: list[str]) -> Any:
    types = {name: command.arguments for name, command in COMMANDS.items()}

    def report(event: events.ParseErrorEvent) -> None:
        if (message := sentence(event, arguments, types)) is not None:
            raise SystemExit(_fail(message, 2))

    if not arguments or arguments[0] not in types:
        given = f"{arguments[0]!r}{suggestion(arguments[0], types)}" if arguments else "none"
        raise SystemExit(_fail(f"the command must be one of {', '.join(types)}, got {given}", 2))
    name, *words = arguments
    with events.on_parse_error(report), described(inspect.getdoc(types[name]) or ""):
        return parse_command(name, types[name], words)


def _fail(message: str, code: int) -> int:
    print(f"holdfast: {message}", file=sys.stderr)
    return code
