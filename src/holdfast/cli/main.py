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
from holdfast.cli.commands import (
    advise,
    bench,
    compare,
    completion,
    doctor,
    fit,
    jumps,
    lab,
    phase,
    predict,
    reproduce,
    simulate,
    sweep,
    sweep_plot,
    sweep_status,
    window,
)
from holdfast.cli.errors import sentence
from holdfast.cli.help import described, overview
from holdfast.cli.parser import parse_command
from holdfast.core.validation import suggestion
from holdfast.execution.engines.remote import RefusedWorkerError
from holdfast.execution.work import FailedCellsError

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
# Group -> command -> the data class of its arguments, and what it does with them.
GROUPS: dict[str, dict[str, tuple[Any, Any]]] = {
    "Simulations": {
        "simulate": (simulate.SimulateArguments, simulate.execute),
        "window": (window.WindowArguments, window.execute),
        "phase": (phase.PhaseArguments, phase.execute),
        "jumps": (jumps.JumpsArguments, jumps.execute),
    },
    "Sweeps": {
        "sweep": (sweep.SweepArguments, sweep.execute),
        "sweep-status": (sweep_status.SweepStatusArguments, sweep_status.execute),
        "sweep-plot": (sweep_plot.SweepPlotArguments, sweep_plot.execute),
    },
    "Your data": {
        "advise": (advise.AdviseArguments, advise.execute),
        "fit": (fit.FitArguments, fit.execute),
        "predict": (predict.PredictArguments, predict.execute),
    },
    "Results of the papers, and other methods": {
        "reproduce": (reproduce.ReproduceArguments, reproduce.execute),
        "compare": (compare.CompareArguments, compare.execute),
    },
    "Tools": {
        "lab": (lab.LabArguments, lab.execute),
        "bench": (bench.BenchArguments, bench.execute),
        "doctor": (doctor.DoctorArguments, doctor.execute),
        "completion": (completion.CompletionArguments, completion.execute),
    },
}
COMMANDS = {name: command for commands in GROUPS.values() for name, command in commands.items()}


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit code, 2 for input that cannot be used."""
    arguments = sys.argv[1:] if arguments is None else arguments
    with _quiet_on_broken_pipe():
        if arguments == ["--version"]:
            print(f"holdfast {__version__}")
            return 0
        if arguments in (["--help"], ["-h"]):
            classes = {
                group: {name: each for name, (each, _) in commands.items()} for group, commands in GROUPS.items()
            }
            print(overview(INTRODUCTION, classes, CLOSING))
            return 0
        parsed = _parse(arguments)
        # Compiled programs are cached between calls, unless the user has chosen a folder for them.
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(_cache_folder() / "compiled"))
        os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
        try:
            return dict(COMMANDS.values())[type(parsed)](parsed)
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
    types = {name: data_class for name, (data_class, _) in COMMANDS.items()}

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
