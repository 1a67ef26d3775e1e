"""The loop of all that is computed cell by cell: what is missing is computed by an engine and saved by its workers."""

import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from holdfast.core.progress import counted
from holdfast.core.validation import describe, describe_place
from holdfast.core.worker import StoppedError, current_worker
from holdfast.sweeps.engines.local import Engine, Feed, Finished
from holdfast.sweeps.engines.remote import LostClusterError, RefusedWorkerError
from holdfast.sweeps.store.leases import Lease
from holdfast.sweeps.store.naming import Cell, CodeVersion
from holdfast.sweeps.store.store import Store

Value = TypeVar("Value")

# Seconds between two reports: a display cannot use more of them.
REPORTING = 0.2
# The rate is that of the last seconds, so that it follows cells that become slower or faster.
RATE_SECONDS = 60.0
# A cell that another process has is asked for again after this many seconds, twice as many each time, up to a limit.
FIRST_WAIT, LONGEST_WAIT = 0.5, 10.0
# States of receipts after which nothing more happens to a cell.
_ENDED = ("computed", "finished", "failed")


Report = Callable[[int, int | None, float, float | None, Mapping[str, int]], None]
"""Called periodically while cells are computed, and once at the end: (done, total, rate, seconds_left, failures).

`done` are the cells that were computed, here or by another process, or failed, of `total` that were missing at the
beginning; in a sweep both count those that were finished before as well. `rate` is in cells a second, over the last
minute. `failures` has the number of cells for each reason. What is not known is None.
"""


class WorkOutcome(NamedTuple):
    """What a command did.

    Attributes:
        computed: cells that were computed and saved.
        computed_elsewhere: cells that another process finished in the meantime.
        failures: reason -> labels of cells.
        seconds: of computation, summed over the cells.
        damaged: cells that were finished and had to be computed again, because their files do not fit their checksums.
        finished_before: other cells that were finished when the command began, where that is counted.
        notes: sentences for people, such as that cells were computed in different ways.

    Example:
        >>> WorkOutcome(computed=3, computed_elsewhere=0, failures={"ValueError: no": [(0, 1)]}, seconds=6.0).failed
        1
    """

    computed: int
    computed_elsewhere: int
    failures: dict[str, list[Any]]
    seconds: float
    damaged: int = 0
    finished_before: int = 0
    notes: tuple[str, ...] = ()

    @property
    def failed(self) -> int:
        """The number of cells that failed."""
        return sum(map(len, self.failures.values()))


class SaveError(OSError):
    """Results cannot be saved: the disk is full, the folder is read-only or gone.

    Example:
        >>> raise SaveError("OSError: [Errno 28] No space left on device")
        Traceback (most recent call last):
        holdfast.sweeps.store.work.SaveError: OSError: [Errno 28] No space left on device
    """


class FailedCellsError(RuntimeError):
    """Cells could not be computed, and without them there is no result; `WorkOutcome.failures` is for those who go on.

    Example:
        >>> raise FailedCellsError("the simulation failed: MemoryError")
        Traceback (most recent call last):
        holdfast.sweeps.store.work.FailedCellsError: the simulation failed: MemoryError
    """


@dataclass(frozen=True)
class CellBatches(Generic[Value]):
    """Cells that are computed in one call and saved one by one, because a single one would leave an accelerator idle.

    Attributes:
        most: cells in one call.
        kind: label of a cell -> what cells must have in common to be computed together.
        function: labels of cells of one kind -> their results.

    Example:
        >>> pairs = CellBatches(2, len, lambda names: [{"letters": len(name)} for name in names])
        >>> cells = [Cell(name, name) for name in ("one", "three", "two", "six")]
        >>> [tuple(cell.label for cell in block) for block in pairs.blocks(cells)]
        [('one', 'two'), ('three',), ('six',)]
    """

    most: int
    kind: Callable[[Any], Hashable]
    function: Callable[[Sequence[Any]], Sequence[Value]]

    def blocks(self, cells: Iterable[Cell]) -> Iterator[tuple[Cell, ...]]:
        """Cells in blocks of one kind, as soon as one is complete, and in the end those that are not."""
        waiting: dict[Hashable, list[Cell]] = {}
        for cell in cells:
            kind = self.kind(cell.label)
            block = waiting.setdefault(kind, [])
            block.append(cell)
            if len(block) == self.most:
                yield tuple(waiting.pop(kind))
        yield from map(tuple, waiting.values())


