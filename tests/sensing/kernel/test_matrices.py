import numpy as np
import pytest
from numba import njit

from holdfast.sensing.kernel.matrices import SMALLEST, combine, copy, gram, multiply, transpose


@njit
def compiled_copy(source, target, count):
    copy(source, target, count)


# All remainders of blocks of up to 16 numbers, and of 13 rows.
SIZES = [*range(SMALLEST, SMALLEST + 34), 100]


def matrices(size, count, rows=None):
    random = np.random.default_rng(size)
    return [random.standard_normal((rows or size, size)).astype(np.float32) for _ in range(count)]


def guarded(size):
    """A matrix of nan between numbers that must not be touched."""
    memory = np.full(size * size + 64, 7, np.float32)
    inner = memory[32:-32].reshape(size, size)
    inner[:] = np.nan
    return memory, inner


def check_guard(memory):
    assert (memory[:32] == 7).all()
    assert (memory[-32:] == 7).all()


def address(array):
    return array.ctypes.data


def rounding(first, second):
    """Bounds the rounding error of a product of two factors, whose sums have as many terms as these have rows."""
    return (len(first) + 2) * np.finfo(np.float32).eps * np.abs(first).astype(np.float64) @ np.abs(second)


@pytest.mark.parametrize("size", SIZES)
def test_multiply(size):
    a, b = matrices(size, 2)
    memory, product = guarded(size)
    multiply(address(a), address(b), address(product), size)
    assert (np.abs(product - a.astype(np.float64) @ b) <= rounding(a, b)).all()
    check_guard(memory)


@pytest.mark.parametrize("rank", [0, 1, 3])
@pytest.mark.parametrize("size", SIZES)
def test_gram(size, rank):
    (a,) = matrices(size, 1)
    (basis,) = matrices(size, 1, rows=max(rank, 1))
    basis = basis[:rank]
    scaled = np.float32(-0.5) * basis
    memory, product = guarded(size)
    transposed = np.empty_like(a)
    gram(address(a), address(transposed), address(scaled), address(basis), rank, address(product), size)
    expected = a.astype(np.float64) @ a.T + scaled.astype(np.float64).T @ basis
    bound = rounding(a, a.T) + (size + 2) * np.finfo(np.float32).eps * np.abs(scaled).T @ np.abs(basis)
    assert (np.abs(product - expected) <= bound).all()
    np.testing.assert_array_equal(product, product.T)
    np.testing.assert_array_equal(transposed, a.T)
    check_guard(memory)


@pytest.mark.parametrize("size", SIZES)
def test_transpose(size):
    (a,) = matrices(size, 1)
    memory, transposed = guarded(size)
    transpose(address(a), address(transposed), size)
    np.testing.assert_array_equal(transposed, a.T)
    check_guard(memory)


@pytest.mark.parametrize("size", SIZES)
def test_combine(size):
    a, b = matrices(size, 2)
    memory, combined = guarded(size)
    combine(address(a), np.float32(0.5), address(b), np.float32(-2), address(combined), size)
    # Halving and doubling are exact; two sums are rounded.
    bound = 2 * np.finfo(np.float32).eps * (np.abs(a) + 2 * np.abs(b) + 2 * np.abs(b.T))
    assert (np.abs(combined - (0.5 * a.astype(np.float64) - 2 * (b.astype(np.float64) + b.T))) <= bound).all()
    check_guard(memory)


@pytest.mark.parametrize("count", range(40))
def test_copy(count):
    source, target = np.arange(64, dtype=np.float32), np.full(64, -1, np.float32)
    compiled_copy(address(source), address(target), count)
    np.testing.assert_array_equal(target, np.where(np.arange(64) < count, source, -1))
