"""Machine code for CPUs, compiled by numba, that XLA calls within its own programs.

Only what XLA's compiler does badly is here: products of small matrices together with what is computed between them.
Modules of this package import numba; `available` says whether that makes sense.
"""

import importlib.util
from functools import cache

import jax

__all__ = ["available"]


@cache
def available() -> bool:
    """Whether this process computes on a CPU for which numba can compile, and XLA calls what it compiles.

    Example:
        >>> available() in (True, False)
        True
    """
    if jax.default_backend() != "cpu" or importlib.util.find_spec("numba") is None:
        return False
    from holdfast.core.native import calls, vectors

    return vectors.MULTIPLY_ADD and calls.answered()
