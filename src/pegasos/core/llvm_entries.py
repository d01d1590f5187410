"""Entries of a row as vector instructions: the compiled side of `core.entries`.

Loads and stores of single weights go through no vector: an instruction that gathers them takes
longer than they do one by one. Arithmetic is in float64, whatever the arrays hold. Where bounds are
checked, or numbers do not follow each other in memory, plain loops stand in.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, config, types
from numba.extending import intrinsic, overload

from pegasos.core.entries import axpy, dot
from pegasos.core.llvm_lanes import everywhere

_WIDTHS = (8, 4, 2, 1)  # entries at a time
_INDEX, _NUMBER = ir.IntType(64), ir.DoubleType()


class _Entries:
    """Values, columns and weights in the code of an intrinsic on (values, columns, ..., w)."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any):
        self.builder = builder

        def array(k: int) -> Any:
            return context.make_array(signature.args[k])(context, builder, args[k])

        self.values, self.columns, self.w = array(0), array(1).data, array(-1).data
        self.count = builder.extract_value(self.values.shape, 0)

    def each(self, visit: Any) -> None:
        """visit(first entry, how many) for all entries: 8 at a time, then 4, 2 and 1."""
        b, most = self.builder, _WIDTHS[0]
        rest = b.and_(self.count, _INDEX(most - 1))
        first = b.sub(self.count, rest)
        with cgutils.for_range_slice(b, _INDEX(0), first, _INDEX(most), inc=True) as (k, _):
            visit(k, most)
        for width in _WIDTHS[1:]:
            some = b.and_(self.count, _INDEX(width))
            with b.if_then(b.icmp_unsigned("!=", some, _INDEX(0))):
                visit(first, width)
            first = b.add(first, some)

    def widened(self, first: Any, width: int) -> Any:
        """So many values from the first on."""
        b, number = self.builder, self.values.data.type.pointee
        kind = ir.VectorType(number, width)
        address = b.bitcast(b.gep(self.values.data, [first]), kind.as_pointer())
        x = b.load(address, align=8 if number == _NUMBER else 4)
        return x if number == _NUMBER else b.fpext(x, ir.VectorType(_NUMBER, width))

    def places(self, first: Any, width: int) -> list[Any]:
        """The addresses of their weights."""
        b, found = self.builder, []
        for k in range(width):
            column = b.load(b.gep(self.columns, [b.add(first, _INDEX(k))]))
            column = column if column.type == _INDEX else b.zext(column, _INDEX)
            found.append(b.gep(self.w, [column]))
        return found

    def load(self, place: Any) -> Any:
        weight = self.builder.load(place)
        return weight if weight.type == _NUMBER else self.builder.fpext(weight, _NUMBER)

    def store(self, weight: Any, place: Any) -> None:
        kind = place.type.pointee
        self.builder.store(weight if kind == _NUMBER else self.builder.fptrunc(weight, kind), place)


@intrinsic
def _dot(typing_context: Any, values: Any, columns: Any, w: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = _Entries(context, builder, signature, args)
        sums = {}
        for width in _WIDTHS:
            zero = ir.Constant(ir.VectorType(_NUMBER, width), [0.0] * width)
            sums[width] = cgutils.alloca_once_value(builder, zero)

        def add(first: Any, width: int) -> None:
            x = code.widened(first, width)
            weights = ir.Constant(x.type, ir.Undefined)
            for k, place in enumerate(code.places(first, width)):
                weights = builder.insert_element(weights, code.load(place), ir.IntType(32)(k))
            product = builder.fmul(x, weights, flags=("contract",))
            total = builder.fadd(product, builder.load(sums[width]), flags=("contract",))
            builder.store(total, sums[width])

        code.each(add)
        total = builder.load(sums[_WIDTHS[0]])
        for width in _WIDTHS[1:]:
            total = builder.fadd(_halved(builder, total), builder.load(sums[width]))
        return builder.extract_element(total, ir.IntType(32)(0))

    return types.float64(values, columns, w), generate


@intrinsic
def _axpy(typing_context: Any, values: Any, columns: Any, a: Any, w: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = _Entries(context, builder, signature, args)

        def add(first: Any, width: int) -> None:
            moves = builder.fmul(code.widened(first, width), everywhere(builder, args[2], width))
            for k, place in enumerate(code.places(first, width)):
                move = builder.extract_element(moves, ir.IntType(32)(k))
                code.store(builder.fadd(code.load(place), move), place)

        code.each(add)
        return context.get_dummy_value()

    return types.void(values, columns, a, w), generate


def _halved(builder: Any, x: Any) -> Any:
    """The sum of both halves of a vector."""
    word, half = ir.IntType(32), x.type.count // 2
    kind = ir.VectorType(word, half)
    low, high = (ir.Constant(kind, [word(s + k) for k in range(half)]) for s in (0, half))
    return builder.fadd(builder.shuffle_vector(x, x, low), builder.shuffle_vector(x, x, high))


def _is_plain(values: Any, columns: Any, w: Any) -> bool:
    """Whether these arrays are for the plain loops."""
    floats = (types.float32, types.float64)
    in_order = all(a.layout == "C" and a.aligned and a.ndim == 1 for a in (values, columns, w))
    return bool(config.BOUNDSCHECK) or not (in_order and {values.dtype, w.dtype} <= {*floats})


def _plain_dot(values: Any, columns: Any, w: Any) -> Any:
    total = 0.0
    for k in range(values.shape[0]):
        total += values[k] * w[columns[k]]
    return total


def _plain_axpy(values: Any, columns: Any, a: Any, w: Any) -> None:
    for k in range(values.shape[0]):
        w[columns[k]] += a * values[k]


@overload(dot, strict=False)
def _overload_dot(values: Any, columns: Any, w: Any) -> Any:
    if _is_plain(values, columns, w):
        return _plain_dot
    return lambda values, columns, w: _dot(values, columns, w)


@overload(axpy, strict=False)
def _overload_axpy(values: Any, columns: Any, a: Any, w: Any) -> Any:
    if _is_plain(values, columns, w):
        return _plain_axpy
    return lambda values, columns, a, w: _axpy(values, columns, float(a), w)
