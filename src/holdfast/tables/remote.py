"""Files behind addresses such as s3://bucket/plants.parquet, by fsspec, with what tables need of a path."""

import glob
import posixpath
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

from holdfast.core.addresses import file_system, is_address, reaching
from holdfast.core.validation import require
from holdfast.core.writing import check_output, replacing

# A question mark in them begins a query, and they cannot be listed.
_WITHOUT_PATTERNS = ("http://", "https://")


class FileStatus(NamedTuple):
    """What is known about a file: its size in bytes, as `os.stat` names it."""

    st_size: int


@dataclass(frozen=True)
class RemoteFile:
    """A file behind an address, with the methods of a `Path` that reading a table takes; picklable.

    Attributes:
        address: such as s3://bucket/plants.parquet.

    Example:
        >>> file = RemoteFile("memory://plants/remote.csv")
        >>> file.name, file.exists()
        ('remote.csv', False)
    """

    address: str

    def __str__(self) -> str:
        return self.address

    @property
    def name(self) -> str:
        """The last part of the address."""
        return posixpath.basename(self.address.rstrip("/"))

    def exists(self) -> bool:
        """Whether there is anything at the address."""
        return self._ask("exists")

    def is_file(self) -> bool:
        """Whether there is a file at the address."""
        return self._ask("isfile")

    def open(self, mode: Literal["rb"]) -> BinaryIO:
        """The bytes of the file."""
        return self._ask("open", mode)

    def stat(self) -> FileStatus:
        """The size of the file; 0 if the server does not tell."""
        return FileStatus(int(self._ask("size") or 0))

    def _ask(self, question: str, *arguments: Any) -> Any:
        """What the file system says: the result of one of its methods."""
        system, path = file_system(self.address)
        with reaching(self.address):
            return getattr(system, question)(path, *arguments)

    def resolve(self) -> "RemoteFile":
        """The same: an address does not depend on a folder."""
        return self


DataFile = Path | RemoteFile


def data_file(word: str | Path) -> DataFile:
    """The file behind a path or an address.

    Example:
        >>> data_file("plants.csv"), data_file("memory://plants.csv")
        (PosixPath('plants.csv'), RemoteFile(address='memory://plants.csv'))
    """
    return RemoteFile(str(word)) if is_address(word) else Path(word)


def matching_files(pattern: str) -> list[DataFile]:
    """The files that a pattern such as data/*.csv or s3://bucket/*.parquet matches, in the order of their names.

    Example:
        >>> import fsspec
        >>> for name in ("b", "a"):
        ...     fsspec.filesystem("memory").pipe_file(f"/fields/{name}.csv", b"light")
        >>> [file.name for file in matching_files("memory://fields/*.csv")]
        ['a.csv', 'b.csv']
    """
    if not is_address(pattern):
        return [Path(path) for path in sorted(glob.glob(pattern, recursive=True)) if Path(path).is_file()]
    if pattern.startswith(_WITHOUT_PATTERNS):
        return [RemoteFile(pattern)]
    system, path = file_system(pattern)
    with reaching(pattern):
        found = sorted(name for name in system.glob(path) if system.isfile(name))
    return [RemoteFile(system.unstrip_protocol(name)) for name in found]


def check_output_file(file: DataFile, suffixes: Sequence[str], *, overwrite: bool = False) -> None:
    """Raise a ValueError for a path or an address that could not be written to, before the work is done.

    Example:
        >>> check_output_file(RemoteFile("memory://plants.xml"), [".csv"])
        Traceback (most recent call last):
        ValueError: out must end in .csv, got 'memory://plants.xml'
    """
    if isinstance(file, Path):
        check_output(file, suffixes, overwrite=overwrite)
        return
    named, address = file.address.lower().endswith(tuple(suffixes)), repr(file.address)
    require(named, f"out must end in {' or '.join(suffixes)}", address)
    free = overwrite or not file.exists()
    require(free, "out must not exist yet (overwrite=True or --overwrite replaces it)", address)


def writing(file: DataFile) -> AbstractContextManager[Path]:
    """A path to write to, whose content is at the path or address when the block ends without an error.

    Example:
        >>> with writing(RemoteFile("memory://predictions.csv")) as path:
        ...     _ = path.write_text("prediction")
        >>> RemoteFile("memory://predictions.csv").stat().st_size
        10
    """
    return replacing(file) if isinstance(file, Path) else _uploading(file.address)


@contextmanager
def _uploading(address: str) -> Iterator[Path]:
    """A temporary path to write to, whose file is sent to the address when the block ends without an error.

    Object stores take a file whole or not at all, so an error leaves the old file or none.
    """
    system, path = file_system(address)
    with tempfile.TemporaryDirectory(prefix="holdfast-") as folder:
        unfinished = Path(folder) / posixpath.basename(address)
        yield unfinished
        with reaching(address):
            system.put_file(str(unfinished), path)
