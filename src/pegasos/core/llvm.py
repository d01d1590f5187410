"""What needs Numba's compiler at import: prefetch, atomics, exp, the disk cache.

Imported by `core.jit` at the first call of a hot loop, never before.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    UserProvidedCacheLocator,
)
from numba.extending import intrinsic, overload, register_jitable

from pegasos.core import jit
from pegasos.core.barrier import arrive, arrived, pause
from pegasos.core.elementary import exponential, power, tangent
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


@intrinsic
def _bits(typing_context: Any, number: Any) -> Any:
    """The bits of a float as an integer of its size, or of an integer as a float."""
    pairs: dict[Any, Any] = {
        types.int32: (types.float32, ir.FloatType()),
        types.int64: (types.float64, ir.DoubleType()),
        types.float64: (types.int64, ir.IntType(64)),
    }
    result, kind = pairs[number]

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], kind)

    return result(number), generate


_f32, _f64, _i32, _i64 = np.float32, np.float64, np.int32, np.int64


@register_jitable(fastmath={"contract"})
def _exp32(x):
    """Cephes' expf: x = k log 2 + f, then a polynomial in f; np.floor vectorises."""
    x = _f32(-87.0) if x < _f32(-87.0) else x
    x = _f32(89.0) if x > _f32(89.0) else x
    k = np.floor(x * _f32(1.44269504088896341) + _f32(0.5))
    f = x - k * _f32(0.693359375) - k * _f32(-2.12194440e-4)
    p = _f32(1.9875691500e-4)
    p = p * f + _f32(1.3981999507e-3)
    p = p * f + _f32(8.3334519073e-3)
    p = p * f + _f32(4.1665795894e-2)
    p = p * f + _f32(1.6666665459e-1)
    p = p * f + _f32(5.0000001201e-1)
    return (p * f * f + f + _f32(1.0)) * _bits(_i32((_i32(k) + _i32(127)) << _i32(23)))


@register_jitable(fastmath={"contract"})
def _exp64(x):
    """Cephes' exp; k becomes an integer by adding 1.5 2^52, for which there is an instruction."""
    far = x < -708.0
    x = -708.0 if far else x
    x = 710.0 if x > 710.0 else x
    k = np.floor(x * 1.4426950408889634074 + 0.5)
    f = x - k * 6.93145751953125e-1 - k * 1.42860682030941723212e-6
    g = f * f
    p = (1.26177193074810590878e-4 * g + 3.02994407707441961300e-2) * g
    p = (p + 9.99999999999999999910e-1) * f
    q = (3.00198505138664455042e-6 * g + 2.52448340349684104192e-3) * g
    q = (q + 2.27265548208155028766e-1) * g + 2.0
    power = _bits((_bits(k + 6755399441055744.0) + _i64(1023)) << _i64(52))
    return 0.0 if far else (1.0 + 2.0 * (p / (q - p))) * power


@overload(exponential, strict=False, jit_options={"fastmath": {"contract"}})
def _overload_exponential(x: Any) -> Any:
    if x == types.float32:
        return lambda x: _exp32(x)
    return lambda x: _exp64(_f64(x))


@register_jitable(fastmath={"contract"})
def _tanh32(x):
    e = _exp32(-abs(x + x))
    return np.copysign((_f32(1.0) - e) / (_f32(1.0) + e), x)


@register_jitable(fastmath={"contract"})
def _tanh64(x):
    e = _exp64(-abs(x + x))
    return np.copysign((1.0 - e) / (1.0 + e), x)


@overload(tangent, strict=False, jit_options={"fastmath": {"contract"}})
def _overload_tangent(x: Any) -> Any:
    if x == types.float32:
        return lambda x: _tanh32(x)
    return lambda x: _tanh64(_f64(x))


@overload(power, strict=False)
def _overload_power(x: Any, degree: Any) -> Any:
    one = _f32(1.0) if x == types.float32 else _f64(1.0)

    def squared(x, degree):
        """Without a loop, so that a loop around it vectorises."""
        y = x * x
        z = y * y
        u = z * z
        v = u * u
        low = (x if degree & 1 else one) * (y if degree & 2 else one)
        return (
            low
            * (z if degree & 4 else one)
            * (u if degree & 8 else one)
            * (v if degree & 16 else one)
        )

    return squared


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