def compute(
    store: Store[Value],
    cells: Iterable[Cell],
    function: Callable[[Any], Value],
    engine: Engine,
    report: Report | None = None,
    *,
    code: CodeVersion | None = None,
    total: int | None = None,
    batches: CellBatches[Value] | None = None,
) -> WorkOutcome:
    """Compute and save all cells that are missing.

    The worker that computes a cell saves it, under a lease, so that any number of commands can work on the same cells.
    A cell that fails does not stop the others. Ctrl-C stops: nothing new starts, leases are released, what is saved
    stays, and the same call goes on from there.

    Args:
        store: where results are saved.
        cells: all of them, whether missing or not; a sequence or the like, which is gone through twice.
        function: label of a cell -> its result.
        engine: where the cells are computed.
        report: called periodically.
        code: which code decides the results; workers that have another one are refused.
        total: number of missing cells, if the caller knows it: for the share that is done and the time that is left.
        batches: which cells are computed in one call, if any. If that fails, `function` computes them one by one, so
            that a cell fails by itself.

    Raises:
        SaveError: if results cannot be saved.
        RefusedWorkerError: if a worker has other code than we do, or cannot open the work.
        LostClusterError: if the cluster is lost.

    Example:
        >>> import tempfile
        >>> from holdfast.sweeps.engines import ThreadEngine
        >>> from holdfast.sweeps.store import RECORDS, Cell, Key, Store
        >>> store = Store(tempfile.mkdtemp(), RECORDS)
        >>> cells = [Cell(Key(name, {}, ("holdfast.core.statistics",)).file, name) for name in ("one", "three")]
        >>> compute(store, cells, lambda name: {"letters": len(name)}, ThreadEngine(2)).computed
        2
        >>> compute(store, cells, lambda name: {"letters": len(name)}, ThreadEngine(2)).computed
        0
    """
    each = compute_each(CellWork(store, function, batches, code), cells, engine, report, total)
    while True:
        try:
            next(each)
        except StopIteration as end:
            return end.value


def compute_each(
    work: "CellWork[Any]",
    cells: Iterable[Cell],
    engine: Engine,
    report: Report | None = None,
    total: int | None = None,
) -> Generator[tuple[Any, str | None], None, WorkOutcome]:
    """As `compute`, but yields the label of each cell as soon as it has ended, while the engine goes on.

    With each comes None, if its result is saved, or why it failed. The workers are given new cells when the next one is
    asked for, and each has one that waits.

    Args:
        work: what a worker does with the cells.
        cells: as of `compute`, and so are the other arguments.
        engine: where the cells are computed.
        report: called periodically.
        total: number of missing cells, if the caller knows it.

    Example:
        >>> import tempfile
        >>> from holdfast.sweeps.engines import ThreadEngine
        >>> from holdfast.sweeps.store import RECORDS, Cell, Key, Store
        >>> cells = [Cell(Key(name, {}, ("holdfast.core.statistics",)).file, name) for name in ("one", "three")]
        >>> letters = lambda name: {"letters": len(name)}
        >>> sorted(compute_each(CellWork(Store(tempfile.mkdtemp(), RECORDS), letters), cells, ThreadEngine(2)))
        [('one', None), ('three', None)]
    """
    state = _WorkState(work, cells, report, total)
    try:
        with closing(engine.run(work, state.feed())) as results:
            for finished in results:
                yield from state.add(finished)
    except (SaveError, RefusedWorkerError, LostClusterError) as error:
        saved = f"{counted(state.outcome.computed, 'cell')} saved"
        raise type(error)(f"{error}; {saved}, and the same command goes on from there") from error
    state.report(last=True)
    return state.outcome


class Receipt(NamedTuple):
    """What a worker says about a cell.

    Attributes:
        state: what became of it.
        reason: of a failure, "TypeName: message", after the place in the user's code, if it was raised there.
        seconds: of its computation.
    """

    state: Literal["computed", "busy", "finished", "failed", "unsaved", "stopped"]
    reason: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class CellWork(Generic[Value]):
    """What a worker does with a block of cells, mostly of one: lease, compute, save, release."""

    store: Store[Value]
    function: Callable[[Any], Value]
    batches: CellBatches[Value] | None = None
    code: CodeVersion | None = None

    def __call__(self, block: Sequence[Cell]) -> list[Receipt]:
        """Compute cells, without those that another process has."""
        try:
            with ExitStack() as held:
                leases = {cell.name: held.enter_context(self.store.lease(cell.name)) for cell in block}
                taken = [cell for cell in block if leases[cell.name] is Lease.TAKEN]
                receipts = dict(zip((cell.name for cell in taken), self._compute(taken), strict=True))
            others = {Lease.BUSY: Receipt("busy"), Lease.FINISHED: Receipt("finished")}
            return [receipts.get(name) or others[lease] for name, lease in leases.items()]
        except OSError as error:  # from the folder: `_compute` has caught those of the function
            return [Receipt("unsaved", describe(error))] * len(block)

    def _compute(self, block: Sequence[Cell]) -> list[Receipt]:
        """In one call, if there are batches; where that fails, one by one."""
        labels, begin = [cell.label for cell in block], time.perf_counter()
        try:
            if self.batches and len(block) > 1:
                values = self.batches.function(labels)
            else:
                values = list(map(self.function, labels))
        except Exception as error:
            if isinstance(error, StoppedError) or current_worker().stopped():
                return [Receipt("stopped")] * len(block)
            if len(block) > 1:
                return [receipt for cell in block for receipt in self._compute([cell])]
            return [self.failed(block[0], describe_place(error))]
        seconds = (time.perf_counter() - begin) / max(len(block), 1)
        return [self._save(cell, value, seconds) for cell, value in zip(block, values, strict=True)]

    def _save(self, cell: Cell, value: Value, seconds: float) -> Receipt:
        try:
            self.store.save(cell.name, value, seconds)
        except OSError:
            raise
        except Exception as error:  # the result has no form on disk
            return self.failed(cell, describe_place(error))
        return Receipt("computed", seconds=seconds)

    def failed(self, cell: Cell, reason: str) -> Receipt:
        """Note in the folder why a cell failed."""
        try:
            self.store.fail(cell.name, reason)
        except OSError as error:  # the reason of the cell must not be lost behind that of the disk
            return Receipt("unsaved", f"{describe(error)} (it had failed: {reason})")
        return Receipt("failed", reason)


