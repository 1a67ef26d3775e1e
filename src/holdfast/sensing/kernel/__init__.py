"""Machine code for CPUs, compiled by numba, that XLA calls within its own programs.

Only what XLA's compiler does badly is here: products of small matrices together with what is computed between them.
Modules of this package import numba; `available` says whether that makes sense.
"""

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
    if jax.default_backend() != "cpu":
        return False
    try:
        from numba.core import config

        from holdfast.sensing.kernel import calls, vectors
    except ImportError:  # numba is missing, or does not fit the numpy that is installed
        return False
    return not config.DISABLE_JIT and vectors.MULTIPLY_ADD and calls.answered()
