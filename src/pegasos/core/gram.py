"""X' diag(h) X, the Gram matrix of weighted rows, three ways.

Rows with few entries: the sum of their outer products. Up to some hundred columns: tiles of eight
by eight sums that stay in registers, over rows written out a few at a time. Beyond: BLAS.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pegasos.core.dispatch import generic, helper
from pegasos.core.jit import hot, hot_allocating
from pegasos.core.matrix import combine, write_out
from pegasos.core.rows import (
    n_columns,
    n_entries,
    n_rows,
    row_outer,
    row_prefetch,
    row_work,
    row_write,
)
from pegasos.core.threads import run_blocks
from pegasos.core.tile import SIDE, add_tile, tiled

_BLOCK = 5e5  # nanoseconds that a block of rows should take
_TILED = 256  # columns: beyond, BLAS is as fast
_WRITTEN = 128  # rows written out at a time: they stay in the nearest cache
_AHEAD = 4  # rows between a prefetch and the use of the row
MAX_WIDTH = 10_000  # columns: 0.8 GB


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
    written = _tile_gram if n_columns(rows) < _TILED else _blas_gram
    if not h.min(initial=0.0) < 0.0:
        return written(rows, h, chosen, dtype, columns)
    size, taken = np.abs(h), h[chosen] < 0.0
    more = written(rows, size, chosen[~taken], dtype, columns)
    return more - written(rows, size, chosen[taken], dtype, columns)


def few(rows: Any) -> bool:
    """Whether outer products of the entries of a row are less work than whole ones."""
    return n_entries(rows) ** 2 < 0.1 * (n_rows(rows) * n_columns(rows)) ** 2


@generic
def gram_work(rows: Any) -> float:
    """The time of a Gram matrix in nanoseconds (about: for choosing a method)."""
    n, d, entries = n_rows(rows), n_columns(rows), n_entries(rows)
    return 0.5 * entries**2 / max(1, n) if few(rows) else n * (0.0125 * d * d + 0.2 * d + 4.0)


def _gram_block(rows: Any, chosen: int) -> int:
    """Rows to a sum of its own, which is as large as the matrix: few sums, of many rows each."""
    times = gram_work(rows) * chosen / n_rows(rows) / _BLOCK
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
            write_out(rows, h, chosen[s : min(s + size, stop)], written)
            used = written[:, : columns.size] if first else written[:, columns]
            total += used.T @ used
        return total

    parts = run_blocks(part, chosen.size, max(size, _gram_block(rows, chosen.size)))
    return _total(parts, columns.size)


def _tile_gram(rows, h, chosen, dtype, columns):
    """Gram matrix by tiles, from some of the chosen rows at a time, written out and weighted."""
    last = tiled(int(columns[-1]) + 1 if columns.size else 0)

    def part(start: int, stop: int) -> np.ndarray:
        out = np.zeros((last, last))
        _add_tiles(rows, h, chosen[start:stop], room_for_tiles(rows, dtype), out)
        return out

    parts = run_blocks(part, chosen.size, _gram_block(rows, chosen.size))
    return _mirrored(_total(parts, last), columns)


def room_for_tiles(rows: Any, dtype: Any) -> np.ndarray:
    """For rows written out, in whole tiles."""
    return np.zeros((_WRITTEN, tiled(n_columns(rows) + 1)), dtype)


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
    return _mirrored(_total(parts, width), columns)


def _mirrored(lower: np.ndarray, columns: np.ndarray) -> np.ndarray:
    out = np.empty((columns.size, columns.size))
    _mirror(lower, columns, out)
    return out


@hot
def _mirror(lower, columns, out):
    """The given rows and columns of a symmetric matrix, of which the lower triangle is known."""
    for k in range(columns.shape[0]):
        line = lower[columns[k]]
        for m in range(k + 1):
            out[k, m] = out[m, k] = line[columns[m]]


@hot
def _add_tiles(rows, h, chosen, written, out):
    """out += sum h_i x_i x_i' over chosen rows, the tiles of the lower triangle"""
    room = written.shape[0]
    for start in range(0, chosen.shape[0], room):
        n = min(room, chosen.shape[0] - start)
        for s in range(n):
            i = chosen[start + s]
            row_write(rows, i, np.sqrt(h[i]), written[s])
        add_tiles(written, n, out)


@helper
def add_tiles(written, n, out):
    """out += X' X of the first n rows, the tiles of the lower triangle"""
    for j in range(0, out.shape[0], SIDE):
        for k in range(0, j + SIDE, SIDE):
            add_tile(written, n, j, k, out)


@hot_allocating
def _add_outer(rows, h, chosen, out):
    """out += sum h_i x_i x_i' over chosen rows, lower triangle"""
    n = chosen.shape[0]
    for s in range(n):
        if s + _AHEAD < n:
            row_prefetch(rows, chosen[s + _AHEAD])
        row_outer(rows, chosen[s], h[chosen[s]], out)
