"""A row against many weight vectors, the columns of W: each entry meets a line of numbers.

`row_products` and `row_spread` are for any number of them, `row_dots` and `row_axpys` for LANES.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pegasos.core.dispatch import generic
from pegasos.core.lanes import add_line, axpys, dots, put_line
from pegasos.core.rows import CsrRows, DenseRows


@generic
def row_products(rows: Any, i: int, W: np.ndarray, out: np.ndarray) -> None:
    """out = x_i . W for all columns of W"""


@generic
def row_spread(rows: Any, i: int, a: np.ndarray, W: np.ndarray) -> None:
    """W += x_i a' for all columns of W"""


@generic
def row_dots(rows: Any, i: int, W: np.ndarray, out: np.ndarray) -> None:
    """out = x_i . W for the LANES columns of W (see `core.lanes`)"""


@generic
def row_axpys(rows: Any, i: int, a: np.ndarray, W: np.ndarray) -> None:
    """W += x_i a', for the LANES numbers of a"""


@generic
def makes_arrays(rows: Any) -> bool:
    """Whether `row_dots` and `row_axpys` need arrays of their own"""
    return False


@generic
def row_mark(rows: Any, i: int, marks: np.ndarray) -> None:
    """marks[j] = True for all columns j in which row i has an entry, the virtual one included"""
    marks[:] = True


@row_mark.register(CsrRows)
def _(rows, i, marks):
    for k in range(rows.starts[i], rows.starts[i + 1]):
        marks[rows.columns[k]] = True
    marks[rows.width] = True


@row_products.register(DenseRows)
def _(rows, i, W, out):
    x = rows.values[i]
    for p in range(out.shape[0]):
        out[p] = rows.bias * W[x.shape[0], p]
    for k in range(x.shape[0]):
        line = W[k]
        for p in range(out.shape[0]):
            out[p] += x[k] * line[p]


@row_products.register(CsrRows)
def _(rows, i, W, out):
    for p in range(out.shape[0]):
        out[p] = rows.bias * W[rows.width, p]
    for k in range(rows.starts[i], rows.starts[i + 1]):
        x, line = rows.values[k], W[rows.columns[k]]
        for p in range(out.shape[0]):
            out[p] += x * line[p]


@row_spread.register(DenseRows)
def _(rows, i, a, W):
    x = rows.values[i]
    for k in range(x.shape[0]):
        line = W[k]
        for p in range(a.shape[0]):
            line[p] += x[k] * a[p]
    for p in range(a.shape[0]):
        W[x.shape[0], p] += rows.bias * a[p]


@row_spread.register(CsrRows)
def _(rows, i, a, W):
    for k in range(rows.starts[i], rows.starts[i + 1]):
        x, line = rows.values[k], W[rows.columns[k]]
        for p in range(a.shape[0]):
            line[p] += x * a[p]
    for p in range(a.shape[0]):
        W[rows.width, p] += rows.bias * a[p]


@row_dots.register(DenseRows)
def _(rows, i, W, out):
    x = rows.values[i]
    put_line(W, x.shape[0], rows.bias, out, 0)
    dots(x, None, W, out)


@row_dots.register(CsrRows)
def _(rows, i, W, out):
    first, end = rows.starts[i], rows.starts[i + 1]
    put_line(W, rows.width, rows.bias, out, 0)
    dots(rows.values[first:end], rows.columns[first:end], W, out)


@row_axpys.register(DenseRows)
def _(rows, i, a, W):
    x = rows.values[i]
    axpys(x, None, a, W)
    add_line(a, 0, rows.bias, W, x.shape[0])


@row_axpys.register(CsrRows)
def _(rows, i, a, W):
    first, end = rows.starts[i], rows.starts[i + 1]
    axpys(rows.values[first:end], rows.columns[first:end], a, W)
    add_line(a, 0, rows.bias, W, rows.width)