class _WorkState:
    """How far the work is, and which cells are still to be handed out."""

    def __init__(self, work: CellWork[Any], cells: Iterable[Cell], report: Report | None, total: int | None):
        self._work, self._cells, self._report, self._total = work, cells, report, total
        self._states: Counter[str] = Counter()
        self._seconds, self._damaged, self._in_flight = 0.0, 0, 0
        self._failures: dict[str, list[Any]] = {}
        self._busy: deque[tuple[float, Cell]] = deque()
        self._waits: dict[str, float] = {}
        self._history = deque([(time.monotonic(), 0)])

    @property
    def outcome(self) -> WorkOutcome:
        computed, elsewhere = self._states["computed"], self._states["finished"]
        return WorkOutcome(computed, elsewhere, self._failures, self._seconds, self._damaged)

    def feed(self) -> Iterator[tuple[Cell, ...] | Feed]:
        """The missing cells in blocks, then those that others had, again and again until they are finished."""
        missing, batches = self._work.store.missing(self._cells), self._work.batches
        handed_out = 0
        for block in ((cell,) for cell in missing) if batches is None else batches.blocks(missing):
            handed_out += len(block)
            if self._total is not None and handed_out > self._total:  # damaged cells are found late
                self._damaged += handed_out - self._total
                self._total = handed_out
            self._in_flight += len(block)
            yield block
        while self._busy or self._in_flight:
            if self._busy and self._busy[0][0] <= time.monotonic():
                self._in_flight += 1
                yield (self._busy.popleft()[1],)
            else:
                yield Feed.WAIT

    def add(self, finished: Finished) -> list[tuple[Any, str | None]]:
        """Count a block that came back; returns the labels of cells that have ended, with the reasons of failures."""
        block: Sequence[Cell] = finished.item
        self._in_flight -= len(block)
        if finished.error is None:
            receipts = finished.value
        else:  # it did not even get to where errors of cells are noted
            receipts = [self._work.failed(cell, finished.error) for cell in block]
        pairs = list(zip(block, receipts, strict=True))
        for cell, receipt in pairs:
            self._states[receipt.state] += 1
            self._seconds += receipt.seconds
            if receipt.state == "failed":
                self._failures.setdefault(receipt.reason, []).append(cell.label)
            elif receipt.state == "busy":
                wait = self._waits.get(cell.name, FIRST_WAIT)
                self._waits[cell.name] = min(2 * wait, LONGEST_WAIT)
                self._busy.append((time.monotonic() + wait, cell))
            elif receipt.state == "unsaved":
                raise SaveError(f"the result of {cell.label} cannot be saved: {receipt.reason}")
        self.report()
        return [(cell.label, receipt.reason or None) for cell, receipt in pairs if receipt.state in _ENDED]

    def report(self, last: bool = False) -> None:
        """Report, unless the last report is very recent."""
        now = time.monotonic()
        if self._report is None or (not last and now < self._history[-1][0] + REPORTING):
            return
        done = sum(self._states[each] for each in _ENDED)
        self._history.append((now, done))
        while len(self._history) > 2 and self._history[1][0] < now - RATE_SECONDS:
            self._history.popleft()
        begin, before = self._history[0]
        rate = (done - before) / max(now - begin, 1e-9)
        left = (self._total - done) / rate if self._total is not None and rate > 0 else None
        self._report(done, self._total, rate, left, {reason: len(cells) for reason, cells in self._failures.items()})
