"""Addresses such as s3://bucket/plants.parquet, and the file systems of fsspec behind them."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.core.validation import one_line


def is_address(word: str | Path) -> bool:
    """Whether this is an address of fsspec and not a path.

    Example:
        >>> is_address("s3://bucket/plants.csv"), is_address("plants.csv")
        (True, False)
    """
    return isinstance(word, str) and "://" in word


def file_system(address: str, *, fresh: bool = False) -> tuple[Any, str]:
    """The file system of an address, and the path in it.

    Args:
        address: such as s3://bucket/plants.parquet.
        fresh: list folders anew each time, because other processes write to them.

    Raises:
        ValueError: if fsspec, or what it needs for the protocol, is not installed, or the protocol is unknown.

    Example:
        >>> system, path = file_system("memory://plants/light.csv")
        >>> system.exists(path), path
        (False, '/plants/light.csv')
    """
    try:
        import fsspec  # type: ignore[import-untyped]

        return fsspec.core.url_to_fs(address, **({"use_listings_cache": False} if fresh else {}))
    except ImportError as error:  # fsspec itself, or the package for this protocol
        raise ValueError(
            f"{address!r} needs a package that is not installed ({error}): pip install 'holdfast[cluster]' has fsspec "
            "and s3fs, which is for s3://"
        ) from error
    except ValueError as error:
        raise ValueError(f"addresses must have a protocol that fsspec knows, got {address!r} ({error})") from error


@contextlib.contextmanager
def reaching(address: str, kind: type[Exception] = ValueError) -> Iterator[None]:
    """Whatever a server says about an address that cannot be used, as one error of one sentence.

    Args:
        address: which the block reads or writes.
        kind: of the error.

    Example:
        >>> with reaching("s3://bucket/plants.csv"):
        ...     raise PermissionError("Access Denied")
        Traceback (most recent call last):
        ValueError: 's3://bucket/plants.csv' cannot be reached: Access Denied
    """
    try:
        yield
    except Exception as error:
        raise kind(f"{address!r} cannot be reached: {one_line(error)}") from error
