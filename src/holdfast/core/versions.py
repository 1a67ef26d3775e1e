"""Versions of installed packages, which are a part of what decides a result."""

from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

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


def for_comparisons(module: str, purpose: str) -> Any:
    """A module of a package that only comparisons need; a ValueError says how to install it.

    Example:
        >>> for_comparisons("no_such_package.module", "a test of anchors")
        Traceback (most recent call last):
        ValueError: a test of anchors needs the package no_such_package: pip install 'holdfast[compare]'
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        raise ValueError(f"{purpose} needs the package {package}: pip install 'holdfast[compare]'") from error
