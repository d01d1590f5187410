"""Blocks of kernel values, by matrix products wherever the kernel allows.

`points` prepares rows once: moved to their mean where the kernel depends on differences alone (so
that ||x||^2 + ||z||^2 - 2 x.z loses no digits), squared norms kept. `block` is then a matrix
product and one compiled pass, in the precision of the rows. Large blocks use the threads that are
allowed; no value depends on their number.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from pegasos.core.cross import (
    gathered,
    in_dtype,
    place_columns,
    row_against,
    write_columns,
    written_out,
)
from pegasos.core.jit import hot
from pegasos.core.matrix import sqnorms
from pegasos.core.rows import CsrRows, DenseRows, n_columns, n_rows
from pegasos.core.threads import run_blocks
from pegasos.data.check import as_rows
from pegasos.objective.kernels import (
    in_precision,
    of_distance,
    of_products,
)

_TILE = 1 << 17  # values of a tile: half a megabyte of float32, which stays in the cache
_PANEL = 128  # rows that others are streamed through


class Points(NamedTuple):
    """Rows made ready for a kernel; float32 or float64 as given. `center` was subtracted."""

    rows: Any
    sqnorms: np.ndarray
    center: np.ndarray


def points(kernel: Any, X: Any, like: Points | None = None) -> Points:
    """Rows, an array or a CSR matrix made ready; `like`: in the way other points were."""
    rows = X if isinstance(X, DenseRows | CsrRows) else as_rows(X)
    center = np.zeros(0)
    if like is not None:
        rows = _stored_as(rows, like.rows)
        center = like.center
    elif of_distance(kernel) and isinstance(rows, DenseRows) and n_rows(rows):
        center = rows.values.mean(axis=0, dtype=np.float64)
    if center.size:
        moved = np.subtract(rows.values, center, dtype=np.float64)
        rows = DenseRows(moved.astype(rows.values.dtype, copy=False), 0.0)
    return Points(rows, sqnorms(rows), center)


def _stored_as(rows: Any, other: Any) -> Any:
    """The rows in the storage and dtype of others."""
    if isinstance(other, DenseRows) and not isinstance(rows, DenseRows):
        rows = DenseRows(written_out(rows), 0.0)
    elif isinstance(other, CsrRows) and not isinstance(rows, CsrRows):
        rows = as_rows(sp.csr_array(rows.values))
    return in_dtype(rows, other.values.dtype)


def n_points(points: Points) -> int:
    return n_rows(points.rows)


def take(points: Points, index: np.ndarray) -> Points:
    """The chosen points, copied."""
    return points._replace(rows=gathered(points.rows, index), sqnorms=points.sqnorms[index])


def in_precision_of(points: Points, dtype: Any) -> Points:
    """The points in another precision: float32 for speed, float64 for a proof."""
    return points._replace(rows=in_dtype(points.rows, dtype))


def block(kernel: Any, a: Points, b: Points, out: np.ndarray | None = None) -> np.ndarray:
    """K(x, z) for all x of a and z of b: an array (len(a), len(b)) in the dtype of the rows."""
    shape, dtype = (n_points(a), n_points(b)), a.rows.values.dtype
    if out is None or out.dtype != dtype or not out.flags.c_contiguous:
        made = np.empty(shape, dtype)
        _fill(kernel, a, b, made)
        if out is None:
            return made
        out[...] = made
        return out
    _fill(kernel, a, b, out)
    return out


def _fill(kernel: Any, a: Points, b: Points, out: np.ndarray) -> None:
    k = in_precision(kernel, out.dtype)
    aa, bb = a.sqnorms.astype(out.dtype, copy=False), b.sqnorms.astype(out.dtype, copy=False)
    if isinstance(a.rows, DenseRows):
        _by_matmul(k, a.rows.values, b.rows.values, aa, bb, out)
    else:
        _by_streaming(k, a.rows, b.rows, aa, bb, out)


def _by_matmul(kernel, A, B, aa, bb, out) -> None:
    width = max(64, _TILE // max(1, min(len(A), _PANEL)))

    def tile(start: int, stop: int) -> None:
        for r in range(0, len(A), _PANEL):
            part = slice(r, r + _PANEL)
            for s in range(start, stop, width):
                e = min(s + width, stop)
                np.matmul(A[part], B[s:e].T, out=out[part, s:e])
                _finish(kernel, out[part], aa[part], bb, s, e)

    run_blocks(tile, len(B), max(width, -(-len(B) // 16)))


@hot
def _finish(kernel, K, aa, bb, start, stop):
    """Products become values."""
    b = bb[start:stop]
    n = b.shape[0]
    for r in range(K.shape[0]):
        line, a = K[r, start:stop], aa[r]
        for k in range(n):
            line[k] = of_products(kernel, line[k], a, b[k])


def _by_streaming(kernel, rows, others, aa, bb, out) -> None:
    """Panels of rows written out by columns, the others streamed through them."""
    for r in range(0, n_rows(rows), _PANEL):
        e = min(r + _PANEL, n_rows(rows))
        place = np.zeros(n_columns(rows), dtype=np.uint32)
        T = np.zeros((_place(rows, r, e, place) + 1, e - r), dtype=out.dtype)
        _write(rows, r, place, T)

        def part(start: int, stop: int, T=T, place=place, r=r, e=e) -> None:
            _stream(kernel, T, place, others, (aa[r:e], bb), out[r:e], np.array([start, stop]))

        run_blocks(part, n_rows(others), 4096)


@hot
def _place(rows, start, stop, place):
    return place_columns(rows, start, stop, place)


@hot
def _write(rows, start, place, T):
    write_columns(rows, start, place, T)


@hot
def _stream(kernel, T, place, rows, sqnorms, out, bounds):
    aa, bb = sqnorms
    n = T.shape[1]
    buffer = np.empty((64, n), T.dtype)
    for first in range(bounds[0], bounds[1], 64):
        m = min(64, bounds[1] - first)
        for s in range(m):
            line, b = buffer[s], bb[first + s]
            row_against(rows, first + s, place, T, line)
            for r in range(n):
                line[r] = of_products(kernel, line[r], aa[r], b)
        for r in range(n):
            line = out[r, first : first + m]
            for s in range(m):
                line[s] = buffer[s, r]


def diagonal(kernel: Any, points: Points) -> np.ndarray:
    """K(x, x) in float64."""
    out = np.empty(n_points(points))
    _diagonal(in_precision(kernel, np.float64), points.sqnorms, out)
    return out


@hot
def _diagonal(kernel, sqnorms, out):
    for i in range(out.shape[0]):
        out[i] = of_products(kernel, sqnorms[i], sqnorms[i], sqnorms[i])


def precise(kernel: Any, a: Points, b: Points) -> np.ndarray:
    """The block in float64 arithmetic from the same rows."""
    return block(kernel, in_precision_of(a, np.float64), in_precision_of(b, np.float64))
