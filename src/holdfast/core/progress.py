"""Progress of long work: how the code that does the work reports it to the code that displays it."""

from collections.abc import Callable, Sequence

Progress = Callable[[int, int], None]
"""(done, total) -> None."""


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
