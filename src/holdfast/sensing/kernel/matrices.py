"""Products, transposes and sums of transposes of square matrices of float32, given by their addresses.

Matrices are cut into blocks of registers. Where blocks do not divide a matrix, the last one overlaps the one before:
both compute the same numbers there. A matrix therefore has at least `SMALLEST` rows.
"""

from numba import njit

from holdfast.sensing.kernel.vectors import (
    ROWS,
    WIDTH,
    combine_block,
    copy_numbers,
    product_block,
    transpose_block,
)

SMALLEST = max(ROWS, WIDTH)
"""Rows of the smallest matrix."""

_one_register = product_block(1)
_two_registers = product_block(2)


@njit
def _narrow(a, b, d, e, c, added, size):
    _one_register(a, b, d, e, c, size, added, size, 0)


@njit
def _wide(a, b, d, e, c, added, size, distance):
    _two_registers(a, b, d, e, c, size, added, size, distance)


@njit
def _multiply(a, b, d, e, c, added, size, symmetric):
    distance = min(WIDTH, size - WIDTH)
    for first in range(0, size, ROWS):
        row = min(first, size - ROWS)
        rows_of_a, rows_of_d, rows_of_c = a + 4 * row * size, d + 4 * row, c + 4 * row * size
        column = row // WIDTH * WIDTH if symmetric else 0
        while column < size:
            if size - column > WIDTH:
                at = 4 * min(column, size - distance - WIDTH)
                _wide(rows_of_a, b + at, rows_of_d, e + at, rows_of_c + at, added, size, distance)
                column += 2 * WIDTH
            else:
                at = 4 * (size - WIDTH)
                _narrow(rows_of_a, b + at, rows_of_d, e + at, rows_of_c + at, added, size)
                column += WIDTH


@njit
def multiply(a, b, c, size):
    """C = A B."""
    _multiply(a, b, a, b, c, 0, size, False)


@njit
def gram(a, transposed, d, e, added, c, size):
    """C = A A^T + D^T E, where D and E have `added` rows and D^T E is symmetric; only half of it is multiplied.

    The transpose of A is written to `transposed`.
    """
    transpose(a, transposed, size)
    _multiply(a, transposed, d, e, c, added, size, True)
    for first in range(0, size, WIDTH):
        for second in range(first + WIDTH, size, WIDTH):
            column = min(second, size - WIDTH)
            transpose_block(c + 4 * (first * size + column), c + 4 * (column * size + first), size)


@njit
def transpose(source, target, size):
    """Write the transposed matrix to `target`."""
    for first in range(0, size, WIDTH):
        row = min(first, size - WIDTH)
        for second in range(0, size, WIDTH):
            column = min(second, size - WIDTH)
            transpose_block(source + 4 * (row * size + column), target + 4 * (column * size + row), size)


@njit
def combine(first, scale, half, factor, target, size):
    """Write scale A + factor (B + B^T) to `target`."""
    for start in range(0, size, WIDTH):
        row = min(start, size - WIDTH)
        for second in range(0, size, WIDTH):
            column = min(second, size - WIDTH)
            at, mirrored = 4 * (row * size + column), 4 * (column * size + row)
            combine_block(first + at, scale, half + at, half + mirrored, factor, target + at, size)


@njit
def copy(source, target, count):
    """Copy `count` numbers; up to a register of further ones may be read."""
    copy_numbers(source, target, count)
