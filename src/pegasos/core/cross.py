"""Some rows against many: what blocks of kernels need of a storage."""

from __future__ import annotations

from typing import Any

import numpy as np

from pegasos.core.dispatch import generic
from pegasos.core.jit import hot
from pegasos.core.memory import free_memory
from pegasos.core.rows import CsrRows, DenseRows, n_columns, n_entries, n_rows


@generic
def gathered(rows: Any, index: np.ndarray) -> Any:
    """The chosen rows, copied."""


@generic
def stacked(rows: Any, *others: Any) -> Any:
    """The rows and below them others of the same kind, copied."""


@generic
def in_dtype(rows: Any, dtype: Any) -> Any:
    """The rows in a dtype; themselves if they have it."""


@generic
def written_out(rows: Any) -> np.ndarray:
    """The rows as an array, which must not be changed."""


@generic
def packed(rows: Any) -> Any:
    """The same rows in the storage that loops are through with first"""
    return rows


@generic
def place_columns(rows: Any, start: int, stop: int, place: np.ndarray) -> int:
    """place[j] = 1, 2, ... for the columns that rows start..stop occupy; how many these are."""


@generic
def write_columns(rows: Any, start: int, place: np.ndarray, T: np.ndarray) -> None:
    """T[place[j], s] = x_{start + s, j} for the columns of T, which is zero before."""


@generic
def row_against(rows: Any, i: int, place: Any, T: Any, out: Any, found: Any) -> None:
    """out[s] = sum_j x_ij T[place[j], s]; `found`: two arrays to work in, places and values"""


@generic
def row_apart(rows: Any, i: int, place: Any, T: Any, out: Any, found: Any) -> None:
    """out[s] = sum_j |x_ij - t_js| - |x_ij| - |t_js|, t_js = T[place[j], s]"""


@gathered.register(DenseRows)
def _(rows, index):
    return DenseRows(_read_only(rows.values[index]), rows.bias)


@gathered.register(CsrRows)
def _(rows, index):
    index = np.arange(n_rows(rows), dtype=np.uint64)[index]
    starts = np.zeros(index.size + 1, dtype=np.uint64)
    np.cumsum(rows.starts[index + np.uint64(1)] - rows.starts[index], out=starts[1:])
    values = np.empty(int(starts[-1]), dtype=rows.values.dtype)
    columns = np.empty(int(starts[-1]), dtype=rows.columns.dtype)
    _gather(rows, index, starts, values, columns)
    for part in (values, columns, starts):
        _read_only(part)
    return CsrRows(values, columns, starts, rows.width, rows.bias)


def _read_only(a: np.ndarray) -> np.ndarray:
    a.flags.writeable = False
    return a


@hot
def _gather(rows, index, starts, values, columns):
    """Entry by entry: to copy a slice costs as much as some hundred of them."""
    for s in range(index.shape[0]):
        first, to = rows.starts[index[s]], starts[s]
        for k in range(starts[s + 1] - to):
            values[to + k] = rows.values[first + k]
            columns[to + k] = rows.columns[first + k]


@stacked.register(DenseRows)
def _(rows, *others):
    return DenseRows(np.concatenate([part.values for part in (rows, *others)]), rows.bias)


@stacked.register(CsrRows)
def _(rows, *others):
    parts = rows, *others
    values = np.concatenate([part.values for part in parts])
    columns = np.concatenate([part.columns for part in parts])
    sizes = np.concatenate([np.diff(part.starts) for part in parts])
    starts = np.zeros(len(sizes) + 1, dtype=np.uint64)
    np.cumsum(sizes, out=starts[1:])
    return CsrRows(values, columns, starts, rows.width, rows.bias)


@in_dtype.register(DenseRows)
@in_dtype.register(CsrRows)
def _(rows, dtype):
    return rows._replace(values=rows.values.astype(dtype, copy=False))


@written_out.register(DenseRows)
def _(rows):
    return rows.values


@written_out.register(CsrRows)
def _(rows):
    out = np.zeros((n_rows(rows), n_columns(rows)), dtype=rows.values.dtype)
    _write_out(rows, out)
    return out


@hot
def _write_out(rows, out):
    for i in range(out.shape[0]):
        for k in range(rows.starts[i], rows.starts[i + 1]):
            out[i, rows.columns[k]] = rows.values[k]


@packed.register(CsrRows)
def _(rows):
    """As an array, whose rows need no gathering, if two fifths of it are filled and it has room."""
    n, d = n_rows(rows), n_columns(rows)
    if 5 * n_entries(rows) < 2 * n * d or 4.0 * n * d * rows.values.itemsize > free_memory():
        return rows
    return DenseRows(_read_only(written_out(rows)), rows.bias)


@place_columns.register(CsrRows)
def _(rows, start, stop, place):
    used = 0
    for k in range(rows.starts[start], rows.starts[stop]):
        j = rows.columns[k]
        if place[j] == 0:
            used += 1
            place[j] = used
    return used


@write_columns.register(CsrRows)
def _(rows, start, place, T):
    for s in range(T.shape[1]):
        for k in range(rows.starts[start + s], rows.starts[start + s + 1]):
            T[place[rows.columns[k]], s] = rows.values[k]


@row_against.register(CsrRows, reassociate=True)
def _(rows, i, place, T, out, found):
    """Entries that meet a line are found first, then added four at a time: half the time."""
    places, values = found
    out[:] = 0.0
    k, end = rows.starts[i], rows.starts[i + 1]
    while k < end:
        n, stop = 0, min(end, k + np.uint64(places.shape[0]))
        while k < stop:
            p = place[rows.columns[k]]
            places[n], values[n] = p, rows.values[k]
            n += p != 0
            k += np.uint64(1)
        for m in range(0, n - 3, 4):
            a, b, c, d = values[m], values[m + 1], values[m + 2], values[m + 3]
            line1, line2 = T[places[m]], T[places[m + 1]]
            line3, line4 = T[places[m + 2]], T[places[m + 3]]
            for s in range(out.shape[0]):
                out[s] += (a * line1[s] + b * line2[s]) + (c * line3[s] + d * line4[s])
        for m in range(n - n % 4, n):
            a, line = values[m], T[places[m]]
            for s in range(out.shape[0]):
                out[s] += a * line[s]


@row_apart.register(CsrRows)
def _(rows, i, place, T, out, found):
    out[:] = 0.0
    for k in range(rows.starts[i], rows.starts[i + 1]):
        p = place[rows.columns[k]]
        if p != 0:
            x, line = rows.values[k], T[p]
            for s in range(out.shape[0]):
                out[s] += abs(x - line[s]) - (abs(x) + abs(line[s]))
