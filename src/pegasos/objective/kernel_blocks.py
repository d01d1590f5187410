"""Blocks of kernel values: a matrix product and one compiled pass, wherever the kernel allows.

Values are computed in the precision of the points, a block of CSR rows by writing a panel of them
out by columns and streaming the others through it. Large blocks use the threads that are allowed;
no value depends on their number. A kernel that is no function of products registers `fill`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pegasos.core.crew import roam
from pegasos.core.cross import place_columns, row_against, row_apart, write_columns
from pegasos.core.dispatch import generic, helper
from pegasos.core.elementary import exponential
from pegasos.core.jit import hot, hot_allocating
from pegasos.core.rows import CsrRows, DenseRows, n_columns, n_rows
from pegasos.core.threads import run_blocks
from pegasos.data.check import as_matrix
from pegasos.objective.kernel_points import Given, Items, Points, in_precision_of, n_points, take
from pegasos.objective.kernels import (
    Exp,
    Function,
    Laplacian,
    Precomputed,
    Product,
    Scaled,
    Shifted,
    Sum,
    by_products,
    in_precision,
    of_products,
)

_TILE = 1 << 17  # values of a tile: half a megabyte of float32, which stays in the cache
_PANEL = 128  # rows of a tile, and rows that others are streamed through
_SHARE = 1 << 19  # values that are worth a thread of their own


@generic
def fill(kernel: Any, a: Points, b: Points, out: np.ndarray) -> None:
    """out = K(a, b), for kernels that are no function of products"""


@generic
def row_towards(kernel: Any, rows: Any, i: int, panel: Any, out: np.ndarray, found: Any) -> None:
    """What of_products is a function of, for row i against the rows of a panel: products"""
    place, T = panel
    row_against(rows, i, place, T, out, found)


def block(kernel: Any, a: Points, b: Points, out: np.ndarray | None = None) -> np.ndarray:
    """K(x, z) for all x of a and z of b: (len(a), len(b)), in the dtype of the points."""
    dtype = values_dtype(a.rows)
    if out is not None and out.dtype == dtype and out.flags.c_contiguous:
        made = out
    else:
        made = np.empty((n_points(a), n_points(b)), dtype)
    if made.size:
        _fill(kernel, a, b, made)
    if out is None or made is out:
        return made
    out[...] = made
    return out


def precise(kernel: Any, a: Points, b: Points) -> np.ndarray:
    """The block in float64 arithmetic, from the points as they are."""
    out = np.empty((n_points(a), n_points(b)))
    if out.size:
        _fill(kernel, in_precision_of(a, np.float64), in_precision_of(b, np.float64), out)
    return out


def diagonal(kernel: Any, points: Points) -> np.ndarray:
    """K(x, x) in float64."""
    out = np.empty(n_points(points))
    if by_products(kernel):
        _diagonal(in_precision(kernel, np.float64), points.sqnorms, out)
        return out
    for s in range(0, out.size, 16):
        some = take(points, np.arange(s, min(s + 16, out.size)))
        out[s : s + 16] = np.diagonal(precise(kernel, some, some))
    return out


def values_dtype(rows: Any) -> np.dtype:
    """The dtype of a block of such rows."""
    if isinstance(rows, Items):
        return np.dtype(np.float64)
    return (rows.matrix if isinstance(rows, Given) else rows.values).dtype


def _fill(kernel: Any, a: Points, b: Points, out: np.ndarray) -> None:
    if not by_products(kernel):
        fill(kernel, a, b, out)
        return
    k = in_precision(kernel, out.dtype)
    aa, bb = a.sqnorms.astype(out.dtype, copy=False), b.sqnorms.astype(out.dtype, copy=False)
    if isinstance(a.rows, DenseRows):
        A, B = a.rows.values, b.rows.values
        _by_tiles(k, (A, aa), (B, bb), out, lambda r, s, tile: np.matmul(A[r], B[s].T, out=tile))
    else:
        _by_streaming(k, a.rows, b.rows, (aa, bb), out)


def _by_tiles(kernel: Any, a: Any, b: Any, out: np.ndarray, meet: Any) -> None:
    """meet(rows, others, tile) fills a tile, which becomes values while it is in the cache."""
    (A, aa), (B, bb) = a, b
    width = max(64, _TILE // min(len(A), _PANEL))

    def part(start: int, stop: int) -> None:
        for r in range(0, len(A), _PANEL):
            rows = slice(r, r + _PANEL)
            for s in range(start, stop, width):
                e = min(s + width, stop)
                meet(rows, slice(s, e), out[rows, s:e])
                _finish(kernel, out[rows], aa[rows], bb, s, e)

    run_blocks(part, len(B), max(width, _SHARE // len(A)))


@hot
def _finish(kernel, K, aa, bb, start, stop):
    for r in range(K.shape[0]):
        _values(kernel, K[r, start:stop], aa[r], bb[start:stop])


@helper
def _values(kernel, line, a, bb):
    """Products become values. A function of its own, which vectorises in any loop around it."""
    for s in range(line.shape[0]):
        line[s] = of_products(kernel, line[s], a, bb[s])


def _by_streaming(kernel: Any, rows: Any, others: Any, norms: Any, out: np.ndarray) -> None:
    aa, bb = norms
    for r in range(0, n_rows(rows), _PANEL):
        e = min(r + _PANEL, n_rows(rows))
        place = np.zeros(n_columns(rows), dtype=np.uint32)
        T = np.zeros((_place(rows, r, e, place) + 1, e - r), dtype=out.dtype)
        _write(rows, r, place, T)

        def part(start: int, stop: int, panel=(place, T), sums=(aa[r:e], bb), K=out[r:e]) -> None:
            _stream(kernel, panel, others, sums, K, start, stop)

        run_blocks(part, n_rows(others), max(64, _SHARE // (8 * (e - r))))


@hot
def _place(rows, start, stop, place):
    return place_columns(rows, start, stop, place)


@hot
def _write(rows, start, place, T):
    write_columns(rows, start, place, T)


@hot_allocating
def _stream(kernel, panel, rows, norms, out, start, stop):
    """Values of a few rows are collected in a buffer, and turned over into `out`."""
    aa, bb = norms
    n = aa.shape[0]
    buffer = np.empty((64, n + 8), out.dtype)  # wider, lest lines meet in one place of the cache
    found = np.empty(256, np.uint32), np.empty(256, out.dtype)
    for first in range(start, stop, 64):
        m = min(64, stop - first)
        for s in range(m):
            line = buffer[s, :n]
            row_towards(kernel, rows, first + s, panel, line, found)
            _values(kernel, line, bb[first + s], aa)
        for r in range(0, n - 7, 8):
            for s in range(m):
                eight = buffer[s, r : r + 8]
                for q in range(8):
                    out[r + q, first + s] = eight[q]
        for r in range(n - n % 8, n):
            for s in range(m):
                out[r, first + s] = buffer[s, r]


@hot
def _diagonal(kernel, sqnorms, out):
    for i in range(out.shape[0]):
        out[i] = of_products(kernel, sqnorms[i], sqnorms[i], sqnorms[i])


class _CityBlock(NamedTuple):
    """exp(-gamma (t + a + b)): t = ||x - z||_1 - ||x||_1 - ||z||_1, and these two norms."""

    gamma: float


@of_products.register(_CityBlock)
def _(kernel, t, a, b):
    return exponential(-abs(kernel.gamma * (a + b + t)))


@row_towards.register(_CityBlock)
def _(kernel, rows, i, panel, out, found):
    place, T = panel
    row_apart(rows, i, place, T, out, found)


@fill.register(Laplacian)
def _(kernel, a, b, out):
    scalar = out.dtype.type
    k = _CityBlock(scalar(kernel.gamma))
    if isinstance(a.rows, DenseRows):
        A, B, none = a.rows.values, b.rows.values, np.zeros(max(out.shape), out.dtype)

        def meet(rows, others, tile):
            written = np.empty(tile.shape, tile.dtype)
            _distances(A[rows], B[others].T.copy(), written)
            tile[...] = written

        _by_tiles(k, (A, none), (B, none), out, meet)
    else:
        sums = _sums(a.rows, out.dtype), _sums(b.rows, out.dtype)
        _by_streaming(k, a.rows, b.rows, sums, out)


@hot
def _distances(A, T, out):
    """out[r, s] = sum_j |A[r, j] - T[j, s]|"""
    for r in range(A.shape[0]):
        total = out[r]
        total[:] = 0.0
        for j in range(A.shape[1]):
            x, line = A[r, j], T[j]
            for s in range(total.shape[0]):
                total[s] += abs(x - line[s])


def _sums(rows: CsrRows, dtype: Any) -> np.ndarray:
    """||x||_1 of all rows."""
    ends = np.concatenate([[0.0], np.cumsum(np.abs(rows.values), dtype=np.float64)])
    return np.diff(ends[rows.starts.astype(np.int64)]).astype(dtype)


@fill.register(Precomputed)
def _(kernel, a, b, out):
    out[...] = a.rows.matrix[np.ix_(a.rows.index, b.rows.index)]


@fill.register(Function)
def _(kernel, a, b, out):
    roam()
    A, B = as_matrix(a.rows), as_matrix(b.rows)
    pairs = _takes_pairs(kernel.f, A, B) if kernel.pairs is None else kernel.pairs
    if not pairs:
        out[...] = _checked(kernel.f(A, B), out.shape)
        return
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = kernel.f(A[i], B[j])


def _takes_pairs(f: Any, A: Any, B: Any) -> bool:
    """Whether f is a function of two points: of 2 and 3 of them it gives no 2 x 3 matrix."""
    try:
        tried = f(A[np.arange(2) % A.shape[0]], B[np.arange(3) % B.shape[0]])
        return np.shape(tried) != (2, 3)
    except Exception:
        return True


def _checked(K: Any, shape: tuple[int, ...]) -> Any:
    if np.shape(K) != shape:
        raise ValueError(
            f"the kernel function gave {np.shape(K)} values for {shape[0]} and {shape[1]} points; "
            "it must give a matrix of that shape, or be of two points: Function(f, pairs=True)"
        )
    return K


@fill.register(Sum)
def _(kernel, a, b, out):
    _fill(kernel.left, a, b, out)
    out += block(kernel.right, a, b)


@fill.register(Product)
def _(kernel, a, b, out):
    _fill(kernel.left, a, b, out)
    out *= block(kernel.right, a, b)


@fill.register(Scaled)
def _(kernel, a, b, out):
    _fill(kernel.kernel, a, b, out)
    out *= kernel.factor


@fill.register(Shifted)
def _(kernel, a, b, out):
    _fill(kernel.kernel, a, b, out)
    out += kernel.constant


@fill.register(Exp)
def _(kernel, a, b, out):
    _fill(kernel.kernel, a, b, out)
    np.exp(out, out=out)
