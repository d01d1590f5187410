"""A tile of a Gram matrix as vector instructions: the compiled side of `core.tile`.

Where bounds are checked, or numbers do not follow each other in memory, a plain loop stands in.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, config, types
from numba.extending import intrinsic, overload

from pegasos.core.llvm_lanes import everywhere
from pegasos.core.tile import SIDE, add_tile

_INDEX = ir.IntType(64)
_WIDE = ir.VectorType(ir.DoubleType(), SIDE)


class _Tile:
    """X and out in the code of an intrinsic on (X, n, j, k, out)."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any):
        self.builder, self.single = builder, signature.args[0].dtype == types.float32
        self.n, self.j, self.k = args[1:4]
        self.X, self.out = (
            context.make_array(signature.args[a])(context, builder, args[a]) for a in (0, 4)
        )
        self.vector = ir.VectorType(ir.FloatType() if self.single else ir.DoubleType(), SIDE)

    def at(self, array: Any, i: Any, k: Any) -> Any:
        """A pointer to array[i, k]."""
        b = self.builder
        width = b.extract_value(array.shape, 1)
        return b.gep(array.data, [b.add(b.mul(i, width), k)])

    def add_row(self, r: Any, sums: list[Any]) -> None:
        """Row r, each of its eight numbers times all."""
        b = self.builder
        line = b.bitcast(self.at(self.X, r, self.k), self.vector.as_pointer())
        y = b.load(line, align=4 if self.single else 8)
        first = self.at(self.X, r, self.j)
        for a, total in enumerate(sums):
            x = everywhere(b, b.load(b.gep(first, [_INDEX(a)])), SIDE)
            product = b.fmul(x, y, flags=("contract",))
            b.store(b.fadd(product, b.load(total), flags=("contract",)), total)

    def put(self, a: int, total: Any) -> None:
        """Add a line of sums, in float64."""
        b = self.builder
        line = self.at(self.out, b.add(self.j, _INDEX(a)), self.k)
        target, more = b.bitcast(line, _WIDE.as_pointer()), b.load(total)
        if self.single:
            more = b.fpext(more, _WIDE)
        b.store(b.fadd(b.load(target, align=8), more), target, align=8)


@intrinsic
def _add_tile(typing_context: Any, X: Any, n: Any, j: Any, k: Any, out: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = _Tile(context, builder, signature, args)
        zero = ir.Constant(code.vector, [0.0] * SIDE)
        sums = [cgutils.alloca_once_value(builder, zero) for _ in range(SIDE)]
        with cgutils.for_range(builder, code.n) as loop:
            code.add_row(loop.index, sums)
        for a, total in enumerate(sums):
            code.put(a, total)
        return context.get_dummy_value()

    return types.void(X, n, j, k, out), generate


def _is_plain(X: Any, out: Any) -> bool:
    """Whether these arrays are for the plain loop."""
    in_order = all(a.layout == "C" and a.aligned and a.ndim == 2 for a in (X, out))
    floats = X.dtype in (types.float32, types.float64) and out.dtype == types.float64
    return bool(config.BOUNDSCHECK) or not (in_order and floats)


def _plain_tile(X: Any, n: Any, j: Any, k: Any, out: Any) -> None:
    for r in range(n):
        for a in range(j, j + SIDE):
            for b in range(k, k + SIDE):
                out[a, b] += X[r, a] * X[r, b]


@overload(add_tile, strict=False)
def _overload_add_tile(X: Any, n: Any, j: Any, k: Any, out: Any) -> Any:
    if _is_plain(X, out):
        return _plain_tile
    return lambda X, n, j, k, out: _add_tile(X, np.int64(n), np.int64(j), np.int64(k), out)
