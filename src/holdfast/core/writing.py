"""Files that are written whole or not at all: under a temporary name in the same folder, then renamed."""

import contextlib
import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from holdfast.core.owner import is_gone, owner_of, temporary_name
from holdfast.core.validation import require

STANDARD_STREAM = Path("-")
"""Stands for standard input or output on the command line."""

# Seconds after which a temporary file is removed although its process, on another machine, may not be gone.
_FORGOTTEN = 7 * 24 * 3600.0


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path to write to, which takes the place of `path` when the block ends without an error.

    A full disk, an error or a kill leaves the old file or none, never half of one. The path may be that of a file or of
    a folder; the temporary one has the same suffix. Devices and pipes cannot be replaced and are written to directly.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "numbers.txt"
        >>> with replacing(path) as unfinished:
        ...     _ = unfinished.write_text("1 2 3")
        ...     path.exists()
        False
        >>> path.read_text()
        '1 2 3'
    """
    if _is_device(Path(path)):
        yield Path(path)
        return
    path = Path(path).resolve()  # a link stays, what it points to is replaced
    with temporary_path(path.parent, path.suffix) as unfinished:
        yield unfinished
        if unfinished.is_file():
            if path.is_file():
                shutil.copymode(path, unfinished)
            with unfinished.open("rb+") as file:
                os.fsync(file.fileno())
        _rename(unfinished, path)


@contextlib.contextmanager
def temporary_path(folder: Path, suffix: str = "") -> Iterator[Path]:
    """A path in a folder for a file or folder that is deleted when the block ends, unless it was renamed by then.

    It is named after its process: what a killed one left is removed by the next that needs a path in the same folder.

    Example:
        >>> import tempfile
        >>> with temporary_path(Path(tempfile.mkdtemp())) as path:
        ...     _ = path.write_text("1 2 3")
        >>> path.exists()
        False
    """
    _remove_abandoned(folder)
    path = folder / temporary_name(secrets.token_hex(6), suffix)
    try:
        yield path
    finally:
        delete(path)


def delete(path: Path) -> None:
    """Delete a file or a folder with all that is in it, as far as possible."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "report.md"
        >>> write_text(path, "All is well.")
        >>> path.read_text()
        'All is well.'
    """
    with replacing(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")


def check_output(path: Path, suffixes: Sequence[str], *, overwrite: bool = False, argument: str = "out") -> None:
    """Raise an error for a path that could not be written to, before the work is done.

    Args:
        path: where something will be written; "-", devices and pipes are always allowed.
        suffixes: what its name may end in, in any case.
        overwrite: whether a file that exists may be replaced. A folder is replaced only if it is a zarr store.
        argument: that holds the path, for the error.

    Example:
        >>> check_output(Path("model.xml"), [".json"])
        Traceback (most recent call last):
        ValueError: out must end in .json, got 'model.xml'
    """
    quoted = repr(str(path))
    if path == STANDARD_STREAM or _is_device(path):
        return
    named = path.name.lower().endswith(tuple(suffixes))
    require(named, f"{argument} must end in {' or '.join(suffixes)}", quoted)
    require(path.parent.is_dir(), f"{argument} must lie in a folder that exists", quoted)
    if path.exists():
        replaceable = (path / "zarr.json").is_file() if path.suffix.lower() == ".zarr" else path.is_file()
        require(replaceable, f"{argument} must not exist yet (choose another name)", quoted)
        require(overwrite, f"{argument} must not exist yet (overwrite=True or --overwrite replaces it)", quoted)
    require(os.access(path.parent, os.W_OK), f"{argument} must lie in a folder that can be written to", quoted)


def check_output_folder(path: Path, *, argument: str = "out") -> None:
    """Raise an error for a folder that could neither be used nor made, before the work is done.

    Example:
        >>> import tempfile
        >>> check_output_folder(Path(tempfile.mkdtemp()) / "figures")
    """
    require(path.is_dir() or not path.exists(), f"{argument} must be a folder", f"the file {str(path)!r}")
    existing = next(parent for parent in (path, *path.absolute().parents) if parent.exists())
    try:  # permissions alone say too little: an administrator has all of them, in folders that take no files too
        with temporary_path(existing) as probe:
            probe.mkdir()
    except OSError as error:
        what = "be" if existing == path else "lie in"
        raise ValueError(f"{argument} must {what} a folder that can be written to, got {str(path)!r}") from error


def checked_folder(out: Path) -> Path:
    """A folder for results, made if it does not exist."""
    check_output_folder(out)
    out.mkdir(parents=True, exist_ok=True)
    return out


def _is_device(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _rename(unfinished: Path, path: Path) -> None:
    if not path.is_dir():
        os.replace(unfinished, path)
        return
    # A folder cannot be replaced in one step: for a moment neither is at its path.
    old = path.with_name(f".old-{secrets.token_hex(6)}{path.suffix}")
    os.rename(path, old)
    os.rename(unfinished, path)
    os.rename(old, unfinished)  # which is deleted, by others if we are killed


def _remove_abandoned(folder: Path) -> None:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            process = owner_of(entry.name)
            if process is not None and (is_gone(process) or time.time() - entry.stat().st_mtime > _FORGOTTEN):
                delete(Path(entry))
