"""The command line: finds the command by its name, and turns what went wrong into a sentence and an exit code."""

import contextlib
import functools
import inspect
import operator
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import tyro
from tyro import _errors as events

from holdfast import __version__
from holdfast.cli.commands import (
    advise,
    bench,
    compare,
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
from holdfast.cli.help import MARK, described, first_sentence
from holdfast.execution.engines.remote import VersionMismatchError

DESCRIPTION = "What heterogeneity in the data makes SGD hold on to, and what it washes away."
# Command -> the data class of its arguments, and what it does with them.
COMMANDS: dict[str, tuple[Any, Any]] = {
    "simulate": (simulate.SimulateArguments, simulate.execute),
    "window": (window.WindowArguments, window.execute),
    "phase": (phase.PhaseArguments, phase.execute),
    "sweep": (sweep.SweepArguments, sweep.execute),
    "sweep-status": (sweep_status.SweepStatusArguments, sweep_status.execute),
    "sweep-plot": (sweep_plot.SweepPlotArguments, sweep_plot.execute),
    "advise": (advise.AdviseArguments, advise.execute),
    "jumps": (jumps.JumpsArguments, jumps.execute),
    "reproduce": (reproduce.ReproduceArguments, reproduce.execute),
    "fit": (fit.FitArguments, fit.execute),
    "predict": (predict.PredictArguments, predict.execute),
    "compare": (compare.CompareArguments, compare.execute),
    "lab": (lab.LabArguments, lab.execute),
    "bench": (bench.BenchArguments, bench.execute),
}


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit code, 2 for input that cannot be used."""
    arguments = sys.argv[1:] if arguments is None else arguments
    with _quiet_on_broken_pipe():
        if arguments == ["--version"]:
            print(f"holdfast {__version__}")
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
        except (VersionMismatchError, ConnectionError) as error:  # of a cluster
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

    with events.on_parse_error(report):
        if arguments and arguments[0] in types:  # the parsers of all commands take much longer to make than that of one
            chosen = types[arguments[0]]
            with described(inspect.getdoc(chosen) or ""):
                return tyro.cli(chosen, prog=f"holdfast {arguments[0]}", description=MARK, args=arguments[1:])
        named = (
            Annotated[data_class, tyro.conf.subcommand(name, description=first_sentence(data_class))]
            for name, data_class in types.items()
        )
        commands: Any = functools.reduce(operator.or_, named)
        with described(DESCRIPTION):
            return tyro.cli(commands, prog="holdfast", description=MARK, args=arguments)


def _fail(message: str, code: int) -> int:
    print(f"holdfast: {message}", file=sys.stderr)
    return code
