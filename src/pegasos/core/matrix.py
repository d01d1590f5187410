"""Whole-matrix operations on rows: X w, X' a, row norms; X' diag(h) X is in `core.gram`.

Each runs over blocks of rows (see `core.threads`), so that it can be interrupted and threaded.
All are made of the verbs of `core.rows`; a storage without these registers its own operations.
Loops over verbs that a storage may need arrays for (`core.polynomial` does) may make arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from pegasos.core.dispatch import generic
from pegasos.core.jit import hot, hot_allocating
from pegasos.core.lanes import LANES, lines
from pegasos.core.many import row_axpys, row_dots, row_products
from pegasos.core.rows import (
    n_columns,
    n_entries,
    n_rows,
    row_axpy,
    row_dot,
    row_prefetch,
    row_sqnorm,
    row_squares,
    row_work,
    row_write,
    rows_axpy,
)
from pegasos.core.threads import run_blocks

_BLOCK = 3e5  # nanoseconds that a block of rows should take: a helper begins a third of that late
_ALONE = 8e5  # the same of all rows: less is done by the time that a helper has done its part
_CACHED, _AHEAD = 1 << 23, 4  # entries that a cache may hold; beyond, rows are asked for so early
_COPY = 32  # entries to a column: or a private sum costs a tenth or more of its block
_HALVES = 8  # the same for two sums, which two threads still make sooner than one its own


@hot
def _products(rows, w, out, start, stop):
    far = n_entries(rows) > _CACHED
    for i in range(start, stop):
        if far and i + _AHEAD < stop:
            row_prefetch(rows, i + _AHEAD)
        out[i] = row_dot(rows, i, w)


@hot_allocating
def _all_products(rows, W, out, start, stop):
    for i in range(start, stop):
        row_products(rows, i, W, out[i])


@hot_allocating
def _lane_products(rows, W, out, start, stop):
    for i in range(start, stop):
        row_dots(rows, i, W, out[i])


@hot_allocating
def _lane_combine(rows, A, out, start, stop):
    for i in range(start, stop):
        some = 0.0
        for p in range(LANES):
            some += abs(A[i, p])
        if some != 0.0:
            row_axpys(rows, i, A[i], out)


@hot
def _combine(rows, a, out, start, stop):
    rows_axpy(rows, a, start, stop, out)


@hot
def _bend(rows, h, x, out, start, stop):
    for i in range(start, stop):
        if h[i] != 0.0:
            row_axpy(rows, i, h[i] * row_dot(rows, i, x), out)


@hot_allocating
def _squares(rows, h, out, start, stop):
    for i in range(start, stop):
        if h[i] != 0.0:
            row_squares(rows, i, h[i], out)


@hot_allocating
def _sqnorms(rows, out, start, stop):
    for i in range(start, stop):
        out[i] = row_sqnorm(rows, i)


@generic
def products(rows: Any, w: np.ndarray) -> np.ndarray:
    """X w, the virtual column included."""
    out = np.empty(n_rows(rows))
    run_blocks(lambda s, e: _products(rows, w, out, s, e), n_rows(rows), row_block(rows))
    return out


@generic
def all_products(rows: Any, W: np.ndarray) -> np.ndarray:
    """X W for several weight vectors, the columns of W; each row is read once."""
    n, width = n_rows(rows), n_columns(rows) + 1
    out = np.empty((n, W.shape[1]))
    if n_entries(rows) < 0.1 * n * width:
        block = row_block(rows, times=W.shape[1])
        run_blocks(lambda s, e: _all_products(rows, W, out, s, e), n, block)
        return out
    ones, size = np.ones(n), max(16, (1 << 17) // width)  # rows written out for BLAS, in cache

    def part(start: int, stop: int) -> None:
        written = np.empty((size, width))
        for s in range(start, stop, size):
            e = min(s + size, stop)
            write_out(rows, ones, np.arange(s, e), written[: e - s])
            np.matmul(written[: e - s], W, out=out[s:e])

    run_blocks(part, n, max(size, row_block(rows, times=W.shape[1])))
    return out


@generic
def combine(rows: Any, a: np.ndarray) -> np.ndarray:
    """X' a, the virtual column included."""
    return _summed(rows, partial(_combine, rows, a))


