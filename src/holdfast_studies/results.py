"""Results that are kept in a folder: any engine computes what is missing, and the next call finds it."""

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import xarray as xr

from holdfast.core.fingerprint import fingerprint
from holdfast.core.progress import Progress
from holdfast.core.worker import StoppedError, current_worker, working
from holdfast.sweeps.engines.local import Engine, ThreadEngine
from holdfast.sweeps.store.naming import Cell, CodeVersion, Key
from holdfast.sweeps.store.packing import DATASETS
from holdfast.sweeps.store.store import FOLDER, LOST, Store
from holdfast.sweeps.store.work import CellBatches, CellWork, Report, compute_each

# Experiments that are computed at the same time by default. While one is traced or compiles, on one core, the others
# compute; with two, both do so at times, and a core has nothing to do.
AT_ONCE = 3
Bars = Callable[[str], AbstractContextManager[Progress]]
"""Name of an experiment -> its progress bar, while it is computed."""
Value = TypeVar("Value")


def why_not_kept(key: Key) -> str | None:
    """Why the next call must not find a result: nobody can say which code decides it."""
    try:
        # Here and not in threads: Python 3.11 may fail to parse source while another thread does.
        fingerprint(key.modules or ("",))
    except ValueError as error:
        return f"not saved for the next call: {error}"
    return None


def computed(
    store: Store[Value],
    keys: Mapping[str, Key],
    work: Callable[[str], Value],
    engine: Engine,
    report: Report | None = None,
    batches: CellBatches[Value] | None = None,
) -> Generator[tuple[str, Value | None, str], None, None]:
    """Compute missing results; yields the name of each as soon as it has ended, its value, or why there is none.

    What other code had computed for the same settings is replaced.

    Args:
        store: where they are kept, but for those that the next call must not find.
        keys: of the missing results, by name.
        work: name -> result; picklable, where workers are other processes.
        engine: where they are computed.
        report: called periodically.
        batches: which of them are computed in one call, if any.
    """
    passing = {name: Cell(name.encode().hex(), name) for name, key in keys.items() if why_not_kept(key)}
    lasting = {name: Cell(key.file, name) for name, key in keys.items() if name not in passing}
    modules = sorted({module for name in lasting for module in keys[name].modules})
    packages = sorted({package for name in lasting for package in keys[name].packages})
    code = CodeVersion(tuple(modules), ("python", *packages)) if lasting else None
    with store.scratch() as scratch:
        for where, cells, shared in ((store, lasting, code), (scratch, passing, None)):
            if not cells:
                continue
            doing = CellWork(where, work, batches, shared)
            ended = compute_each(doing, list(cells.values()), engine, report, len(cells))
            with closing(ended):
                for name, reason in ended:
                    value = where.load(cells[name].name) if reason is None else None
                    if value is not None and where is store:
                        store.replace_others(cells[name].name)
                    yield name, value, reason or LOST


def no_bars() -> AbstractContextManager[Bars]:
    """What reports nothing."""
    return nullcontext(_no_bar)


def _no_bar(name: str) -> AbstractContextManager[Progress]:
    return nullcontext(lambda done, total: None)


class RemoteError(Exception):
    """An experiment failed in another process, from which only a sentence came back."""


@dataclass(frozen=True)
class DataSource:
    """Where the data set of an experiment comes from.

    Attributes:
        data: the data set, or why there is none.
        notes: lines that say where it comes from.
        warning: what went wrong although there is one.
    """

    data: xr.Dataset | Exception
    notes: tuple[str, ...] = ()
    warning: str | None = None


@dataclass(frozen=True)
class SimulationWork:
    """What a worker computes for an experiment. Picklable: bars, times and errors stay in the process that made it.

    Attributes:
        simulations: name of an experiment -> a function of its progress.
        all_cores: whether an experiment may use all cores, or as many threads as its worker has.
        bars: of the experiments that are computed in this process.
        seconds: that those took.
        errors: with which those failed.
    """

    simulations: Mapping[str, Callable[[Progress], xr.Dataset]]
    all_cores: bool
    bars: Bars = _no_bar
    seconds: dict[str, float] = field(default_factory=dict)
    errors: dict[str, Exception] = field(default_factory=dict)

    def __call__(self, name: str) -> xr.Dataset:
        """The data set of an experiment."""
        worker, begin = current_worker(), time.monotonic()

        def progress(done: int, total: int) -> None:
            if worker.stopped():
                raise StoppedError
            show(done, total)

        try:
            with working(None if self.all_cores else worker.threads, worker.stopped), self.bars(name) as show:
                data = self.simulations[name](progress)
        except Exception as error:
            self.errors[name] = error
            raise
        self.seconds[name] = time.monotonic() - begin
        return data

    def __reduce__(self) -> tuple[Any, ...]:
        return SimulationWork, (self.simulations, self.all_cores)


def data_sets(
    simulations: Mapping[str, Callable[[Progress], xr.Dataset]],
    keys: Mapping[str, Key],
    out: Path,
    engine: Engine | None = None,
    bars: Callable[[], AbstractContextManager[Bars]] = no_bars,
) -> Generator[tuple[str, DataSource], None, None]:
    """The data sets of experiments: those that are not in the store, each as soon as it is computed, then the others.

    Args:
        simulations: by the name of the experiment; picklable, where workers are other processes.
        keys: of their data sets in the store.
        out: the folder that has the store; on a cluster, one that all workers see.
        engine: where they are computed; by default three threads, each of which may use all cores.
        bars: of the experiments that are computed in this process, and one for all of them.
    """
    store = Store((out / FOLDER).absolute(), DATASETS)  # workers have working directories of their own
    warnings = {name: warning for name, key in keys.items() if (warning := why_not_kept(key))}
    files = {name: key.file for name, key in keys.items() if name not in warnings}
    places = {name: f"{store.folder}/{store.path(file)}" for name, file in files.items()}
    there = store.finished()
    found = {name: data for name, file in files.items() if (data := store.load(file)) is not None}
    with bars() as bar, bar("experiments") as show:
        work = SimulationWork(simulations, engine is None, bar)
        wanted = {name: key for name, key in keys.items() if name not in found}
        report = lambda done, total, *_: show(done, total)  # noqa: E731
        results = computed(store, wanted, work, engine or ThreadEngine(AT_ONCE), report)
        with closing(results):
            for name, data, reason in results:
                if data is None:
                    yield name, DataSource(work.errors.get(name) or RemoteError(reason))
                    continue
                seconds = work.seconds.get(name)
                notes = ["computed by another process" if seconds is None else f"computed in {seconds:.1f} s"]
                if files.get(name) in there:
                    notes.insert(0, f"computed again: {places[name]} is damaged")
                yield name, DataSource(data, tuple(notes), warnings.get(name))
    for name, data in found.items():
        yield name, DataSource(data, (f"reused {places[name]}",))
