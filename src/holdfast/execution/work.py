"""The loop of all that is computed cell by cell: what is missing is computed by an engine and saved by its workers."""

import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar

from holdfast.core.worker import StoppedError, current_worker
from holdfast.execution.cells import Cells, Index, Lease
from holdfast.execution.engines.base import Engine, Feed, Finished, describe
from holdfast.execution.engines.clusters import LostClusterError
from holdfast.execution.engines.remote import VersionMismatchError

Value = TypeVar("Value")

# Seconds between two reports: a display cannot use more of them.
REPORTING = 0.2
# The rate is that of the last seconds, so that it follows cells that become slower or faster.
RATE_SECONDS = 60.0
# A cell that another process has is asked for again after this many seconds, twice as many each time, up to a limit.
FIRST_WAIT, LONGEST_WAIT = 0.5, 10.0


class Report(Protocol):
    """Is called now and then while cells are computed, and once at the end.

    Example:
        >>> def report(done, total, rate, seconds_left, failures):
        ...     print(f"{done} cells, {sum(failures.values())} failed")
        >>> display: Report = report
        >>> display(3, None, 1.5, None, {"ValueError: no": 1})
        3 cells, 1 failed
    """

    def __call__(
        self, done: int, total: int | None, rate: float, seconds_left: float | None, failures: Mapping[str, int]
    ) -> None:
        """Display how far the work is.

        Args:
            done: cells that were computed, here or by another process, or failed.
            total: cells that were missing at the beginning; None: not known.
            rate: cells done in a second, over the last minute.
            seconds_left: None: not known.
            failures: reason -> number of cells.
        """
        ...


class WorkOutcome(NamedTuple):
    """What a command did.

    Attributes:
        computed: cells that were computed and saved.
        elsewhere: cells that another process finished in the meantime.
        failures: reason -> cells.
        seconds: of computation, summed over the cells.

    Example:
        >>> WorkOutcome(computed=3, elsewhere=0, failures={"ValueError: no": [(0, 1)]}, seconds=6.0).failed
        1
    """

    computed: int
    elsewhere: int
    failures: dict[str, list[Index]]
    seconds: float

    @property
    def failed(self) -> int:
        """The number of cells that failed."""
        return sum(map(len, self.failures.values()))


class SaveError(OSError):
    """Results cannot be saved: the disk is full, the folder is read-only or gone.

    Example:
        >>> raise SaveError("OSError: [Errno 28] No space left on device")
        Traceback (most recent call last):
        holdfast.execution.work.SaveError: OSError: [Errno 28] No space left on device
    """


def compute(
    cells: Cells[Value],
    function: Callable[[Index], Value],
    engine: Engine,
    report: Report | None = None,
    *,
    total: int | None = None,
) -> WorkOutcome:
    """Compute and save all cells that are missing.

    The worker that computes a cell saves it, under a lease, so that any number of commands can work on the same cells.
    A cell that fails does not stop the others. Ctrl-C stops: nothing new starts, leases are released, what is saved
    stays, and the same call goes on from there.

    Args:
        cells: what is missing, and where results are saved; picklable, where workers are other processes.
        function: index of a cell -> its result.
        engine: where the cells are computed.
        report: is called now and then.
        total: number of missing cells, if the caller knows it: for the share that is done and the time that is left.

    Raises:
        SaveError: if results cannot be saved.
        VersionMismatchError: if a worker has other code than we do.
        LostClusterError: if the cluster is lost.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from holdfast.execution.engines import ThreadEngine
        >>> from holdfast.execution import RECORDS, EntryCells, Key, Store
        >>> keys = {name: Key(name, {}, ("holdfast.core.statistics",)) for name in ("one", "three")}
        >>> cells = EntryCells(Store(Path(tempfile.mkdtemp()), RECORDS), keys)
        >>> compute(cells, lambda name: {"letters": len(name)}, ThreadEngine(2)).computed
        2
        >>> compute(cells, lambda name: {"letters": len(name)}, ThreadEngine(2)).computed
        0
    """
    state = _WorkState(cells, report, total)
    for _ in state.computed_by(engine, function):
        pass
    return WorkOutcome(state.computed, state.elsewhere, state.failures, state.seconds)


def compute_each(
    cells: Cells[Value],
    function: Callable[[Index], Value],
    engine: Engine,
    report: Report | None = None,
    *,
    total: int | None = None,
) -> Generator[Index, None, None]:
    """As `compute`, but yields each cell as soon as it is saved, while the engine goes on with the others.

    The workers are given new cells when the next one is asked for, and each has one that waits.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from holdfast.execution.engines import ThreadEngine
        >>> from holdfast.execution import RECORDS, EntryCells, Key, Store
        >>> keys = {name: Key(name, {}, ("holdfast.core.statistics",)) for name in ("one", "three")}
        >>> cells = EntryCells(Store(Path(tempfile.mkdtemp()), RECORDS), keys)
        >>> sorted(compute_each(cells, lambda name: {"letters": len(name)}, ThreadEngine(2)))
        ['one', 'three']
    """
    return _WorkState(cells, report, total).computed_by(engine, function)


