"""Leases: files that say which process computes a cell, renewed while it lives and free for others when they expire."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache

from holdfast.core.owner import is_gone, owner
from holdfast.sweeps.store.files import Files, LocalFiles

LEASE_SUFFIX = ".lease"
"""Of the file next to a cell that says who computes it."""

EXPIRES = 60.0
"""Seconds after its last renewal at which a lease is free for others."""

# Renewals before a lease expires: a process may miss two, e.g. while a compiler holds the interpreter's lock.
_RENEWALS = 4
# Seconds between two attempts of a process that waits for a lease.
_WAIT = 0.2


class Lease(Enum):
    """What a process learns when it asks to compute a cell.

    Attributes:
        TAKEN: the cell is ours until the lease is released.
        BUSY: another process computes it; it is worth asking again later.
        FINISHED: another process saved it in the meantime.

    Example:
        >>> Lease.TAKEN is Lease.BUSY
        False
    """

    TAKEN = "taken"
    BUSY = "busy"
    FINISHED = "finished"


@dataclass(frozen=True)
class Leases:
    """Leases in a folder; picklable.

    A lease is a file that only one process can create, and that a thread in the background touches. A process that is
    killed stops doing so. On the same machine others notice at once that it is gone, on other machines when the lease
    expires, by the clock of the file system. A process that takes over has to create a claim first, and then looks at
    the lease again, so of many that find it free one gets it. A process that was suspended until its lease expired may
    go on: then two compute the cell, which costs time, and save the same bytes. Object stores have no way to create a
    file exclusively: every process gets the lease.

    Attributes:
        files: the folder.

    Example:
        >>> import tempfile
        >>> from holdfast.sweeps.store.files import files_at
        >>> leases = Leases(files_at(tempfile.mkdtemp()))
        >>> with leases.take("first.lease") as ours, leases.take("first.lease") as theirs:
        ...     ours, theirs
        (<Lease.TAKEN: 'taken'>, <Lease.BUSY: 'busy'>)
        >>> with leases.take("first.lease") as again:
        ...     again
        <Lease.TAKEN: 'taken'>
    """

    files: Files

    @contextlib.contextmanager
    def take(self, name: str, is_finished: Callable[[], bool] = lambda: False) -> Iterator[Lease]:
        """Ask for a lease. Once we hold it, nobody else can finish the work, so `is_finished` is checked then."""
        files = self.files
        if not isinstance(files, LocalFiles):
            yield Lease.FINISHED if is_finished() else Lease.TAKEN
            return
        ours = owner().encode()
        if not (files.create(name, ours) or self._take_over(files, name, ours)):
            yield Lease.BUSY
            return
        _HELD.add((files, name))
        _start_renewing()
        try:
            yield Lease.FINISHED if is_finished() else Lease.TAKEN
        finally:
            _HELD.discard((files, name))
            if files.read(name) == ours:  # it may have expired, and be someone else's now
                files.delete(name)

    @contextlib.contextmanager
    def wait(self, name: str) -> Iterator[None]:
        """Wait until nobody else has a lease, and take it."""
        while True:
            with self.take(name) as lease:
                if lease is not Lease.BUSY:
                    yield
                    return
            time.sleep(_WAIT)

    def is_free(self, name: str, *, look_only: bool = False) -> bool:
        """Whether a lease expired or its process is gone, or nobody ever took it.

        Args:
            name: of the lease.
            look_only: write nothing, and use the clock of this machine instead of that of the file system. Clocks may
                differ by minutes, so this is for people, and never a reason to delete something.
        """
        files = self.files
        content = files.read(name) if isinstance(files, LocalFiles) else None
        if not isinstance(files, LocalFiles) or content is None or is_gone(content.decode(errors="replace")):
            return True
        age = files.age(name, look_only=look_only)
        return age is None or age > EXPIRES

    def _take_over(self, files: LocalFiles, name: str, ours: bytes) -> bool:
        """Take over a lease that is free; of several processes that find it free at once, one gets the claim."""
        if not self.is_free(name):
            return False
        claim = name + LEASE_SUFFIX
        if not files.create(claim, ours):
            if self.is_free(claim):  # its process was killed; the next request finds no claim
                files.delete(claim)
            return False
        try:
            if files.read(name) is None:  # released in the meantime
                return files.create(name, ours)
            if not self.is_free(name):  # another process was faster
                return False
            files.write(name, ours)
            return True
        finally:
            files.delete(claim)


_HELD: set[tuple[LocalFiles, str]] = set()


@cache
def _start_renewing() -> None:
    threading.Thread(target=_renew, name="leases", daemon=True).start()


def _renew() -> None:
    """Renew all leases of this process."""
    while True:
        time.sleep(EXPIRES / _RENEWALS)
        for files, name in list(_HELD):
            with contextlib.suppress(OSError):  # it expired and is gone, or the folder cannot be written to
                files.touch(name)
