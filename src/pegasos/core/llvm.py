"""What needs Numba's compiler at import: prefetch, atomics, the disk cache.

Imported by `core.jit` at the first call of a hot loop, never before.
"""

from __future__ import annotations

import os
import platform
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
from pegasos.core.barrier import arrive, arrived, pause, relax
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


_WAITING = {"x86_64": ("llvm.x86.sse2.pause", ()), "aarch64": ("llvm.aarch64.hint", (1,))}
_WAITING |= {"AMD64": _WAITING["x86_64"], "arm64": _WAITING["aarch64"]}


@intrinsic
def _relax(typing_context: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if platform.machine() in _WAITING:
            name, hint = _WAITING[platform.machine()]
            words = [ir.IntType(32)(number) for number in hint]
            kind = ir.FunctionType(ir.VoidType(), [word.type for word in words])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, name), words)
        return context.get_dummy_value()

    return types.void(), generate


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


@overload(relax, strict=False)
def _overload_relax() -> Any:
    return lambda: _relax()


@overload(pause, strict=False)
def _overload_pause() -> Any:
    return lambda: _pause()


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
        sources = tuple(
            (cls.__module__, cls.__qualname__, jit.source_hash(cls)) for cls in outside(sig)
        )
        return (str(sig), sources, machine, code)

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
    return all(jit.source_hash(cls) is not None for cls in outside(sig))


def outside(sig: Any) -> list[type]:
    """The types in a signature that are not of this package."""
    return sorted(
        {cls for cls in _classes(sig) if cls.__module__.split(".")[0] != "pegasos"},
        key=lambda cls: (cls.__module__, cls.__qualname__),
    )


def _classes(sig: Any) -> Iterator[type]:
    for kind in sig.args if hasattr(sig, "args") else sig:
        if hasattr(kind, "instance_class"):
            yield kind.instance_class
            yield from _classes(kind.types)