class Receipt(NamedTuple):
    """What a worker says about a cell.

    Attributes:
        state: what became of it.
        reason: of a failure, "TypeName: message".
        seconds: of its computation.
    """

    state: Literal["computed", "busy", "finished", "failed", "unsaved", "stopped"]
    reason: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class CellWork(Generic[Value]):
    """What a worker does with a cell: lease, compute, save, release."""

    cells: Cells[Value]
    function: Callable[[Index], Value]

    def __call__(self, index: Index) -> Receipt:
        """Compute a cell, unless another process has it."""
        try:
            with self.cells.lease(index) as lease:
                if lease is Lease.TAKEN:
                    return self._compute(index)
                return Receipt("busy" if lease is Lease.BUSY else "finished")
        except OSError as error:  # from the folder: `_compute` has caught those of the function
            return Receipt("unsaved", describe(error))

    def _compute(self, index: Index) -> Receipt:
        begin = time.perf_counter()
        try:
            value = self.function(index)
        except Exception as error:
            if isinstance(error, StoppedError) or current_worker().stopped():
                return Receipt("stopped")
            return self._failed(index, error)
        seconds = time.perf_counter() - begin
        try:
            self.cells.save(index, value)
        except OSError:
            raise
        except Exception as error:  # the result is not of the form that the cells have
            return self._failed(index, error)
        return Receipt("computed", seconds=seconds)

    def _failed(self, index: Index, error: Exception) -> Receipt:
        reason = describe(error)
        self.cells.fail(index, reason)
        return Receipt("failed", reason)


class _WorkState:
    """How far the work is, and which cells are still to be handed out."""

    def __init__(self, cells: Cells[Any], report: Report | None, total: int | None):
        self._cells, self._report, self._total = cells, report, total
        self.computed = self.elsewhere = self._failed = self._in_flight = 0
        self.seconds = 0.0
        self.failures: dict[str, list[Index]] = {}
        self._busy: deque[tuple[float, Index]] = deque()
        self._waits: dict[Index, float] = {}
        self._history = deque([(time.monotonic(), 0)])

    def computed_by(self, engine: Engine, function: Callable[[Index], Any]) -> Generator[Index, None, None]:
        """Compute the missing cells; yields each that is saved."""
        try:
            with closing(engine.run(CellWork(self._cells, function), self.feed())) as results:
                for finished in results:
                    if self.add(finished):
                        yield finished.item
        except (SaveError, VersionMismatchError, LostClusterError) as error:
            saved = f"{self.computed} cell{'' if self.computed == 1 else 's'} saved"
            raise type(error)(f"{error}; {saved}, and the same command goes on from there") from error
        self.report(last=True)

    def feed(self) -> Iterator[Index | Feed]:
        """The missing cells, then those that others had, again and again until they are finished."""
        for handed_out, index in enumerate(self._cells.missing(), 1):
            if self._total is not None:  # damaged cells are found late, and nobody has counted them
                self._total = max(self._total, handed_out)
            self._in_flight += 1
            yield index
        while self._busy or self._in_flight:
            if self._busy and self._busy[0][0] <= time.monotonic():
                self._in_flight += 1
                yield self._busy.popleft()[1]
            else:
                yield Feed.WAIT

    def add(self, finished: Finished) -> bool:
        """Count a cell that came back; returns whether its result is saved."""
        self._in_flight -= 1
        index = finished.item
        if finished.error is not None:  # it did not even get to where errors of cells are noted
            self._fail(index, finished.error)
            self._cells.fail(index, finished.error)
            saved = False
        else:
            self._count(index, finished.value)
            saved = finished.value.state in ("computed", "finished")
        self.report()
        return saved

    def _count(self, index: Index, receipt: Receipt) -> None:
        match receipt.state:
            case "computed":
                self.computed += 1
                self.seconds += receipt.seconds
            case "finished":
                self.elsewhere += 1
            case "failed":
                self._fail(index, receipt.reason)
            case "busy":
                wait = self._waits.get(index, FIRST_WAIT)
                self._waits[index] = min(2 * wait, LONGEST_WAIT)
                self._busy.append((time.monotonic() + wait, index))
            case "unsaved":
                raise SaveError(f"the result of cell {index} cannot be saved: {receipt.reason}")

    def _fail(self, index: Index, reason: str) -> None:
        self._failed += 1
        self.failures.setdefault(reason, []).append(index)

    def report(self, last: bool = False) -> None:
        """Report, unless the last report is very recent."""
        now = time.monotonic()
        if self._report is None or (not last and now < self._history[-1][0] + REPORTING):
            return
        done = self.computed + self.elsewhere + self._failed
        self._history.append((now, done))
        while len(self._history) > 2 and self._history[1][0] < now - RATE_SECONDS:
            self._history.popleft()
        begin, before = self._history[0]
        rate = (done - before) / max(now - begin, 1e-9)
        left = (self._total - done) / rate if self._total is not None and rate > 0 else None
        self._report(done, self._total, rate, left, {reason: len(cells) for reason, cells in self.failures.items()})
