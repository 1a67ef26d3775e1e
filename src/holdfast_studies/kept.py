"""Results that are kept in a folder: any engine computes what is missing, and the next call finds it."""

from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from typing import TypeVar

from holdfast.core.fingerprint import fingerprint
from holdfast.sweeps.engines.base import Engine
from holdfast.sweeps.store.naming import Cell, CodeVersion, Key
from holdfast.sweeps.store.store import LOST, Store
from holdfast.sweeps.store.work import CellBatches, Report, compute_each

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
            ended = compute_each(
                where, list(cells.values()), work, engine, report, code=shared, total=len(cells), batches=batches
            )
            with closing(ended):
                for name, reason in ended:
                    value = where.load(cells[name].name) if reason is None else None
                    if value is not None and where is store:
                        store.replace_others(cells[name].name)
                    yield name, value, reason or LOST
