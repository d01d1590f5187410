"""Rows of a data matrix: the code that knows dense from sparse.

A matrix of n rows and d columns is seen as one of d + 1 columns, the last of which holds `bias`
in every row (0 for no intercept). It is never stored. A weight vector w has d + 1 entries.

The verbs `row_*` are for hot loops, those of `core.many` for many weight vectors at a time;
`products` and `combine` of `core.matrix` and `gram` of `core.gram` are for whole matrices. To add a
storage, write its NamedTuple (with a field `bias`) and these verbs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pegasos.core.dispatch import generic, helper
from pegasos.core.entries import axpy, dot
from pegasos.core.prefetch import prefetch


class DenseRows(NamedTuple):
    """A C-contiguous array, float32 or float64."""

    values: np.ndarray
    bias: float


class CsrRows(NamedTuple):
    """Compressed sparse rows: values float32/float64, columns unsigned 32/64 bit, starts uint64.

    Unsigned indices spare Numba's test for negative ones.
    """

    values: np.ndarray
    columns: np.ndarray
    starts: np.ndarray
    width: int
    bias: float


@generic
def n_rows(rows: Any) -> int:
    """Number of rows."""


@generic
def n_columns(rows: Any) -> int:
    """Number of stored columns d; weight vectors have one entry more."""


@generic
def n_entries(rows: Any) -> int:
    """Number of stored values."""


@generic
def is_single(rows: Any) -> bool:
    """Whether the values are float32"""
    return False


@generic
def by_row(rows: Any) -> bool:
    """Whether there are verbs for single rows; without, all that is done is done to blocks"""
    return True


@generic
def row_work(rows: Any) -> float:
    """The time to read an average row, in nanoseconds (about: for choosing a method)"""
    return 1.0 * n_entries(rows) / max(1, n_rows(rows))


@generic
def row_dot(rows: Any, i: int, w: np.ndarray) -> float:
    """x_i . w"""


@generic
def row_axpy(rows: Any, i: int, a: float, w: np.ndarray) -> None:
    """w += a x_i"""


@generic
def rows_axpy(rows: Any, a: np.ndarray, start: int, stop: int, w: np.ndarray) -> None:
    """w += sum of a_i x_i over start <= i < stop; rows with a_i = 0 cost nothing"""
    for i in range(start, stop):
        if a[i] != 0.0:
            row_axpy(rows, i, a[i], w)


@generic
def row_write(rows: Any, i: int, a: float, out: np.ndarray) -> None:
    """out = a x_i, the virtual column included; of a longer `out` the rest may become 0"""
    out[:] = 0.0
    row_axpy(rows, i, a, out[: n_columns(rows) + 1])


@generic
def row_squares(rows: Any, i: int, a: float, out: np.ndarray) -> None:
    """out += a (squares of x_i)"""


@generic
def row_outer(rows: Any, i: int, a: float, out: np.ndarray) -> None:
    """out += a x_i x_i', lower triangle (columns of a row are sorted); `out` may be larger"""


@generic
def row_sqnorm(rows: Any, i: int) -> float:
    """||x_i||^2"""


@generic
def row_prefetch(rows: Any, i: int) -> None:
    """Ask for the memory of row i."""


@generic
def row_announce(rows: Any, i: int) -> int:
    """Ask for what row_prefetch needs to know, some rows earlier (if it needs to know anything)"""
    return 0


@n_rows.register(DenseRows)
def _(rows):
    return rows.values.shape[0]


@n_rows.register(CsrRows)
def _(rows):
    return rows.starts.shape[0] - 1


@n_columns.register(DenseRows)
def _(rows):
    return rows.values.shape[1]


@n_columns.register(CsrRows)
def _(rows):
    return rows.width


@n_entries.register(DenseRows)
def _(rows):
    return rows.values.size


@n_entries.register(CsrRows)
def _(rows):
    return rows.values.size


@is_single.register(DenseRows)
def _(rows):
    return rows.values.dtype == np.float32


@is_single.register(CsrRows)
def _(rows):
    return rows.values.dtype == np.float32


@row_work.register(DenseRows)
def _(rows):
    return 0.2 * rows.values.shape[1]


@row_dot.register(DenseRows, reassociate=True)
def _(rows, i, w):
    x = rows.values[i]
    total = rows.bias * w[x.shape[0]]
    for k in range(x.shape[0]):
        total += x[k] * w[k]
    return total


