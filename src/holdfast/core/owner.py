"""Which process a lease or a temporary file belongs to, and whether that process is gone."""

import os
import platform
import zlib
from functools import cache
from pathlib import Path

# Of the names of temporary files and folders. The owner and a number follow.
_TEMPORARY = ".temporary-"


def owner() -> str:
    """This process: a number of its machine, and its own on that machine.

    Example:
        >>> is_gone(owner())
        False
    """
    return f"{_machine():08x}-{os.getpid()}"


def is_gone(owner: str) -> bool:
    """Whether a process has ended, as far as can be known: of other machines nothing is.

    A number that a new process has got in the meantime looks like the old one; then only time tells.

    Example:
        >>> is_gone(f"{_machine():08x}-{2**22 + 1}")  # beyond the largest number of a process
        True
        >>> is_gone("another machine")
        False
    """
    machine, _, process = owner.partition("-")
    if machine != f"{_machine():08x}" or not process.isdecimal() or os.name != "posix":
        return False
    try:
        os.kill(int(process), 0)  # a question, not a signal
    except (ProcessLookupError, OverflowError):
        return True
    except PermissionError:
        return False
    return False


def temporary_name(number: int | str, suffix: str = "") -> str:
    """The name of a temporary file or folder of this process; others know by it whose it is.

    Example:
        >>> owner_of(temporary_name(3, ".csv")) == owner()
        True
    """
    return f"{_TEMPORARY}{owner()}-{number}{suffix}"


def owner_of(name: str) -> str | None:
    """The process whose temporary file or folder has this name; None for all other names.

    Example:
        >>> owner_of(".temporary-0a1b2c3d-77-0.csv"), owner_of("numbers.csv")
        ('0a1b2c3d-77', None)
    """
    return "-".join(name.split("-")[1:3]) if name.startswith(_TEMPORARY) else None


@cache
def _machine() -> int:
    """A number for everything that sees the same processes: containers on one machine do not."""
    parts = [platform.node()]
    for path in ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"):
        try:
            parts.append(os.readlink(path) if "/ns/" in path else Path(path).read_text())
        except OSError:
            parts.append("")  # not Linux
    return zlib.crc32("\n".join(parts).encode())
