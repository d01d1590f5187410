"""Some rows of a matrix as a matrix of their own, for loops that come back to them often.

Rows that lie here and there are brought together, and the columns that they hold are numbered as
they come: what is frequent comes early, so weights that are often asked for lie close to each other
and stay in the first cache. Entries of a row keep their order, so its sums have the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pegasos.core.dispatch import generic
from pegasos.core.jit import hot
from pegasos.core.rows import CsrRows


@generic
def is_scattered(rows: Any) -> bool:
    """Whether rows touch weights here and there, so that a compact copy is faster to go over"""
    return False


@generic
def entries_of(rows: Any, chosen: np.ndarray) -> int:
    """How many the chosen rows have"""


@generic
def compact(rows: Any, chosen: np.ndarray) -> tuple[Any, np.ndarray]:
    """The chosen rows, and the columns that they are on, the virtual one last"""


@is_scattered.register(CsrRows)
def _(rows):
    return True


@entries_of.register(CsrRows)
def _(rows, chosen):
    return int((rows.starts[chosen + 1] - rows.starts[chosen]).sum())


@compact.register(CsrRows)
def _(rows, chosen):
    starts = np.zeros(chosen.size + 1, dtype=np.uint64)
    np.cumsum(rows.starts[chosen + 1] - rows.starts[chosen], out=starts[1:])
    size = int(starts[-1])
    values, columns = np.empty(size, rows.values.dtype), np.empty(size, rows.columns.dtype)
    number = np.full(rows.width, -1, dtype=np.int64)
    found = np.empty(min(rows.width, size) + 1, dtype=np.int64)
    width = _take(rows, chosen, (values, columns, starts), number, found)
    found[width] = rows.width
    for array in (values, columns, starts):
        array.flags.writeable = False  # as those of all rows: one compiled loop for both
    return CsrRows(values, columns, starts, width, rows.bias), found[: width + 1]


@hot
def _take(rows, chosen, out, number, found):
    """Copy entries and number columns; returns how many there are."""
    values, columns, starts = out
    width = 0
    for t in range(chosen.shape[0]):
        i, place = chosen[t], starts[t]
        first, end = rows.starts[i], rows.starts[i + 1]
        x, j = rows.values[first:end], rows.columns[first:end]
        to, at = values[place : place + x.shape[0]], columns[place : place + x.shape[0]]
        for k in range(x.shape[0]):
            name = number[j[k]]
            if name < 0:
                name = width
                number[j[k]] = name
                found[name] = j[k]
                width += 1
            to[k] = x[k]
            at[k] = name
    return width
