"""Progress bars for long work."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

PATIENCE = 1.0  # seconds of work before a progress bar appears


@contextmanager
def progress(label: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on stderr that appears when the work takes more than a second."""
    columns = (TextColumn(label), BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(label)
    begin = time.monotonic()

    def report(done: int, total: int) -> None:
        if bar.console.is_terminal and not bar.live.is_started and time.monotonic() - begin > PATIENCE:
            bar.start()
        bar.update(task, completed=done, total=total)

    try:
        yield report
    finally:
        if bar.live.is_started:
            bar.stop()