@row_dot.register(CsrRows)
def _(rows, i, w):
    first, end = rows.starts[i], rows.starts[i + 1]
    last = rows.bias * w[rows.width]
    return last + dot(rows.values[first:end], rows.columns[first:end], w)


@row_axpy.register(DenseRows)
def _(rows, i, a, w):
    x = rows.values[i]
    for k in range(x.shape[0]):
        w[k] += a * x[k]
    w[x.shape[0]] += a * rows.bias


@rows_axpy.register(DenseRows, reassociate=True)
def _(rows, a, start, stop, w):
    """Four rows at a time: one by one each would wait until the last has stored w."""
    X, d = rows.values, rows.values.shape[1]
    first = second = third = held = 0
    for i in range(start, stop):
        if a[i] == 0.0:
            continue
        if held < 3:
            first, second, third, held = second, third, i, held + 1
            continue
        b, c, e, f, held = a[first], a[second], a[third], a[i], 0
        x, y, z, u = X[first], X[second], X[third], X[i]
        for k in range(d):
            w[k] += (b * x[k] + c * y[k]) + (e * z[k] + f * u[k])
        w[d] += ((b + c) + (e + f)) * rows.bias
    if held > 0:
        row_axpy(rows, third, a[third], w)
    if held > 1:
        row_axpy(rows, second, a[second], w)
    if held > 2:
        row_axpy(rows, first, a[first], w)


@row_axpy.register(CsrRows)
def _(rows, i, a, w):
    first, end = rows.starts[i], rows.starts[i + 1]
    axpy(rows.values[first:end], rows.columns[first:end], a, w)
    if rows.bias != 0.0:
        w[rows.width] += a * rows.bias


@row_write.register(DenseRows)
def _(rows, i, a, out):
    x = rows.values[i]
    for k in range(x.shape[0]):
        out[k] = a * x[k]
    out[x.shape[0]] = a * rows.bias


@row_squares.register(DenseRows)
def _(rows, i, a, out):
    x = rows.values[i]
    for k in range(x.shape[0]):
        out[k] += a * x[k] * x[k]
    out[x.shape[0]] += a * rows.bias * rows.bias


@row_squares.register(CsrRows)
def _(rows, i, a, out):
    for k in range(rows.starts[i], rows.starts[i + 1]):
        out[rows.columns[k]] += a * rows.values[k] * rows.values[k]
    out[rows.width] += a * rows.bias * rows.bias


@row_outer.register(DenseRows)
def _(rows, i, a, out):
    x = rows.values[i]
    d = x.shape[0]
    for k in range(d):
        b = a * x[k]
        for m in range(k + 1):
            out[k, m] += b * x[m]
        out[d, k] += b * rows.bias
    out[d, d] += a * rows.bias * rows.bias


@row_outer.register(CsrRows)
def _(rows, i, a, out):
    x, j = rows.values, rows.columns
    first, end = rows.starts[i], rows.starts[i + 1]
    last = out[rows.width]
    for k in range(first, end):
        b = a * x[k]
        line = out[j[k]]
        for m in range(first, k):
            line[j[m]] += b * x[m]
        line[j[k]] += b * x[k]
        last[j[k]] += b * rows.bias
    last[rows.width] += a * rows.bias * rows.bias


@row_sqnorm.register(DenseRows, reassociate=True)
def _(rows, i):
    x = rows.values[i]
    total = rows.bias * rows.bias
    for k in range(x.shape[0]):
        total += np.float64(x[k]) * np.float64(x[k])
    return total


@row_sqnorm.register(CsrRows, reassociate=True)
def _(rows, i):
    total = rows.bias * rows.bias
    for k in range(rows.starts[i], rows.starts[i + 1]):
        total += np.float64(rows.values[k]) * np.float64(rows.values[k])
    return total


@row_announce.register(CsrRows)
def _(rows, i):
    prefetch(rows.starts, i)
    return 0


@row_prefetch.register(DenseRows)
def _(rows, i):
    d = rows.values.shape[1]
    _prefetch_between(rows.values, i * d, i * d + d)


@row_prefetch.register(CsrRows)
def _(rows, i):
    first, end = np.int64(rows.starts[i]), np.int64(rows.starts[i + 1])
    _prefetch_between(rows.values, first, end)
    _prefetch_between(rows.columns, first, end)


@helper
def _prefetch_between(array, first, end):
    """Ask for array[first:end]; a range with a step unknown to the compiler would divide."""
    step = 16 if array.itemsize == 4 else 8
    while first < end:
        prefetch(array, first)
        first += step
