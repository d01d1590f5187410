"""What needs Numba's compiler at import: prefetch, atomics, vector loops, the disk cache.

Imported by `core.jit` at the first call of a hot loop, never before.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    UserProvidedCacheLocator,
)
from numba.extending import intrinsic, overload

from pegasos.core import jit
from pegasos.core.barrier import arrive, arrived, pause
from pegasos.core.lanes import LANES, axpys, dots
from pegasos.core.prefetch import prefetch


@intrinsic
def _prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [byte, word, word, word]),
            "llvm.prefetch.p0",
        )
        address = builder.bitcast(builder.gep(data, [args[1]]), byte)
        read, keep_close, is_data = (ir.Constant(word, k) for k in (0, 3, 1))
        builder.call(function, [address, read, keep_close, is_data])
        return context.get_dummy_value()

    return types.void(array, index), generate


@overload(prefetch, strict=False)
def _overload_prefetch(array: Any, index: Any) -> Any:
    return lambda array, index: _prefetch(array, index)


@intrinsic
def _arrive(typing_context: Any, gate: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.atomic_rmw("add", data, ir.IntType(64)(1), "seq_cst")

    return types.int64(gate), generate


@intrinsic
def _arrived(typing_context: Any, gate: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.load_atomic(builder.gep(data, [args[1]]), "seq_cst", 8)

    return types.int64(gate, index), generate


@intrinsic
def _pause(typing_context: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if os.name == "posix":
            kind = ir.FunctionType(ir.IntType(32), [])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "sched_yield"), [])
        return context.get_dummy_value()

    return types.void(), generate


@overload(arrive, strict=False)
def _overload_arrive(gate: Any) -> Any:
    return lambda gate: _arrive(gate)


@overload(arrived, strict=False)
def _overload_arrived(gate: Any, index: Any) -> Any:
    return lambda gate, index: _arrived(gate, index)


@overload(pause, strict=False)
def _overload_pause() -> Any:
    return lambda: _pause()


class _Line:
    """Vectors of LANES numbers in the code of an intrinsic on (values, columns, lines, lines)."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any):
        self.builder = builder
        self.arrays: list[Any] = [
            context.make_array(kind)(context, builder, value) if kind != types.none else None
            for kind, value in zip(signature.args, args, strict=True)
        ]
        self.values, self.lines = signature.args[0].dtype, signature.args[2].dtype
        self.number = ir.DoubleType() if self.lines == types.float64 else ir.FloatType()
        self.vector = ir.VectorType(self.number, LANES)
        self.count = builder.extract_value(self.arrays[0].shape, 0)

    def line(self, array: int, index: Any) -> Any:
        """A pointer to a line of an array."""
        first = self.builder.mul(index, ir.Constant(index.type, LANES))
        data = self.builder.gep(self.arrays[array].data, [first])
        return self.builder.bitcast(data, self.vector.as_pointer())

    def load(self, pointer: Any) -> Any:
        return self.builder.load(pointer, align=self.lines.bitwidth // 8)

    def entry(self, k: Any) -> tuple[Any, Any]:
        """The value of entry k in all lanes, and its column."""
        b = self.builder
        x = b.load(b.gep(self.arrays[0].data, [k]))
        if self.values != self.lines:
            x = (b.fptrunc if self.values == types.float64 else b.fpext)(x, self.number)
        one = b.insert_element(ir.Constant(self.vector, ir.Undefined), x, ir.IntType(32)(0))
        none = ir.Constant(ir.VectorType(ir.IntType(32), LANES), None)
        columns = self.arrays[1]
        column = k if columns is None else b.load(b.gep(columns.data, [k]))
        if column.type.width < 64:
            column = b.zext(column, ir.IntType(64))
        return b.shuffle_vector(one, one, none), column

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


@overload(dots, strict=False)
def _overload_dots(values: Any, columns: Any, W: Any, out: Any) -> Any:
    return lambda values, columns, W, out: _dots(values, columns, W, out)


@overload(axpys, strict=False)
def _overload_axpys(values: Any, columns: Any, a: Any, W: Any) -> Any:
    return lambda values, columns, a, W: _axpys(values, columns, a, W)


class _OurDirectoryOnly(CompileResultCacheImpl):
    """No falling back to places without a fingerprint."""

    _locator_classes = [UserProvidedCacheLocator]


class HotCache(FunctionCache):
    """Numba's cache with an index that names types by text and outside types by their source.

    The index must stay readable where an outside type cannot be imported, and must miss when
    the file of an outside type was edited.
    """

    _impl_class = _OurDirectoryOnly

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        _, machine, code = super()._index_key(sig, codegen)
        outside = tuple(
            (cls.__module__, cls.__qualname__, jit.source_hash(cls)) for cls in _outside(sig)
        )
        return (str(sig), outside, machine, code)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        found = None
        if _has_source(sig):
            try:
                found = super().load_overload(sig, target_context)
            except Exception:  # a damaged or foreign entry: compile anew
                self.flush()
        if found is None:
            jit.log.info("compiling %s (first use only)", self._py_func.__name__)
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        if _has_source(sig):
            try:
                super().save_overload(sig, data)
            except OSError:  # a full or vanished disk costs speed, never the fit
                pass


def _has_source(sig: Any) -> bool:
    return all(jit.source_hash(cls) is not None for cls in _outside(sig))


def _outside(sig: Any) -> list[type]:
    return sorted(
        {cls for cls in _classes(sig) if cls.__module__.split(".")[0] != "pegasos"},
        key=lambda cls: (cls.__module__, cls.__qualname__),
    )


def _classes(sig: Any) -> Iterator[type]:
    for kind in sig.args if hasattr(sig, "args") else sig:
        if hasattr(kind, "instance_class"):
            yield kind.instance_class
            yield from _classes(kind.types)
