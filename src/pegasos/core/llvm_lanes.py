"""Lines of LANES numbers as vector instructions: the compiled side of `core.lanes`."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, overload

from pegasos.core.lanes import (
    LANES,
    add_line,
    add_product,
    axpys,
    dots,
    put_line,
    whole_lines,
)


class _Line:
    """Vectors of LANES numbers in the code of an intrinsic on (values, columns, lines, lines)."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any):
        self.builder, self.kinds = builder, signature.args
        self.arrays: list[Any] = [
            context.make_array(kind)(context, builder, value) if kind != types.none else None
            for kind, value in zip(signature.args, args, strict=True)
        ]
        self.values, self.lines = signature.args[0].dtype, signature.args[2].dtype
        self.vector = _vector(self.lines)
        self.count = builder.extract_value(self.arrays[0].shape, 0)

    def line(self, array: int, index: Any) -> Any:
        """A pointer to a line of an array."""
        return _address(self.builder, self.kinds[array], self.arrays[array], index)

    def load(self, pointer: Any) -> Any:
        return self.builder.load(pointer, align=self.lines.bitwidth // 8)

    def entry(self, k: Any) -> tuple[Any, Any]:
        """The value of entry k in all lanes, and its column."""
        b = self.builder
        x = b.load(b.gep(self.arrays[0].data, [k]))
        if self.values != self.lines:
            x = (b.fptrunc if self.values == types.float64 else b.fpext)(x, self.vector.element)
        columns = self.arrays[1]
        column = k if columns is None else b.load(b.gep(columns.data, [k]))
        if column.type.width < 64:
            column = b.zext(column, ir.IntType(64))
        return everywhere(b, x), column

    def madd(self, x: Any, y: Any, z: Any) -> Any:
        product = self.builder.fmul(x, y, flags=("contract",))
        return self.builder.fadd(product, z, flags=("contract",))


@intrinsic
def _dots(typing_context: Any, values: Any, columns: Any, W: Any, out: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = _Line(context, builder, signature, args)
        target = code.line(3, ir.IntType(64)(0))
        zero = ir.Constant(code.vector, [0.0] * LANES)
        sums = [cgutils.alloca_once_value(builder, code.load(target))]
        sums += [cgutils.alloca_once_value(builder, zero) for _ in range(3)]

        def add(k: Any, total: Any) -> None:
            x, column = code.entry(k)
            w = code.load(code.line(2, column))
            builder.store(code.madd(x, w, builder.load(total)), total)

        def number(value: int) -> Any:
            return ir.Constant(code.count.type, value)

        fours = builder.lshr(code.count, number(2))
        with cgutils.for_range(builder, fours) as loop:  # one sum would wait for each addition
            k = builder.shl(loop.index, number(2))
            for place, total in enumerate(sums):
                add(builder.add(k, number(place)), total)
        with cgutils.for_range(builder, builder.and_(code.count, number(3))) as loop:
            add(builder.add(builder.shl(fours, number(2)), loop.index), sums[0])
        pairs = [builder.fadd(builder.load(sums[k]), builder.load(sums[k + 2])) for k in range(2)]
        total = builder.fadd(*pairs)
        builder.store(total, target, align=code.lines.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(values, columns, W, out), generate


@intrinsic
def _axpys(typing_context: Any, values: Any, columns: Any, a: Any, W: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = _Line(context, builder, signature, args)
        step = code.load(code.line(2, ir.IntType(64)(0)))
        with cgutils.for_range(builder, code.count) as loop:
            x, column = code.entry(loop.index)
            target = code.line(3, column)
            moved = code.madd(x, step, code.load(target))
            builder.store(moved, target, align=code.lines.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(values, columns, a, W), generate


@intrinsic
def _put(typing_context: Any, X: Any, i: Any, a: Any, out: Any, k: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _scaled(context, builder, signature, args, added=False)

    return types.void(X, i, a, out, k), generate


@intrinsic
def _add(typing_context: Any, X: Any, i: Any, a: Any, out: Any, k: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _scaled(context, builder, signature, args, added=True)

    return types.void(X, i, a, out, k), generate


@intrinsic
def _product(typing_context: Any, X: Any, i: Any, Z: Any, j: Any, out: Any, k: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = context, builder, signature, args
        wanted = signature.args[4].dtype
        x, z = _line_of(place, 0, wanted), _line_of(place, 2, wanted)
        product = builder.fmul(x, z, flags=("contract",))
        _put_to(place, 4, product, added=True)
        return context.get_dummy_value()

    return types.void(X, i, Z, j, out, k), generate


def _scaled(context: Any, builder: Any, signature: Any, args: Any, added: bool) -> Any:
    """Line k of `out` becomes a times line i of X, or grows by it."""
    place = context, builder, signature, args
    wanted = signature.args[3].dtype
    x = _line_of(place, 0, wanted)
    a = args[2] if wanted == types.float64 else builder.fptrunc(args[2], _vector(wanted).element)
    x = builder.fmul(x, everywhere(builder, a), flags=("contract",))
    _put_to(place, 3, x, added)
    return context.get_dummy_value()


def _pointer(place: tuple[Any, ...], array: int) -> Any:
    """To a line of an array, whose number is the argument after it."""
    context, builder, signature, args = place
    kind = signature.args[array]
    given = context.make_array(kind)(context, builder, args[array])
    return _address(builder, kind, given, args[array + 1])


def _address(builder: Any, kind: Any, array: Any, index: Any) -> Any:
    """A pointer to a line, counted through all lines of an array, or by the first index of a view,
    whose numbers of a line are neighbours."""
    if kind.layout == "C":
        data = builder.gep(array.data, [builder.mul(index, ir.Constant(index.type, LANES))])
    else:  # a view
        step = builder.mul(index, builder.extract_value(array.strides, 0))
        data = builder.gep(builder.bitcast(array.data, ir.IntType(8).as_pointer()), [step])
    return builder.bitcast(data, _vector(kind.dtype).as_pointer())


def _line_of(place: tuple[Any, ...], array: int, wanted: Any) -> Any:
    """A line of an array in the precision that is wanted."""
    builder, given = place[1], place[2].args[array].dtype
    x = builder.load(_pointer(place, array), align=given.bitwidth // 8)
    if given == wanted:
        return x
    turn = builder.fptrunc if given == types.float64 else builder.fpext
    return turn(x, _vector(wanted))


def _put_to(place: tuple[Any, ...], array: int, x: Any, added: bool) -> None:
    builder, target = place[1], _pointer(place, array)
    align = place[2].args[array].dtype.bitwidth // 8
    if added:
        x = builder.fadd(builder.load(target, align=align), x, flags=("contract",))
    builder.store(x, target, align=align)


def _vector(kind: Any) -> Any:
    """The type of a line of numbers."""
    number = ir.DoubleType() if kind == types.float64 else ir.FloatType()
    return ir.VectorType(number, LANES)


def everywhere(builder: Any, number: Any, width: int = LANES) -> Any:
    """A line of one number."""
    kind = ir.VectorType(number.type, width)
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), number, ir.IntType(32)(0))
    none = ir.Constant(ir.VectorType(ir.IntType(32), width), None)
    return builder.shuffle_vector(one, one, none)


@intrinsic
def _whole_lines(typing_context: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        attributes = builder.function.attributes
        if isinstance(attributes, set):  # past its check of names: it knows those without a value
            set.add(attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.void(), generate


@overload(whole_lines, inline="always")  # or the function would be its own
def _overload_whole_lines() -> Any:
    return lambda: _whole_lines()


@overload(dots, strict=False)
def _overload_dots(values: Any, columns: Any, W: Any, out: Any) -> Any:
    return lambda values, columns, W, out: _dots(values, columns, W, out)


@overload(axpys, strict=False)
def _overload_axpys(values: Any, columns: Any, a: Any, W: Any) -> Any:
    return lambda values, columns, a, W: _axpys(values, columns, a, W)


@overload(put_line, strict=False)
def _overload_put(X: Any, i: Any, a: Any, out: Any, k: Any) -> Any:
    return lambda X, i, a, out, k: _put(X, np.int64(i), np.float64(a), out, np.int64(k))


@overload(add_line, strict=False)
def _overload_add(X: Any, i: Any, a: Any, out: Any, k: Any) -> Any:
    return lambda X, i, a, out, k: _add(X, np.int64(i), np.float64(a), out, np.int64(k))


@overload(add_product, strict=False)
def _overload_product(X: Any, i: Any, Z: Any, j: Any, out: Any, k: Any) -> Any:
    def product(X: Any, i: Any, Z: Any, j: Any, out: Any, k: Any) -> Any:
        return _product(X, np.int64(i), Z, np.int64(j), out, np.int64(k))

    return product
