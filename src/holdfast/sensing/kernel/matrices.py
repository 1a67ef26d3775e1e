"""Products, transposes and sums of transposes of square matrices of float32, in the vector registers of a CPU.

numba vectorises plain loops by itself. It does not keep a block of sums in registers, which decides the speed of a
product, nor exchange rows and columns within registers; the blocks below do, written in LLVM's vector instructions as
functions that numba can call. An address counts bytes; strides and counts are numbers of float32.

Matrices are cut into blocks of registers. Where blocks do not divide a matrix, the last one overlaps the one before:
both compute the same numbers there. A matrix therefore has at least `SMALLEST` rows.
"""

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.registry import cpu_target
from numba.extending import intrinsic

TARGET = cpu_target.target_context.codegen().magic_tuple()
"""What numba compiles for, which its settings may change: the kind of computer, the processor and its features."""
_FEATURES = set(TARGET[2].split(","))
_ARM = TARGET[0].startswith(("aarch64", "arm64"))

MULTIPLY_ADD = _ARM or "+fma" in _FEATURES
"""Whether the CPU multiplies and adds in one instruction. Without it products are left to XLA."""
WIDTH = 16 if "+avx512f" in _FEATURES else 8 if "+avx" in _FEATURES else 4
"""Numbers in a register."""
# Of 32 registers, or 16, some hold a row of the second factor; two columns of registers are sums.
ROWS = 13 if _ARM or WIDTH == 16 else 6
"""Rows of a block of sums."""

_WORD, _NUMBER = types.int64, types.float32  # numba's types, and LLVM's
_FLOAT, _ADDRESS, _LANE = ir.FloatType(), ir.IntType(64), ir.IntType(32)
_VECTOR, _LANES = ir.VectorType(_FLOAT, WIDTH), ir.VectorType(_LANE, WIDTH)


def product_block(columns: int) -> Callable[..., None]:
    """A function that computes a block of a product, `ROWS` by `columns` registers, with its sums in registers.

        C = A B + D^T E

    Its arguments are the addresses of A, B, D, E and C, the columns of A and rows of B, those of D and E, the stride of
    the rows of all matrices, and the distance from one register of a row of C to the next, `WIDTH` or less.
    """

    @intrinsic
    def block(typing, a, b, d, e, c, count, added, stride, distance):
        def emit(builder, a, b, d, e, c, count, added, stride, distance):
            zero, one = ir.Constant(_VECTOR, None), ir.Constant(_ADDRESS, 1)
            sums = [[cgutils.alloca_once_value(builder, zero) for _ in range(columns)] for _ in range(ROWS)]
            offsets = [_times(builder, distance, column) for column in range(columns)]

            def add_products(first, second, count, down, across):
                with cgutils.for_range(builder, count, intp=_ADDRESS) as loop:
                    line, start = builder.mul(loop.index, stride), builder.mul(loop.index, across)
                    row = [_load(builder, second, builder.add(line, offset)) for offset in offsets]
                    for number, accumulators in enumerate(sums):
                        at = builder.add(start, _times(builder, down, number))
                        factor = _spread(builder, _load(builder, first, at, _FLOAT))
                        for accumulator, part in zip(accumulators, row, strict=True):
                            total = _multiply_add(builder, factor, part, builder.load(accumulator))
                            builder.store(total, accumulator)

            add_products(a, b, count, stride, one)
            add_products(d, e, added, one, stride)
            for number, accumulators in enumerate(sums):
                line = _times(builder, stride, number)
                for offset, accumulator in zip(offsets, accumulators, strict=True):
                    _store(builder, builder.load(accumulator), c, builder.add(line, offset))

        return _procedure([_WORD] * 9, emit)

    return block


@intrinsic
def transpose_block(typing, source, target, stride):
    """Write the transposed square block at `source`, `WIDTH` wide, to `target`; both have rows at this stride."""

    def emit(builder, source, target, stride):
        _write(builder, _transposed(builder, _read(builder, source, stride)), target, stride)

    return _procedure([_WORD] * 3, emit)


@intrinsic
def combine_block(typing, first, scale, second, other, factor, target, stride):
    """Write scale * first + factor * (second + the transposed other), square blocks with rows at this stride."""

    def emit(builder, first, scale, second, other, factor, target, stride):
        scale, factor = _spread(builder, scale), _spread(builder, factor)
        columns = _transposed(builder, _read(builder, other, stride))
        rows = zip(_read(builder, first, stride), _read(builder, second, stride), columns, strict=True)
        sums = [
            _multiply_add(builder, scale, row, builder.fmul(factor, builder.fadd(half, column)))
            for row, half, column in rows
        ]
        _write(builder, sums, target, stride)

    return _procedure((_WORD, _NUMBER, _WORD, _WORD, _NUMBER, _WORD, _WORD), emit)


