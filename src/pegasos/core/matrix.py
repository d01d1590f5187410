"""Whole-matrix operations on rows: X w, X' a, X' diag(h) X, row norms.

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
    row_outer,
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
_COPY = 32  # entries to a column: or a private sum costs a tenth or more of its block
_HALVES = 8  # the same for two sums, which two threads still make sooner than one its own
_GRAM_BLOCK = 5e5  # the same of a Gram matrix
MAX_WIDTH = 10_000  # columns of a Gram matrix: 0.8 GB
_AHEAD = 4  # rows between a prefetch and the use of the row


@hot
def _products(rows, w, out, start, stop):
    for i in range(start, stop):
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
    run_blocks(lambda s, e: _products(rows, w, out, s, e), n_rows(rows), _block(rows))
    return out


@generic
def all_products(rows: Any, W: np.ndarray) -> np.ndarray:
    """X W for several weight vectors, the columns of W; each row is read once."""
    n, width = n_rows(rows), n_columns(rows) + 1
    out = np.empty((n, W.shape[1]))
    if n_entries(rows) < 0.1 * n * width:
        block = _block(rows, times=W.shape[1])
        run_blocks(lambda s, e: _all_products(rows, W, out, s, e), n, block)
        return out
    ones, size = np.ones(n), max(16, (1 << 17) // width)  # rows written out for BLAS, in cache

    def part(start: int, stop: int) -> None:
        written = np.empty((size, width))
        for s in range(start, stop, size):
            e = min(s + size, stop)
            _write_out(rows, ones, np.arange(s, e), written[: e - s])
            np.matmul(written[: e - s], W, out=out[s:e])

    run_blocks(part, n, max(size, _block(rows, times=W.shape[1])))
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
    block = _block(rows, times=LANES)
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
    out, block = np.empty(n_rows(rows)), _block(rows, times=1 / 3)  # there are no weights to fetch
    run_blocks(lambda s, e: _sqnorms(rows, out, s, e), n_rows(rows), block)
    return out


def _block(rows: Any, most: float = np.inf, times: float = 1.0) -> int:
    """Rows in a block, of `most` equal ones at most, for so many times the work of a product."""
    n = n_rows(rows)
    work = times * n * (row_work(rows) + 3.0)
    parts = min(round(work / _BLOCK), most) if work > _ALONE else 1
    return max(1, -(-n // max(1, parts)))


def _sum_block(rows: Any) -> int:
    """The same for blocks with a private sum over columns, which entries have to outweigh."""
    full = n_entries(rows) // (n_columns(rows) + 1)
    return _block(rows, max(full // _COPY, min(2, full // _HALVES)))


def occupied(rows: Any) -> np.ndarray:
    """Indices of the columns that hold anything, the virtual one included.

    A random combination of the rows vanishes in an empty column and, but for an accident of
    probability zero, in no other.
    """
    weights = np.random.default_rng(0).uniform(1.0, 2.0, n_rows(rows))
    return np.flatnonzero(combine(rows, weights))


def gram_columns(rows: Any) -> np.ndarray:
    """The columns for a Gram matrix: those that hold anything; all, if to look costs as much.

    To a matrix with R on its diagonal an empty column does nothing.
    """
    if gram_work(rows) < 16.0 * n_rows(rows) * (row_work(rows) + 5.0):
        return np.arange(n_columns(rows) + (rows.bias != 0.0))
    return occupied(rows)


@generic
def gram(rows: Any, h: np.ndarray, dtype: Any, columns: np.ndarray) -> np.ndarray:
    """X' diag(h) X of the given columns, which ascend; products in `dtype`, sums in float64.

    Rows with h = 0 cost nothing; h < 0 takes rows from an earlier matrix.
    """
    if n_columns(rows) > MAX_WIDTH:
        raise ValueError(
            f"Newton and interior point need a d x d matrix, which for {n_columns(rows)} columns "
            f"takes {8e-9 * n_columns(rows) ** 2:.1f} GB (limit: {MAX_WIDTH} columns); "
            "use solver='dual' or 'auto'"
        )
    chosen = np.flatnonzero(h != 0.0)  # of numbers it would take four times as long
    if few(rows):
        return _outer_gram(rows, h, chosen, columns)
    taken = h[chosen] < 0.0
    if not taken.any():
        return _blas_gram(rows, h, chosen, dtype, columns)
    size = np.abs(h)
    more = _blas_gram(rows, size, chosen[~taken], dtype, columns)
    return more - _blas_gram(rows, size, chosen[taken], dtype, columns)


def few(rows: Any) -> bool:
    """Whether outer products of the entries of a row are less work than whole ones."""
    return n_entries(rows) ** 2 < 0.1 * (n_rows(rows) * n_columns(rows)) ** 2


@generic
def gram_work(rows: Any) -> float:
    """The time of a Gram matrix in nanoseconds (about: for choosing a method)."""
    n, d, entries = n_rows(rows), n_columns(rows), n_entries(rows)
    return 0.5 * entries**2 / max(1, n) if few(rows) else n * (0.013 * d * d + 0.25 * d + 10.0)


def _gram_block(rows: Any, chosen: int) -> int:
    """Rows to a sum of its own, which is as large as the matrix: few sums, of many rows each."""
    times = gram_work(rows) * chosen / n_rows(rows) / _GRAM_BLOCK
    parts = min(8, round(times), chosen // (3 * n_columns(rows)))
    return max(1, -(-chosen // max(1, parts)))


def _blas_gram(rows, h, chosen, dtype, columns):
    """Gram matrix by BLAS, from blocks of the chosen rows written out and weighted."""
    width = n_columns(rows) + 1
    size = max(256, 2 * width, (1 << 18) // width)  # rows: in cache, yet many to a sum of d x d
    first = columns.size == 0 or columns[-1] == columns.size - 1  # none empty: no copy

    def part(start: int, stop: int) -> np.ndarray:
        total = np.zeros((columns.size, columns.size))
        block = np.empty((min(size, stop - start), width), dtype=dtype)
        for s in range(start, stop, size):
            written = block[: min(size, stop - s)]
            _write_out(rows, h, chosen[s : min(s + size, stop)], written)
            used = written[:, : columns.size] if first else written[:, columns]
            total += used.T @ used
        return total

    parts = run_blocks(part, chosen.size, max(size, _gram_block(rows, chosen.size)))
    return _total(parts, columns.size)


def _total(parts: list[np.ndarray], size: int) -> np.ndarray:
    """The sum of matrices that are no longer needed; there may be none."""
    if not parts:
        return np.zeros((size, size))
    for other in parts[1:]:
        parts[0] += other
    return parts[0]


def _outer_gram(rows, h, chosen, columns):
    """Gram matrix of rows with few entries: the sum of their outer products."""
    width = n_columns(rows) + 1

    def part(start: int, stop: int) -> np.ndarray:
        out = np.zeros((width, width))
        _add_outer(rows, h, chosen[start:stop], out)
        return out

    parts = run_blocks(part, chosen.size, _gram_block(rows, chosen.size))
    out = np.empty((columns.size, columns.size))
    _mirror(_total(parts, width), columns, out)
    return out


@hot
def _mirror(lower, columns, out):
    """The given rows and columns of a symmetric matrix, of which the lower triangle is known."""
    for k in range(columns.shape[0]):
        line = lower[columns[k]]
        for m in range(k + 1):
            out[k, m] = out[m, k] = line[columns[m]]


@hot
def _write_out(rows, h, chosen, block):
    """block[s] = sqrt(h_i) x_i for i = chosen[s]"""
    for s in range(chosen.shape[0]):
        row_write(rows, chosen[s], np.sqrt(h[chosen[s]]), block[s])


@hot_allocating
def _add_outer(rows, h, chosen, out):
    """out += sum h_i x_i x_i' over chosen rows, lower triangle"""
    n = chosen.shape[0]
    for s in range(n):
        if s + _AHEAD < n:
            row_prefetch(rows, chosen[s + _AHEAD])
        row_outer(rows, chosen[s], h[chosen[s]], out)
