"""Versions of installed packages, which are a part of what decides a result."""

from functools import cache
from importlib.metadata import PackageNotFoundError, version

COMPUTING = ("jax", "jaxlib", "numba", "numpy")
"""Packages that decide the last bits of a simulation."""


@cache  # reading the metadata of a package takes longer than reading a small result
def installed_version(package: str) -> str:
    """The version of a package, or "none" where it is not installed.

    Example:
        >>> installed_version("numpy")[0].isdigit(), installed_version("a package that nobody wrote")
        (True, 'none')
    """
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"
