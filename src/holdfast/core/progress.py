"""Progress of long work: how the code that does the work reports it to the code that displays it."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

Progress = Callable[[int, int], None]
"""(done, total) -> None."""

PATIENCE = 1.0  # seconds of work before a progress bar appears


def stages(progress: Progress | None, lengths: Sequence[int]) -> list[Progress]:
    """One report for each stage of some work, which together fill one progress bar.

    Args:
        progress: called with (done, total); None: progress is not reported.
        lengths: of the stages, in the unit of the bar.

    Example:
        >>> first, second = stages(lambda done, total: print(done, "of", total), [10, 30])
        >>> second(1, 2)
        25 of 40
    """
    total = sum(lengths)

    def stage(begin: int, length: int) -> Progress:
        def report(done: int, of: int) -> None:
            if progress is not None:
                progress(begin + length * done // max(of, 1), total)

        return report

    return [stage(sum(lengths[:number]), length) for number, length in enumerate(lengths)]


def counted(number: int, noun: str) -> str:
    """A number of things, in words that fit it.

    Example:
        >>> counted(1, "cell"), counted(2_000, "cell")
        ('1 cell', '2,000 cells')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


@contextmanager
def watched(verbose: int | Progress, label: str) -> Iterator[Progress | None]:
    """What `verbose` asks for, as scikit-learn understands it: a context that gives the report of some work, or None.

    Args:
        verbose: 0: nothing; 1: a bar of text on stderr, once the work takes more than a second; or a function of
            (done, total).
        label: what the bar is called.

    Example:
        >>> with watched(lambda done, total: print(done, "of", total), "fitting") as progress:
        ...     progress(1, 3)
        1 of 3
    """
    if callable(verbose):
        yield verbose
    elif not verbose:
        yield None
    else:
        from rich.console import Console  # which takes a while to import
        from rich.progress import Progress as Bar

        bar, begin = Bar(console=Console(stderr=True)), time.monotonic()
        task = bar.add_task(label)

        def report(done: int, total: int) -> None:
            if not bar.live.is_started and time.monotonic() - begin > PATIENCE:
                bar.start()
            bar.update(task, completed=done, total=total)

        try:
            yield report
        finally:
            if bar.live.is_started:
                bar.stop()