@intrinsic
def copy(typing, source, target, count):
    """Copy `count` numbers. It may read up to `WIDTH` numbers too many, but writes none."""

    def emit(builder, source, target, count):
        mask = ir.VectorType(ir.IntType(1), WIDTH)
        arguments = (_VECTOR, _VECTOR.as_pointer(), _LANE, mask)
        store = _function(builder, f"llvm.masked.store.v{WIDTH}f32.p0", ir.VoidType(), *arguments)
        registers = builder.udiv(builder.add(count, ir.Constant(_ADDRESS, WIDTH - 1)), ir.Constant(_ADDRESS, WIDTH))
        with cgutils.for_range(builder, registers, intp=_ADDRESS) as loop:
            at = _times(builder, loop.index, WIDTH)
            left = _spread(builder, builder.trunc(builder.sub(count, at), _LANE))
            written = builder.icmp_signed("<", _constants(range(WIDTH)), left)
            numbers, pointer = _load(builder, source, at), _pointer(builder, target, at, _VECTOR)
            builder.call(store, [numbers, pointer, ir.Constant(_LANE, 4), written])

    return _procedure([_WORD] * 3, emit)


def _procedure(arguments: Sequence[types.Type], emit: Callable[..., None]) -> tuple[Any, Callable]:
    """What an intrinsic of numba is made of: the types of its arguments, and its code."""

    def generate(context, builder, signature, values):
        emit(builder, *values)
        return context.get_dummy_value()

    return types.void(*arguments), generate


def _transposed(builder: ir.IRBuilder, rows: Sequence[ir.Value]) -> list[ir.Value]:
    """Exchange rows and columns, one bit of their numbers at a time: log2(WIDTH) rounds of shuffles."""
    rows = list(rows)
    for bit in (1 << power for power in range(WIDTH.bit_length() - 1)):
        upper = _constants(lane if not lane & bit else WIDTH + (lane ^ bit) for lane in range(WIDTH))
        lower = _constants(lane | bit if not lane & bit else WIDTH + lane for lane in range(WIDTH))
        for number in range(WIDTH):
            if not number & bit:
                pair = rows[number], rows[number | bit]
                rows[number] = builder.shuffle_vector(*pair, upper)
                rows[number | bit] = builder.shuffle_vector(*pair, lower)
    return rows


def _read(builder: ir.IRBuilder, source: ir.Value, stride: ir.Value) -> list[ir.Value]:
    return [_load(builder, source, _times(builder, stride, number)) for number in range(WIDTH)]


def _write(builder: ir.IRBuilder, rows: Sequence[ir.Value], target: ir.Value, stride: ir.Value) -> None:
    for number, row in enumerate(rows):
        _store(builder, row, target, _times(builder, stride, number))


def _load(builder: ir.IRBuilder, base: ir.Value, index: ir.Value, kind: ir.Type = _VECTOR) -> ir.Value:
    return builder.load(_pointer(builder, base, index, kind), align=4)


def _store(builder: ir.IRBuilder, value: ir.Value, base: ir.Value, index: ir.Value) -> None:
    builder.store(value, _pointer(builder, base, index, value.type), align=4)


def _pointer(builder: ir.IRBuilder, base: ir.Value, index: ir.Value, kind: ir.Type) -> ir.Value:
    return builder.inttoptr(builder.add(base, _times(builder, index, 4)), kind.as_pointer())


def _times(builder: ir.IRBuilder, value: ir.Value, number: int) -> ir.Value:
    return builder.mul(value, ir.Constant(_ADDRESS, number))


def _constants(values: Any) -> ir.Constant:
    return ir.Constant(_LANES, list(values))


def _spread(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    """A vector with the same number everywhere."""
    undefined = ir.Constant(ir.VectorType(value.type, WIDTH), ir.Undefined)
    first = builder.insert_element(undefined, value, ir.Constant(_LANE, 0))
    return builder.shuffle_vector(first, undefined, _constants([0] * WIDTH))


def _multiply_add(builder: ir.IRBuilder, *values: ir.Value) -> ir.Value:
    return builder.call(_function(builder, f"llvm.fma.v{WIDTH}f32", _VECTOR, *[_VECTOR] * 3), values)


def _function(builder: ir.IRBuilder, name: str, result: ir.Type, *arguments: ir.Type) -> ir.Function:
    return cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, arguments), name)


SMALLEST = max(ROWS, WIDTH)
"""Rows of the smallest matrix."""

_one_register = product_block(1)
_two_registers = product_block(2)


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
                _two_registers(rows_of_a, b + at, rows_of_d, e + at, rows_of_c + at, size, added, size, distance)
                column += 2 * WIDTH
            else:
                at = 4 * (size - WIDTH)
                _one_register(rows_of_a, b + at, rows_of_d, e + at, rows_of_c + at, size, added, size, 0)
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
