"""Entries of a row as vector instructions: the compiled side of `core.entries`.

Loads and stores of single weights go through no vector: an instruction that gathers them takes
longer than they do one by one.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, overload

from pegasos.core.entries import axpy, dot

WIDTH = 8  # entries at a time
_WIDTHS = (8, 4, 2, 1)
_INDEX = ir.IntType(64)


class _Entries:
    """Values, columns and weights in the code of an intrinsic on (values, columns, ..., w)."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any):
        self.builder = builder

        def array(k: int) -> Any:
            return context.make_array(signature.args[k])(context, builder, args[k])

        self.values, self.columns, self.w = array(0), array(1).data, array(-1).data
        self.count = builder.extract_value(self.values.shape, 0)
        self.number = self.w.type.pointee

    def each(self, visit: Any) -> None:
        """visit(first entry, how many) for all entries: WIDTH at a time, then half as many, …, one.

        A loop over what WIDTH leaves would cost short rows half of their time.
        """
        b, shift = self.builder, WIDTH.bit_length() - 1
        whole = b.lshr(self.count, _INDEX(shift))
        with cgutils.for_range(b, whole) as loop:
            visit(b.shl(loop.index, _INDEX(shift)), WIDTH)
        first = b.shl(whole, _INDEX(shift))
        for width in _WIDTHS[1:]:
            left = b.and_(self.count, _INDEX(width))
            with b.if_then(b.icmp_unsigned("!=", left, _INDEX(0))):
                visit(first, width)
            first = b.add(first, left)

    def widened(self, first: Any, width: int) -> Any:
        """So many values from the first on, in the precision of w."""
        b, number = self.builder, self.values.data.type.pointee
        kind = ir.VectorType(number, width)
        address = b.bitcast(b.gep(self.values.data, [first]), kind.as_pointer())
        x = b.load(address, align=4 if number == ir.FloatType() else 8)
        if number == self.number:
            return x
        turn = b.fpext if number == ir.FloatType() else b.fptrunc
        return turn(x, ir.VectorType(self.number, width))

    def places(self, first: Any, width: int) -> list[Any]:
        """The addresses of their weights."""
        b, found = self.builder, []
        for k in range(width):
            column = b.load(b.gep(self.columns, [b.add(first, _INDEX(k))]))
            column = column if column.type == _INDEX else b.zext(column, _INDEX)
            found.append(b.gep(self.w, [column]))
        return found


@intrinsic
def _dot(typing_context: Any, values: Any, columns: Any, w: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = _Entries(context, builder, signature, args)
        sums = {}
        for width in _WIDTHS:
            zero = ir.Constant(ir.VectorType(code.number, width), [0.0] * width)
            sums[width] = cgutils.alloca_once_value(builder, zero)

        def add(first: Any, width: int) -> None:
            x = code.widened(first, width)
            weights = ir.Constant(x.type, ir.Undefined)
            for k, place in enumerate(code.places(first, width)):
                weights = builder.insert_element(weights, builder.load(place), ir.IntType(32)(k))
            product = builder.fmul(x, weights, flags=("contract",))
            total = builder.fadd(product, builder.load(sums[width]), flags=("contract",))
            builder.store(total, sums[width])

        code.each(add)
        total = builder.load(sums[WIDTH])
        for width in _WIDTHS[1:]:
            total = builder.fadd(_halved(builder, total), builder.load(sums[width]))
        total = builder.extract_element(total, ir.IntType(32)(0))
        return total if code.number == ir.DoubleType() else builder.fpext(total, ir.DoubleType())

    return types.float64(values, columns, w), generate


@intrinsic
def _axpy(typing_context: Any, values: Any, columns: Any, a: Any, w: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = _Entries(context, builder, signature, args)
        a = args[2] if code.number == ir.DoubleType() else builder.fptrunc(args[2], code.number)

        def add(first: Any, width: int) -> None:
            x = code.widened(first, width)
            moves = builder.fmul(x, _everywhere(builder, a, width))
            for k, place in enumerate(code.places(first, width)):
                move = builder.extract_element(moves, ir.IntType(32)(k))
                builder.store(builder.fadd(builder.load(place), move), place)

        code.each(add)
        return context.get_dummy_value()

    return types.void(values, columns, a, w), generate


def _halved(builder: Any, x: Any) -> Any:
    """The sum of both halves of a vector."""
    half = x.type.count // 2
    low, high = _numbers(range(half)), _numbers(range(half, 2 * half))
    return builder.fadd(builder.shuffle_vector(x, x, low), builder.shuffle_vector(x, x, high))


def _numbers(given: Any) -> Any:
    word = ir.IntType(32)
    return ir.Constant(ir.VectorType(word, len(given)), [word(k) for k in given])


def _everywhere(builder: Any, number: Any, width: int) -> Any:
    """A vector of one number."""
    kind = ir.VectorType(number.type, width)
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), number, ir.IntType(32)(0))
    return builder.shuffle_vector(one, one, _numbers([0] * width))


def _in_order(*arrays: Any) -> bool:
    """Whether the numbers of each follow each other in memory, as the code takes for granted."""
    return all(array.layout == "C" and array.ndim == 1 for array in arrays)


@overload(dot, strict=False)
def _overload_dot(values: Any, columns: Any, w: Any) -> Any:
    if not _in_order(values, columns, w):
        return None
    return lambda values, columns, w: _dot(values, columns, w)


@overload(axpy, strict=False)
def _overload_axpy(values: Any, columns: Any, a: Any, w: Any) -> Any:
    if not _in_order(values, columns, w):
        return None
    return lambda values, columns, a, w: _axpy(values, columns, float(a), w)
