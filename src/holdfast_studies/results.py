"""Data sets of experiments, computed by any engine or found in the store."""

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import xarray as xr

from holdfast.core.fingerprint import fingerprint
from holdfast.core.progress import Progress
from holdfast.core.worker import StoppedError, current_worker, working
from holdfast.sweeps.engines.base import Engine
from holdfast.sweeps.engines.threads import ThreadEngine
from holdfast.sweeps.store.codecs import DATASETS
from holdfast.sweeps.store.naming import Cell, CodeVersion, Key
from holdfast.sweeps.store.store import FOLDER, LOST, Store
from holdfast.sweeps.store.work import compute_each

# Experiments that are computed at the same time by default. While one is traced or compiles, on one core, the others
# compute; with two, both do so at times, and a core has nothing to do.
AT_ONCE = 3
Bars = Callable[[str], AbstractContextManager[Progress]]
"""Name of an experiment -> its progress bar, while it is computed."""


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
    bars: Callable[[], AbstractContextManager[Bars]] = lambda: nullcontext(_no_bar),
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
    warnings = {name: warning for name, key in keys.items() if (warning := _why_not_saved(key))}
    files = {name: name.encode().hex() if name in warnings else key.file for name, key in keys.items()}
    lasting = [Cell(files[name], name) for name in keys if name not in warnings]
    passing = [Cell(files[name], name) for name in warnings]
    there = store.finished()
    missing = list(store.missing(lasting))
    computed = {cell.label for cell in (*missing, *passing)}
    with store.scratch() as temporary, bars() as bar:
        work = SimulationWork(simulations, engine is None, bar)
        chosen = engine or ThreadEngine(AT_ONCE)

        def found(name: str, reason: str | None = None) -> DataSource:
            if reason is not None:
                return DataSource(work.errors.get(name) or RemoteError(reason))
            data = (temporary if name in warnings else store).load(files[name])
            if data is None:
                return DataSource(RemoteError(LOST))
            if name not in warnings and name in computed:
                store.replace_others(files[name])
            before = f"{store.folder}/{store.path(files[name])}" if files[name] in there else None
            return DataSource(data, _notes(work.seconds.get(name), before, name in computed), warnings.get(name))

        left = dict.fromkeys(keys)
        modules = sorted({module for cell in missing for module in keys[cell.label].modules})
        packages = sorted({package for cell in missing for package in keys[cell.label].packages})
        code = CodeVersion(tuple(modules), ("python", *packages)) if modules else None
        for where, cells, shared in ((store, missing, code), (temporary, passing, None)):
            if cells:
                with closing(_computed(where, cells, work, chosen, shared)) as ended:
                    for name, reason in ended:
                        del left[name]
                        yield name, found(name, reason)
        for name in left:
            yield name, found(name)


def _computed(
    store: Store[xr.Dataset], cells: list[Cell], work: SimulationWork, engine: Engine, code: CodeVersion | None
) -> Generator[tuple[str, str | None], None, None]:
    """Compute cells; yields the names of those that have ended, with the reasons of those that failed."""
    with work.bars("experiments") as show:
        report = lambda done, total, *_: show(done, total)  # noqa: E731
        with closing(compute_each(store, cells, work, engine, report, code=code, total=len(cells))) as ended:
            yield from ended


def _why_not_saved(key: Key) -> str | None:
    """Why the next call must not find a result: nobody can say which code decides it."""
    try:
        # Here and not in threads: Python 3.11 may fail to parse source while another thread does.
        fingerprint(key.modules)
    except ValueError as error:
        return f"not saved for the next call: {error}"
    return None


def _notes(seconds: float | None, before: str | None, was_missing: bool) -> tuple[str, ...]:
    if not was_missing:
        return (f"reused {before}",)
    again = () if before is None else (f"computed again: {before} is damaged",)
    return (*again, "computed by another process" if seconds is None else f"computed in {seconds:.1f} s")
