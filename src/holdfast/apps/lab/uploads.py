"""Uploaded files: in memory, each for the tab that sent it, and gone when the tab is."""

import contextlib
import re
import secrets
import time
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

# Bytes of one file, and of all files of all tabs; then the oldest ones go.
LARGEST_FILE, LARGEST_TOTAL = 32 * 2**20, 256 * 2**20
# Uploads that arrive at once: together they are no more than what may stay.
AT_ONCE = LARGEST_TOTAL // LARGEST_FILE
# Seconds after its last use at which a file is dropped.
IDLE = 30 * 60.0
# The ending tells readers of tables what is inside. Compressed text is left out: a small file can be a huge table.
ENDINGS = (".csv", ".tsv", ".parquet")
# Characters of the number of an upload, which is drawn at random.
LONGEST_NUMBER = 32
# Characters of the name of a file that are used; others could be read as a pattern or as part of an address.
LONGEST_NAME, UNUSUAL = 60, re.compile(r"[^\w .+-]")


class Upload(NamedTuple):
    """An uploaded file.

    Attributes:
        name: what it is called in messages and in code: its original name, made harmless.
        content: its bytes.

    Example:
        >>> Upload("plants.csv", b"light").ending
        '.csv'
    """

    name: str
    content: bytes

    @property
    def ending(self) -> str:
        """One of `ENDINGS`."""
        return PurePosixPath(self.name).suffix

    @contextlib.contextmanager
    def address(self) -> Iterator[str]:
        r"""An address under which `holdfast.tables.open_table` finds the file in memory, for as long as the block runs.

        Each block has a copy of its own: fsspec's files in memory are not made for two readers at once.

        Example:
            >>> from holdfast.tables import open_table
            >>> with Upload("plants.csv", b"light;soil\n1;clay\n").address() as address:
            ...     open_table(address).columns
            ['light', 'soil']
        """
        import fsspec  # type: ignore[import-untyped]

        system, folder = fsspec.filesystem("memory"), f"/holdfast-lab-{secrets.token_hex(16)}"
        system.pipe_file(f"{folder}/{self.name}", self.content)
        try:
            yield f"memory:/{folder}/{self.name}"
        finally:
            system.rm(folder, recursive=True)


class _Owned(NamedTuple):
    number: str
    upload: Upload
    used: float


class Uploads:
    """The uploads of a server: one for each tab, none of them ever on a disk.

    Args:
        largest_file: bytes of one file.
        largest_total: bytes of all files; then the ones that were not used for longest go.
        idle: seconds without use after which a file goes.
    """

    def __init__(
        self, largest_file: int = LARGEST_FILE, largest_total: int = LARGEST_TOTAL, idle: float = IDLE
    ) -> None:
        self._files: dict[str, _Owned] = {}  # by tab; the one that was used last is the last
        self.largest_file, self._largest_total, self._idle = largest_file, largest_total, idle

    def add(self, tab: str, name: str, content: bytes) -> str:
        """Take a file, which replaces the one that this tab has sent before.

        Args:
            tab: whose file it is.
            name: on the computer of the person.
            content: the file.

        Returns:
            The number under which this tab finds it.
        """
        if PurePosixPath(name.lower()).suffix not in ENDINGS:
            raise ValueError(f"the file must end in one of {', '.join(ENDINGS)}, got {name[-LONGEST_NAME:]!r}")
        if not content:
            raise ValueError(f"the file must not be empty, got {name[-LONGEST_NAME:]!r}")
        number = secrets.token_hex(LONGEST_NUMBER // 2)
        self._use(tab, number, Upload(harmless(name), content))
        self.forget()
        return number

    def find(self, tab: str, number: str) -> Upload:
        """The file that a tab uploaded under a number; a ValueError if there is none."""
        self.forget()
        owned = self._files.get(tab)
        if owned is None or owned.number != number:
            raise ValueError("the upload must be one of this tab that is still there: please upload the file again")
        self._use(tab, number, owned.upload)
        return owned.upload

    def _use(self, tab: str, number: str, upload: Upload) -> None:
        self.drop(tab)
        self._files[tab] = _Owned(number, upload, time.monotonic())

    def drop(self, tab: str) -> None:
        """Forget what a tab has sent; it does so when it is closed."""
        self._files.pop(tab, None)

    def forget(self) -> None:
        """Drop what was not used for long, and what is too much."""
        oldest, files = time.monotonic() - self._idle, list(self._files.items())
        total = sum(len(owned.upload.content) for _, owned in files)
        for tab, owned in files:
            if owned.used < oldest or total > self._largest_total:
                total -= len(owned.upload.content)
                self.drop(tab)


def harmless(name: str) -> str:
    r"""The name of a file without folders and without signs that mean something in addresses, patterns or code.

    Example:
        >>> harmless("../my*plants?.CSV"), harmless("C:\\data\\läb [1].parquet")
        ('my_plants_.csv', 'läb _1_.parquet')
    """
    path = PurePosixPath(name.replace("\\", "/"))
    stem = UNUSUAL.sub("_", path.stem).strip(" .-")[:LONGEST_NAME] or "table"
    return f"{stem}{path.suffix.lower()}"
