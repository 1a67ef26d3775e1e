"""A folder of small files, on this machine or behind any URL that fsspec knows; each is written whole or not at all."""

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from holdfast.core.addresses import file_system, is_address, reaching
from holdfast.core.owner import temporary_name


def files_at(path: str | Path) -> "LocalFiles | RemoteFiles":
    """The files of a folder that is given by a path or a URL such as "s3://bucket/runs/cells".

    Args:
        path: of the folder, which is made when something is written.

    Example:
        >>> import tempfile
        >>> files = files_at(tempfile.mkdtemp())
        >>> files.write("0a/0a1b", b"1234")
        >>> files.read("0a/0a1b"), files.read("0a/0a1c"), list(files.walk())
        (b'1234', None, ['0a/0a1b'])
        >>> files_at("memory://results").read("0a/0a1b") is None
        True
    """
    text = os.fspath(path)
    if not is_address(text) or text.startswith("file://"):
        return LocalFiles(os.path.abspath(text.removeprefix("file://")))
    return RemoteFiles(text.rstrip("/"))


@dataclass(frozen=True)
class LocalFiles:
    """Files in a folder of this machine, or of a file system that is mounted."""

    root: str

    def __str__(self) -> str:
        return self.root

    def read(self, name: str) -> bytes | None:
        """The content of a file, or None."""
        try:
            with open(f"{self.root}/{name}", "rb", buffering=0) as file:
                return file.readall()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write(self, name: str, content: bytes) -> None:
        """Write to a temporary name and rename."""
        path, unfinished = f"{self.root}/{name}", self._temporary_path(name)
        try:
            _write(unfinished, content)
            os.replace(unfinished, path)
        except OSError as error:
            _delete(unfinished)
            # the file that people know, which an error while writing does not name
            raise OSError(error.errno, os.strerror(error.errno or 0), path) from error

    def walk(self) -> Iterator[str]:
        """The names of all files in the folder and in its folders; none if it does not exist."""
        for folder, _, names in os.walk(self.root):
            yield from (f"{folder}/{name}"[len(self.root) + 1 :] for name in names)

    def delete(self, name: str) -> None:
        """Delete a file, if it exists."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{self.root}/{name}")

    def create(self, name: str, content: bytes) -> bool:
        """Write a file unless it exists, and say whether it was written; of several processes, one succeeds."""
        path = f"{self.root}/{name}"
        try:
            _write(path, content, "xb")
        except FileExistsError:
            return False
        return True

    def touch(self, name: str) -> None:
        """Set the time of a file to now, by the clock of the file system."""
        os.utime(f"{self.root}/{name}")

    def age(self, name: str, *, look_only: bool = False) -> float | None:
        """Seconds since a file was written or touched, by the clock of the file system; None without the file.

        Machines that share a folder need not agree about the time, but the folder has one clock. To read it, a file is
        written for a moment; with `look_only` it is the clock of this machine.
        """
        try:
            changed = os.stat(f"{self.root}/{name}").st_mtime
        except FileNotFoundError:
            return None
        if look_only:
            return time.time() - changed
        now = self._temporary_path(name)
        try:
            _write(now, b"")
            return os.stat(now).st_mtime - changed
        except OSError:  # the folder is read-only for us, and the clock of this machine will do
            return time.time() - changed
        finally:
            _delete(now)

    def _temporary_path(self, name: str) -> str:
        """Beside a file; one for each thread of a process, so that a process that is killed leaves few."""
        return f"{self.root}/{os.path.dirname(name)}/{temporary_name(threading.get_ident())}"


@dataclass(frozen=True)
class RemoteFiles:
    """Files behind a URL, by fsspec. Object stores write an object whole or not at all by themselves."""

    url: str

    def __str__(self) -> str:
        return self.url

    def read(self, name: str) -> bytes | None:
        """The content of a file, or None."""
        with self._reached() as (system, root):
            try:
                return system.cat_file(f"{root}/{name}")
            except FileNotFoundError:
                return None

    def write(self, name: str, content: bytes) -> None:
        """Write an object in one request."""
        with self._reached() as (system, root):
            system.pipe_file(f"{root}/{name}", content)

    def walk(self) -> Iterator[str]:
        """The names of all files in the folder and in its folders; none if it does not exist."""
        with self._reached() as (system, root):
            paths = system.find(root)
        for path in paths:
            yield path.removeprefix("/").removeprefix(root.removeprefix("/"))[1:]

    def delete(self, name: str) -> None:
        """Delete a file, if it exists."""
        with self._reached() as (system, root), contextlib.suppress(FileNotFoundError):
            system.rm_file(f"{root}/{name}")

    @contextlib.contextmanager
    def _reached(self) -> Iterator[tuple[Any, str]]:
        """The file system and the path of the folder; what a server refuses is an OSError, like that of a disk."""
        found = _file_system(self.url)
        with reaching(self.url, OSError):
            yield found


@cache
def _file_system(url: str) -> tuple[Any, str]:
    system, root = file_system(url, fresh=True)
    return system, root.rstrip("/")


def _write(path: str, content: bytes, mode: str = "wb") -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    try:
        with open(path, mode) as file:
            file.write(content)
    except FileExistsError:
        raise
    except OSError:
        _delete(path)
        raise


def _delete(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


Files = LocalFiles | RemoteFiles
"""What a store needs of a folder. Names are relative, with forward slashes. Picklable."""
