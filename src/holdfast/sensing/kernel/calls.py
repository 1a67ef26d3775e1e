"""Functions that XLA calls: handlers of its foreign function interface, written in numba.

A handler is given the address of a call frame, a structure of XLA's C interface (`xla/ffi/api/c_api.h`, version 0.3),
which leads to the buffers of arguments and results. Fields begin at multiples of 8 bytes.
"""

import hashlib
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numba import carray, cfunc, njit, types
from numba.extending import intrinsic

from holdfast.sensing.kernel.matrices import TARGET

# Version of the interface, as the two halves of a word: 0 in the lower one, 3 in the upper one.
_VERSION = np.int64(3) << 32
# Positions of 8-byte fields.
_EXTENSION, _ARGUMENTS, _RESULTS = 1, 9, 14  # of a call frame
_KIND, _METADATA = 1, 3  # of an extension of it
_ASKS_FOR_VERSION = 1  # a kind of extension, which is 4 bytes long
_METADATA_VERSION = 3  # of its answer
_DATA, _RANK, _SIZES = 3, 4, 5  # of a buffer

_registered: dict[str, Any] = {}
_REGISTERING = threading.Lock()


@intrinsic
def _pointer(typing, address, kind):
    pointer = types.CPointer(kind.dtype)

    def generate(context, builder, signature, values):
        return builder.inttoptr(values[0], context.get_value_type(pointer))

    return pointer(types.int64, kind), generate


@njit
def asked_for_version(frame):
    """Whether XLA only wants to know which version of its interface a handler is written for; answers if so."""
    extension = _pointer(frame, np.int64)[_EXTENSION]
    if extension == 0 or np.int32(_pointer(extension, np.int64)[_KIND]) != _ASKS_FOR_VERSION:
        return False
    _pointer(_pointer(extension, np.int64)[_METADATA], np.int64)[_METADATA_VERSION] = _VERSION
    return True


@njit
def argument(frame, number):
    """The address of the buffer of an argument."""
    return _pointer(_pointer(frame, np.int64)[_ARGUMENTS], np.int64)[number]


@njit
def result(frame, number):
    """The address of the buffer of a result."""
    return _pointer(_pointer(frame, np.int64)[_RESULTS], np.int64)[number]


@njit
def data(buffer):
    """The address of the numbers of a buffer."""
    return _pointer(buffer, np.int64)[_DATA]


@njit
def size(buffer, axis):
    """The length of an axis, counted from the last one: 1, 2, ..."""
    words = _pointer(buffer, np.int64)
    return _pointer(words[_SIZES], np.int64)[words[_RANK] - axis]


@njit
def runs(buffer, axes):
    """How many arrays of so many axes the buffer holds."""
    count = 1
    for axis in range(axes, _pointer(buffer, np.int64)[_RANK]):
        count *= size(buffer, axis + 1)
    return count


@njit(inline="always")
def array(buffer, kind, shape):
    """The numbers of a buffer as an array."""
    return carray(_pointer(data(buffer), kind), shape)


def register(name: str, handler: Callable[[int], int], source: str) -> None:
    """Compile a handler, the address of a call frame -> 0, and let XLA call it by this name on CPUs.

    Several threads may do so at once: XLA takes a name only once. The code is saved for other processes, in a file that
    is named after `source` and the processor: numba by itself looks at the file of the handler only, and processors
    that share a folder would share an index.

    Args:
        name: for XLA.
        handler: a function that numba can compile.
        source: changes with the code that the handler is made from.
    """
    compile_handler = partial(cfunc, types.int64(types.int64))
    digest = hashlib.sha256(repr((source, TARGET)).encode()).hexdigest()
    handler.__qualname__ = f"{handler.__name__}_{digest[:16]}"
    with _REGISTERING:
        if name in _registered:
            return
        try:
            compiled = compile_handler(cache=True)(handler)
        except Exception:  # no folder for compiled code can be written, or what was saved there is damaged
            compiled = compile_handler()(handler)
        jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(compiled.address), platform="cpu")
        _registered[name] = compiled  # its code must not be freed


def _answer(frame):
    if not asked_for_version(frame):
        array(result(frame, 0), np.float32, (1,))[0] = array(argument(frame, 0), np.float32, (1,))[0] + np.float32(1)
    return 0


def answered() -> bool:
    """Whether XLA calls a handler as this module expects; tried with a small one."""
    try:
        register("holdfast_answer", _answer, Path(__file__).read_text(encoding="utf-8"))
        call = jax.ffi.ffi_call("holdfast_answer", jax.ShapeDtypeStruct((1,), jnp.float32))
        with jax.ensure_compile_time_eval():
            return float(jax.jit(call)(jnp.ones(1, jnp.float32))[0]) == 2
    except Exception:  # whatever another version of jax or numba raises: XLA's own code serves then
        return False
