import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from holdfast.sensing.kernel.calls import argument, array, asked_for_version, register, result, runs, size
from holdfast.sensing.kernel.fused import available

SOURCE = Path(__file__).read_text(encoding="utf-8")


def double_rows(frame):
    """Each row of the first argument times the number of the second one that belongs to it."""
    if not asked_for_version(frame):
        rows, count = argument(frame, 0), runs(argument(frame, 0), 1)
        source = array(rows, np.float32, (count, size(rows, 1)))
        factors = array(argument(frame, 1), np.float32, (count,))
        target = array(result(frame, 0), np.float32, (count, size(rows, 1)))
        for row in range(count):
            for column in range(size(rows, 1)):
                target[row, column] = source[row, column] * factors[row]
    return 0


def test_xla_calls_a_handler_with_any_number_of_runs():
    register("test_double_rows", double_rows, SOURCE)
    register("test_double_rows", double_rows, SOURCE)  # nothing happens

    def doubled(row, factor):
        call = jax.ffi.ffi_call(
            "test_double_rows", jax.ShapeDtypeStruct(row.shape, row.dtype), vmap_method="broadcast_all"
        )
        return call(row, factor)

    rows = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    factors = np.array([1, 2, 3], np.float32)
    np.testing.assert_array_equal(jax.jit(doubled)(rows[0, 0], factors[1]), 2 * rows[0, 0])
    over_runs = jax.vmap(jax.vmap(doubled), in_axes=(0, None))
    np.testing.assert_array_equal(jax.jit(over_runs)(rows, factors), rows * factors[:, None])


@pytest.mark.parametrize("backend", ["gpu", "tpu"])
def test_only_a_cpu_has_it(backend, monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    assert not available.__wrapped__()


def test_a_version_of_the_interface_that_xla_does_not_know_is_noticed():
    """Then XLA's own code serves. The version is a constant of compiled code, so another process has the other one."""
    script = (
        "import numpy as np\n"
        "from holdfast.sensing.kernel import calls\n"
        "from holdfast.sensing.kernel.fused import available\n"
        "calls._VERSION = np.int64(7)  # 7.0\n"
        "calls.cfunc = lambda signature, cache=False, cfunc=calls.cfunc: cfunc(signature)  # compiled anew\n"
        "print(available())"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert answer.stdout == "False\n"


def test_threads_that_start_at_once_register_once():
    """XLA refuses a second handler of the same name."""
    script = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from holdfast.sensing.kernel.fused import can_be_fused\n"
        "with ThreadPoolExecutor(8) as pool:\n"
        "    print(set(pool.map(can_be_fused, [25] * 8)))"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert answer.stdout == "{True}\n"


@pytest.mark.parametrize("error", [RuntimeError("no locator available"), EOFError("Ran out of input"), OSError(28)])
def test_compiled_code_that_cannot_be_saved_or_read(error, monkeypatch):
    """An installation that is read only, for a user without a home; a damaged file; a full disk."""

    def cfunc(signature, cache=False):
        if cache:
            raise error
        return compile_handler(signature)

    from holdfast.sensing.kernel import calls

    compile_handler = calls.cfunc
    monkeypatch.setattr(calls, "cfunc", cfunc)
    register(f"test_uncached_{type(error).__name__}", lambda frame: 0 * asked_for_version(frame), SOURCE)
    assert f"test_uncached_{type(error).__name__}" in calls._registered


def test_saved_code_is_told_apart_by_its_source(monkeypatch):
    names = []
    monkeypatch.setattr("holdfast.sensing.kernel.calls._registered", {})
    monkeypatch.setattr("jax.ffi.register_ffi_target", lambda *arguments, **options: None)
    for source in ("one", "one", "another"):
        register(f"test_{len(names)}", double_rows, source)
        names.append(double_rows.__qualname__)
    assert names[0] == names[1] != names[2]


def test_jax_and_numba_agree_on_the_layout_of_arrays():
    """Buffers are dense and in row-major order."""
    register("test_double_rows", double_rows, SOURCE)
    call = jax.ffi.ffi_call("test_double_rows", jax.ShapeDtypeStruct((3, 2), jnp.float32))
    transposed = jax.jit(lambda matrix: call(matrix.T, jnp.ones(3)))
    np.testing.assert_array_equal(transposed(jnp.arange(6.0).reshape(2, 3)), np.arange(6.0).reshape(2, 3).T)
