"""Who works in the folder of a grid, and what killed processes left there."""

import contextlib
import threading
from collections.abc import Iterator

from holdfast.execution.files import UNFINISHED, Files, LocalFiles
from holdfast.execution.header import CHECKSUMS
from holdfast.execution.leases import Leases
from holdfast.execution.owner import is_gone, owner
from holdfast.execution.zarr_format import chunk_position

WHOLE = f"{CHECKSUMS}/grid.lease"
"""The lease on the metadata of the whole grid."""

LEASE, FAILURE = ".lease", ".failure"
"""Endings of the notes next to the checksum of a cell: who computes it, and why it could not be computed."""


@contextlib.contextmanager
def occupied(leases: Leases) -> Iterator[None]:
    """Say in the folder that a command works there, also while it computes no cell.

    Example:
        >>> import tempfile
        >>> from holdfast.execution.files import files_at
        >>> leases = Leases(files_at(tempfile.mkdtemp()))
        >>> with occupied(leases):
        ...     is_occupied(leases)
        True
        >>> is_occupied(leases)
        False
    """
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):  # a folder that is read-only is not replaced either
            held.enter_context(leases.take(f"{CHECKSUMS}/{owner()}-{threading.get_ident()}{LEASE}"))
        yield


def is_occupied(leases: Leases, *, look_only: bool = False) -> bool:
    """Whether a command works in the folder; object stores do not say. `look_only` is that of `Leases.is_free`."""
    names = (f"{CHECKSUMS}/{name}" for name in leases.files.names(CHECKSUMS) if name.endswith(LEASE))
    return any(not leases.is_free(name, look_only=look_only) for name in names if name != WHOLE)


def remove_abandoned(files: Files, leases: Leases) -> None:
    """Delete what killed processes left behind: half-written files, and leases that nobody renews."""
    if not isinstance(files, LocalFiles):
        return
    names = set(files.names(CHECKSUMS))
    for name in names:
        path, cell = f"{CHECKSUMS}/{name}", name.rpartition(".")[0]
        _, mark, process = name.partition(UNFINISHED)
        if mark:
            abandoned = is_gone(process.rpartition("-")[0]) or (files.age(path) or 0) > leases.expires
        elif name.endswith(LEASE) and not chunk_position(cell):  # of a command
            abandoned = path != WHOLE and leases.is_free(path)
        else:
            abandoned = name.endswith((LEASE, FAILURE)) and cell in names and leases.is_free(path)
        if abandoned:
            files.delete(path)
