"""Progress bars for long work."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from holdfast.core.progress import PATIENCE, Progress


def say(line: str) -> None:
    """Print a line, in rich's markup, above the progress bars if there are any."""
    console = Console()
    with console.capture() as rendered:
        console.print(line, highlight=False, soft_wrap=True)
    # With `print`, which is redirected while bars are drawn; a second console would write into them.
    print(rendered.get(), end="")


@contextmanager
def progress(label: str) -> Iterator[Progress]:
    """A progress bar on stderr that appears when the work takes more than a second."""
    with progress_bars() as bars, bars(label) as report:
        yield report


@contextmanager
def progress_bars() -> Iterator[Callable[[str], AbstractContextManager[Progress]]]:
    """Progress bars on stderr for concurrent work: label -> a context in which the work has a bar."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    # Lines printed in the meantime go above the bars, unless stdout is a file.
    bars = Bars(*columns, console=Console(stderr=True), transient=True, redirect_stdout=sys.stdout.isatty())

    @contextmanager
    def bar(label: str) -> Iterator[Progress]:
        task = bars.add_task(label)
        begin = time.monotonic()

        def report(done: int, total: int) -> None:
            if bars.console.is_terminal and not bars.live.is_started and time.monotonic() - begin > PATIENCE:
                bars.start()
            bars.update(task, completed=done, total=total)

        try:
            yield report
        finally:
            bars.remove_task(task)

    try:
        yield bar
    finally:
        if bars.live.is_started:
            bars.stop()
