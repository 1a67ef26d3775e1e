"""Progress bars for long work."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars

from holdfast.core.progress import PATIENCE, Progress
from holdfast.sweeps.store.work import Report

INTERRUPTED = "interrupted; finished cells are saved. Run the same command to resume"


def say(line: str) -> None:
    """Print a line, in rich's markup, above the progress bars if there are any."""
    console = Console()
    with console.capture() as rendered:
        console.print(line, highlight=False, soft_wrap=True)
    # With `print`, which is redirected while bars are drawn; a second console would write into them.
    print(rendered.get(), end="")


def note(text: str) -> None:
    """Print an indented line."""
    say(f"  {escape(text)}")


@contextmanager
def progress(label: str) -> Iterator[Progress]:
    """A progress bar on stderr that appears when the work takes more than a second."""
    with progress_bars() as bars, bars(label) as report:
        yield report


@contextmanager
def progress_bars() -> Iterator[Callable[[str], AbstractContextManager[Progress]]]:
    """Progress bars on stderr for concurrent work: label -> a context in which the work has a bar."""
    bars, begin = _bars(TextColumn("{task.description}"), TimeElapsedColumn(), TimeRemainingColumn()), time.monotonic()

    @contextmanager
    def bar(label: str) -> Iterator[Progress]:
        task = bars.add_task(label)

        def report(done: int, total: int) -> None:
            if not bars.live.is_started and time.monotonic() - begin > PATIENCE:
                bars.start()
            bars.update(task, completed=done, total=total)

        try:
            yield report
        finally:
            bars.remove_task(task)

    try:
        yield bar
    finally:
        bars.stop()


def _bars(label: TextColumn, *more: ProgressColumn) -> Bars:
    """Bars on stderr, if that is a terminal; printed lines go above them, unless stdout is a file."""
    console = Console(stderr=True)
    return Bars(
        label, BarColumn(), TaskProgressColumn(), *more,
        console=console, transient=True, redirect_stdout=sys.stdout.isatty(), disable=not console.is_terminal,
    )  # fmt: skip


@contextmanager
def work_bar(label: str) -> Iterator[Report]:
    """A bar on stderr with the rate, the time that is left and failures by reason."""
    bars = _bars(TextColumn(escape(label)), MofNCompleteColumn(), TextColumn("{task.fields[rest]}"))
    task = bars.add_task("", total=None, rest="starting")

    def report(
        done: int, total: int | None, rate: float, seconds_left: float | None, failures: Mapping[str, int]
    ) -> None:
        words = [
            f"{rate:.3g} cells/s" if rate else "",
            "" if seconds_left is None else f"{duration(seconds_left)} left",
        ]
        words += [f"[red]{count} failed: {escape(reason[:60])}[/red]" for reason, count in list(failures.items())[:2]]
        bars.update(task, completed=done, total=total, rest=", ".join(filter(None, words)))

    with bars:
        try:
            yield report
        except KeyboardInterrupt:
            raise KeyboardInterrupt(INTERRUPTED) from None


@contextmanager
def saving_bar(path: Path) -> Iterator[Report]:
    """As `work_bar`, for one file of results; says at the end, on stderr, whether it was written or reused."""
    rates = []

    with work_bar(str(path)) as report:

        def noted(done: int, total: int | None, rate: float, *rest: Any, **more: Any) -> None:
            rates.append(rate)  # `done` counts what was finished before too
            report(done, total, rate, *rest, **more)

        yield noted
    print(f"wrote {path}" if any(rates) else f"{path} is up to date; nothing to compute", file=sys.stderr)


def duration(seconds: float) -> str:
    """A time, human-readable.

    Example:
        >>> duration(0.25), duration(75), duration(100_000)
        ('0.25 s', '1 min 15 s', '1 d 3 h')
    """
    if seconds < 60:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
