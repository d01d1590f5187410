"""Mapped rows as a storage: `core.matrix` and `core.gram` on phi(x_1), ..., phi(x_n).

Nothing is stored but the rows as they were given. A block of raw features is computed when it is
used, and forgotten: the image of all rows never exists. There is no access row by row, so these
are for solvers made of whole-matrix operations (Newton and the interior point), not for descent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pegasos.core.cross import gathered
from pegasos.core.gram import gram, gram_work
from pegasos.core.matrix import all_products, bent, combine, products, sqnorms, squares
from pegasos.core.rows import DenseRows, by_row, is_single, n_columns, n_entries, n_rows, row_work
from pegasos.core.threads import run_blocks
from pegasos.data.check import frozen
from pegasos.maps.image import (
    Image,
    dtype_of,
    gather,
    map_into,
    n_raw,
    raw,
    spread,
    sqnorm_bounds,
    width,
)

_VALUES = 1 << 18  # raw features of a block: one megabyte of float32
_CHUNKS = 32  # partial sums of vectors
_FEW = 4  # partial sums of matrices, which are large


class MappedRows(NamedTuple):
    """phi of `rows`, and a virtual column `bias` behind it."""

    image: Image
    rows: Any
    bias: float


def image_of(image: Image, rows: Any) -> np.ndarray:
    """phi of all rows, written out."""
    out = np.empty((n_rows(rows), width(image)), dtype_of(image))
    size = _block(image)

    def part(start: int, stop: int) -> None:
        map_into(out[start:stop], image, gathered(rows, slice(start, stop)))

    run_blocks(part, len(out), size)
    return out


def _block(image: Image) -> int:
    return max(64, _VALUES // n_raw(image.features))


def _each(X: MappedRows, work: Callable[..., None], index: Any = None, size: int = 0) -> list[Any]:
    """What work(total, rows, chosen) adds up to in each of some chunks of the chosen rows; of all
    rows, in the blocks of X W, if none are chosen.

    `size`: of the blocks that are sums of matrices, which are large and so few.
    """
    n, chunks = n_rows(X) if index is None else len(index), _FEW if size else _CHUNKS
    size = size or _block(X.image)
    length = max(size, -(-n // chunks))
    if index is None:
        length += -length % size

    def part(start: int, stop: int) -> list[Any]:
        total: list[Any] = []
        for s in range(start, stop, size):
            block = slice(s, min(s + size, stop))
            chosen = block if index is None else index[block]
            work(total, gathered(X.rows, chosen), chosen)
        return total

    return run_blocks(part, n, length)


def _add(total: list[Any], more: Any) -> None:
    if total:
        total[0] += more
    else:
        total.append(more)


def _sum(parts: list[list[Any]], nothing: np.ndarray) -> np.ndarray:
    """In the order of the chunks, so that it has the same bits on any number of threads."""
    total = nothing
    for part in parts:
        for one in part:
            total += one
    return total


def _raw_rows(X: MappedRows, rows: Any) -> DenseRows:
    """Raw features as rows whose virtual column is that of X."""
    return DenseRows(frozen(raw(X.image.features, rows)), X.bias)


def _over_raw(X: MappedRows, W: np.ndarray) -> np.ndarray:
    """Weights of the image and the virtual column as weights of raw features and that column."""
    return np.concatenate([spread(X.image, W[:-1]), W[-1:]])


@n_rows.register(MappedRows)
def _(rows):
    return n_rows(rows.rows)


@n_columns.register(MappedRows)
def _(rows):
    return width(rows.image)


@n_entries.register(MappedRows)
def _(rows):
    return n_rows(rows) * n_columns(rows)


@is_single.register(MappedRows)
def _(rows):
    return dtype_of(rows.image) == np.float32


@by_row.register(MappedRows)
def _(rows):
    return False


@row_work.register(MappedRows)
def _(rows):
    return 2.0 * n_raw(rows.image.features)


@gram_work.register(MappedRows)
def _(rows):
    m = n_raw(rows.image.features)
    return n_rows(rows) * (0.026 * m * m + row_work(rows))


@gathered.register(MappedRows)
def _(rows, index):
    return rows._replace(rows=gathered(rows.rows, index))


@sqnorms.register(MappedRows)
def _(rows):
    """Bounds of them, which need no image; exact where all of K is kept."""
    out = np.empty(n_rows(rows))

    def part(start: int, stop: int) -> None:
        some = gathered(rows.rows, slice(start, stop))
        out[start:stop] = sqnorm_bounds(rows.image.features, some) + rows.bias**2

    run_blocks(part, len(out), 4096)
    return out


@products.register(MappedRows)
def _(rows, w):
    return all_products(rows, w[:, None])[:, 0]


@all_products.register(MappedRows)
def _(rows, W):
    out, B = np.empty((n_rows(rows), W.shape[1])), _over_raw(rows, W)

    def part(start: int, stop: int) -> None:
        K = _raw_rows(rows, gathered(rows.rows, slice(start, stop)))
        if B.shape[1] == 1:
            out[start:stop, 0] = products(K, np.ascontiguousarray(B[:, 0]))
        else:
            out[start:stop] = all_products(K, B)

    run_blocks(part, len(out), _block(rows.image))
    return out


@combine.register(MappedRows)
def _(rows, a):
    """Over the blocks of X W, whole ones: a value is rounded by the shape of its block, and P and D
    of a certificate must be of the same rows."""

    def add(total, some, block):
        if a[block].any():
            _add(total, combine(_raw_rows(rows, some), a[block]))

    return _gathered(rows, _each(rows, add))


@bent.register(MappedRows)
def _(rows, h, x):
    b = _over_raw(rows, x)

    def add(total, some, chosen):
        K = _raw_rows(rows, some)
        _add(total, combine(K, h[chosen] * products(K, b)))

    return _gathered(rows, _each(rows, add, np.flatnonzero(h)))


def _gathered(rows: MappedRows, parts: list[list[Any]]) -> np.ndarray:
    total = _sum(parts, np.zeros(n_raw(rows.image.features) + 1))
    return np.append(gather(rows.image, total[:-1]), total[-1])


@squares.register(MappedRows)
def _(rows, h):
    def add(total, some, chosen):
        Z = np.empty((len(chosen), n_columns(rows)), dtype_of(rows.image))
        map_into(Z, rows.image, some)
        _add(total, squares(DenseRows(frozen(Z), rows.bias), h[chosen]))

    return _sum(_each(rows, add, np.flatnonzero(h)), np.zeros(n_columns(rows) + 1))


@gram.register(MappedRows)
def _(rows, h, dtype, columns):
    if (h < 0.0).any():
        more, less = (np.maximum(sign * h, 0.0) for sign in (1.0, -1.0))
        return gram(rows, more, dtype, columns) - gram(rows, less, dtype, columns)

    def add(total, some, chosen):
        written = np.full((len(chosen), n_columns(rows) + 1), rows.bias, dtype)
        map_into(written[:, :-1], rows.image, some)
        written *= np.sqrt(h[chosen]).astype(dtype)[:, None]
        used = written if columns.size == written.shape[1] else written[:, columns]
        _add(total, (used.T @ used).astype(np.float64, copy=False))

    parts = _each(rows, add, np.flatnonzero(h), max(256, columns.size // 2))
    return _sum(parts, np.zeros((columns.size, columns.size)))
