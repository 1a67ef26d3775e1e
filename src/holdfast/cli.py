"""The command line. Each command is a frozen dataclass; what it does lives elsewhere and is imported when needed."""

import contextlib
import io
import json
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from holdfast import __version__
from holdfast.settings import Settings


@dataclass(frozen=True)
class Simulate:
    """Simulate SGD on multi-environment matrix sensing and say what it learned.

    Give a number such as --heterogeneity several values to run them side by side.
    """

    settings: tyro.conf.OmitArgPrefixes[Settings]
    out: Path | None = None
    """Write the whole trajectory to this file: NAME.zarr or NAME.csv."""
    overwrite: bool = False
    """Replace the file if it exists."""
    format: Literal["table", "json"] = "table"
    """What to print: tables for people, or JSON."""


@dataclass(frozen=True)
class Reproduce:
    """Redraw the figures of the paper, test its claims and write report.html.

    What was already computed with the same seeds and version is reused. Exit code 1 if a claim that is recorded as
    holding does not, or an experiment fails.
    """

    names: tyro.conf.Positional[tuple[str, ...]] = ()
    """Experiments to run; all of them if none is named."""
    out: Path = Path("results")
    """Folder for figures, numbers, claims.json and report.html."""
    quick: bool = False
    """Few seeds: a look at the figures, not a test of the claims; the verdicts do not change the exit code."""
    seeds: int | None = None
    """Seeds of each curve, instead of the number each experiment asks for."""
    list: bool = False
    """Name the experiments and stop."""


@dataclass(frozen=True)
class Bench:
    """Measure speed: the exact law against explicit measurements and against the limits of this machine."""

    out: Path | None = None
    """Write the numbers to this JSON file."""
    quick: bool = False
    """Smaller sizes, to see that the benchmark works."""


def simulate(command: Simulate) -> int:
    """`holdfast simulate`."""
    from holdfast import terminal
    from holdfast.simulation import simulate as run_simulation
    from holdfast.trajectory import check_path

    if command.out is not None:
        check_path(command.out, overwrite=command.overwrite)
    with terminal.progress("simulating") as progress:
        trajectory = run_simulation(command.settings, progress=progress)
    if command.format == "json":
        print(json.dumps(trajectory.summary(), allow_nan=False))
    else:
        terminal.show(trajectory)
    if command.out is not None:
        trajectory.save(command.out, overwrite=command.overwrite)
    return 0


def reproduce(command: Reproduce) -> int:
    """`holdfast reproduce`."""
    from holdfast.experiments.reproduce import EXPERIMENTS, reproduce_all

    if command.list:
        for name, experiment in EXPERIMENTS.items():
            print(f"{name:12} {experiment.TITLE}")
        return 0
    return reproduce_all(command.names, command.out, quick=command.quick, seeds=command.seeds)


def bench(command: Bench) -> int:
    """`holdfast bench`."""
    from holdfast.bench import report

    return report(out=command.out, quick=command.quick)


COMMANDS: dict[type, Callable[[Any], int]] = {Simulate: simulate, Reproduce: reproduce, Bench: bench}

_Subcommand = (
    Annotated[Simulate, tyro.conf.subcommand("simulate")]
    | Annotated[Reproduce, tyro.conf.subcommand("reproduce")]
    | Annotated[Bench, tyro.conf.subcommand("bench")]
)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit code, 2 for input that cannot be used."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments == ["--version"]:
        print(f"holdfast {__version__}")
        return 0
    command = _parse(arguments)
    # Compiled programs are kept between calls, unless the user has chosen a folder for them.
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(_cache_folder() / "compiled"))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
    try:
        return COMMANDS[type(command)](command)
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
    messages = io.StringIO()
    try:
        with contextlib.redirect_stderr(messages):
            return tyro.cli(_Subcommand, prog="holdfast", description=sys.modules["holdfast"].__doc__, args=arguments)
    except SystemExit as stop:
        if stop.code in (0, None):
            raise
        raise SystemExit(_refuse(_sentence(messages.getvalue()))) from None


def _sentence(box: str) -> str:
    """The first paragraph of the box that tyro draws around an error."""
    lines = []
    for line in box.splitlines()[1:]:
        text = line.strip("│╭╮╰╯ ")
        if not text.strip("─"):
            break
        lines.append(text)
    return re.sub(r"^Error parsing \S*settings: ", "", " ".join(lines))


def _refuse(sentence: str) -> int:
    print(f"holdfast: {sentence}", file=sys.stderr)
    return 2
