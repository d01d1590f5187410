"""Rows of an array that is mostly zeros, without them."""

from __future__ import annotations

from typing import Any

import numpy as np

from pegasos.core.dispatch import generic
from pegasos.core.jit import hot
from pegasos.core.rows import CsrRows, DenseRows
from pegasos.core.threads import run_blocks

_FILLED = 0.3  # beyond it an entry costs more with its column than zeros do
_SAMPLE = 1000  # rows that tell how many entries are zero
_BLOCK = 1 << 22  # entries


@generic
def without_zeros(rows: Any) -> Any:
    """The same rows, sparse if that makes them much shorter"""
    return rows


@without_zeros.register(DenseRows)
def _(rows):
    X = rows.values
    some = X[:: max(1, len(X) // _SAMPLE)]
    if X.size < _BLOCK or np.count_nonzero(some) > _FILLED * some.size:
        return rows
    block, starts = max(1, _BLOCK // X.shape[1]), np.zeros(len(X) + 1, np.uint64)
    run_blocks(lambda s, e: _count(X[s:e], starts[s + 1 : e + 1]), len(X), block)
    np.cumsum(starts, out=starts)
    if starts[-1] > _FILLED * X.size:  # what a sample may not show
        return rows
    values, columns = np.empty(int(starts[-1]), X.dtype), np.empty(int(starts[-1]), np.uint32)
    run_blocks(lambda s, e: _gather(X[s:e], starts[s : e + 1], values, columns), len(X), block)
    for array in (values, columns, starts):
        array.flags.writeable = False
    return CsrRows(values, columns, starts, X.shape[1], rows.bias)


@hot
def _count(X, counts):
    for i in range(X.shape[0]):
        count = 0
        for x in X[i]:
            count += x != 0.0
        counts[i] = count


@hot
def _gather(X, starts, values, columns):
    for i in range(X.shape[0]):
        x, at = X[i], np.int64(starts[i])
        for j in range(x.shape[0]):
            if x[j] != 0.0:
                values[at], columns[at] = x[j], j
                at += 1