@generic
def bent(rows: Any, h: np.ndarray, x: np.ndarray) -> np.ndarray:
    """X' diag(h) X x; rows with h = 0 cost nothing."""
    return _summed(rows, partial(_bend, rows, h, x))


@generic
def squares(rows: Any, h: np.ndarray) -> np.ndarray:
    """The diagonal of X' diag(h) X."""
    return _summed(rows, partial(_squares, rows, h))


def _summed(rows: Any, add: Callable[[np.ndarray, int, int], Any]) -> np.ndarray:
    """The sum over blocks of rows of what add(out, start, stop) adds to a vector over columns."""

    def part(start: int, stop: int) -> np.ndarray:
        out = np.zeros(n_columns(rows) + 1)
        add(out, start, stop)
        return out

    parts = run_blocks(part, n_rows(rows), _sum_block(rows))
    total = parts[0]
    for other in parts[1:]:
        total += other
    return total


def lane_products(rows: Any, W: np.ndarray) -> np.ndarray:
    """X W for a W of float64 lines; each row is read once."""
    out = lines(n_rows(rows), np.float64)
    block = row_block(rows, times=LANES)
    run_blocks(lambda s, e: _lane_products(rows, W, out, s, e), n_rows(rows), block)
    return out


def lane_combine(rows: Any, A: np.ndarray) -> np.ndarray:
    """X' A for an A of float64 lines."""
    width, block = n_columns(rows) + 1, LANES * _sum_block(rows)  # its private copies are wide

    def part(start: int, stop: int) -> np.ndarray:
        out = lines(width, np.float64)
        _lane_combine(rows, A, out, start, stop)
        return out

    first, *others = run_blocks(part, n_rows(rows), block)
    for other in others:
        first += other
    return first


def all_combine(rows: Any, A: np.ndarray) -> np.ndarray:
    """X' A for the columns of A, which are as many weight vectors."""
    out = np.empty((n_columns(rows) + 1, A.shape[1]))
    for k in range(0, A.shape[1], LANES):
        part = lines(n_rows(rows), np.float64)
        taken = A[:, k : k + LANES]
        part[:, : taken.shape[1]] = taken
        out[:, k : k + LANES] = lane_combine(rows, part)[:, : taken.shape[1]]
    return out


@generic
def sqnorms(rows: Any) -> np.ndarray:
    """||x_i||^2 of all rows, the virtual column included."""
    out = np.empty(n_rows(rows))
    block = row_block(rows, times=1 / 3)  # there are no weights to fetch
    run_blocks(lambda s, e: _sqnorms(rows, out, s, e), n_rows(rows), block)
    return out


def row_block(rows: Any, most: float = np.inf, times: float = 1.0) -> int:
    """Rows in a block, of `most` equal ones at most, for so many times the work of a product."""
    n = n_rows(rows)
    work = times * n * (row_work(rows) + 3.0)
    parts = min(round(work / _BLOCK), most) if work > _ALONE else 1
    return max(1, -(-n // max(1, parts)))


def is_one_block(rows: Any) -> bool:
    """Whether threads would not share a product."""
    return row_block(rows) >= n_rows(rows)


def _sum_block(rows: Any) -> int:
    """The same for blocks with a private sum over columns, which entries have to outweigh."""
    full = n_entries(rows) // (n_columns(rows) + 1)
    return row_block(rows, max(full // _COPY, min(2, full // _HALVES)))


@hot
def write_out(rows, h, chosen, block):
    """block[s] = sqrt(h_i) x_i for i = chosen[s]"""
    for s in range(chosen.shape[0]):
        row_write(rows, chosen[s], np.sqrt(h[chosen[s]]), block[s])
