"""Points: rows, or whatever a kernel is a function of, made ready for blocks of its values.

Rows are moved to their mean where the kernel depends on differences alone, so that
||x||^2 + ||z||^2 - 2 x.z loses no digits, and their squared norms are kept. CSR rows with more than
a fifth of their entries are written out, since a matrix product is then faster; of fewer entries,
they stay as they are, and where they are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from pegasos.core.cross import gathered, in_dtype, stacked, written_out
from pegasos.core.matrix import sqnorms
from pegasos.core.rows import CsrRows, DenseRows, n_columns, n_entries, n_rows
from pegasos.data.check import as_rows, frozen
from pegasos.objective.kernels import Function, Precomputed, is_kernel, leaves, moves

_FILLED = 0.2  # share of entries from which on rows are written out


class Given(NamedTuple):
    """Rows of a kernel matrix: point i is its row i and, among points to train with, column i."""

    matrix: np.ndarray
    index: np.ndarray  # type: ignore[assignment]


class Items(NamedTuple):
    """Objects of any kind, for a function of two of them."""

    values: np.ndarray


class Points(NamedTuple):
    """Points made ready for a kernel; `center` was subtracted (empty: nothing was)."""

    rows: Any
    sqnorms: np.ndarray
    center: np.ndarray


def is_given(kernel: Any) -> bool:
    """Whether X is a matrix of values, by a kernel or its name."""
    if not is_kernel(kernel):
        return isinstance(kernel, str) and kernel == "precomputed"
    return any(isinstance(leaf, Precomputed) for leaf in leaves(kernel))


def points(kernel: Any, X: Any, like: Points | None = None) -> Points:
    """An array, a CSR matrix, rows of `core.rows`, or objects for a function, made ready.

    `like`: to be compared with other points, and so moved and stored as they are.
    """
    made_of = leaves(kernel)
    if is_given(kernel):
        rows: Any = _given(kernel, X, like)
        return Points(rows, np.zeros(0), np.zeros(0))
    if all(isinstance(leaf, Function) for leaf in made_of) and _are_objects(X, like):
        return Points(_items(X), np.zeros(0), np.zeros(0))
    rows = _stored(X if isinstance(X, DenseRows | CsrRows) else as_rows(_floats(X)), like)
    center = np.zeros(0) if like is None else like.center
    if like is None and moves(kernel) and isinstance(rows, DenseRows) and n_rows(rows):
        center = rows.values.mean(axis=0, dtype=np.float64)
    if center.size:
        moved = np.empty(rows.values.shape, rows.values.dtype)
        np.subtract(rows.values, center, out=moved, dtype=np.float64, casting="same_kind")
        rows = DenseRows(moved, 0.0)
    return Points(rows, sqnorms(rows), center)


def n_points(points: Points) -> int:
    return n_rows(points.rows)


def take(points: Points, index: np.ndarray | slice) -> Points:
    """The chosen points; of a slice of an array no copy."""
    norms = points.sqnorms[index] if points.sqnorms.size else points.sqnorms
    return points._replace(rows=gathered(points.rows, index), sqnorms=norms)


def joined(points: Points, others: Points) -> Points:
    """Points and, behind them, others that were made like them."""
    norms = np.concatenate([points.sqnorms, others.sqnorms])
    return points._replace(rows=stacked(points.rows, others.rows), sqnorms=norms)


def in_precision_of(points: Points, dtype: Any) -> Points:
    """The points in another precision: float32 for speed, float64 for a proof."""
    return points._replace(rows=in_dtype(points.rows, dtype))


def _floats(X: Any) -> Any:
    if sp.issparse(X):
        X = X.tocsr()
    else:
        X = np.asarray(X)
        if X.ndim != 2:
            raise ValueError(
                f"a kernel of numbers needs X of shape (n, d), got {X.shape}; for objects such as "
                "strings use Function(f)"
            )
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def _stored(rows: Any, like: Points | None) -> Any:
    """The rows in the storage and precision in which blocks are computed."""
    if like is None:
        many = n_entries(rows) > _FILLED * n_rows(rows) * n_columns(rows)
        return DenseRows(written_out(rows), 0.0) if many else rows
    if isinstance(like.rows, DenseRows):
        rows = DenseRows(written_out(rows), 0.0)
    elif isinstance(rows, DenseRows):
        rows = as_rows(sp.csr_array(rows.values))
    return in_dtype(rows, like.rows.values.dtype)


def _given(kernel: Any, X: Any, like: Points | None) -> Given:
    if not all(isinstance(leaf, Precomputed) for leaf in leaves(kernel)):
        raise ValueError(
            f"{kernel!r}: X is either a kernel matrix or rows, Precomputed stands alone"
        )
    if sp.issparse(X):
        raise TypeError("a precomputed kernel matrix must be an array, not a sparse matrix")
    matrix = frozen(_floats(X))
    n = len(matrix) if like is None else like.rows.matrix.shape[1]
    if matrix.shape[1] != n:
        needed = "square to train with" if like is None else f"of {n} columns, one per training row"
        raise ValueError(f"a precomputed kernel matrix must be {needed}, got {matrix.shape}")
    return Given(matrix, np.arange(len(matrix)))


def _are_objects(X: Any, like: Points | None) -> bool:
    if like is not None:
        return isinstance(like.rows, Items)
    if isinstance(X, DenseRows | CsrRows) or sp.issparse(X):
        return False
    numbers = getattr(X, "dtype", None) is not None and X.dtype.kind in "biuf" and X.ndim == 2
    return not numbers and not _is_table(X)


def _is_table(X: Any) -> bool:
    """Whether lists of numbers were given."""
    try:
        return np.asarray(X, dtype=np.float64).ndim == 2
    except (TypeError, ValueError):
        return False


def _items(X: Any) -> Items:
    values = np.empty(len(X), dtype=object)
    values[:] = list(X)
    return Items(values)


def as_given(points: Points) -> np.ndarray:
    """The rows as an array, where they were before they were moved."""
    values = written_out(points.rows)
    return values + points.center.astype(values.dtype) if points.center.size else values


def without_matrix(points: Points) -> Points:
    """Points to keep for predictions, which need no rows of a precomputed matrix."""
    if not isinstance(points.rows, Given):
        return points
    return points._replace(rows=points.rows._replace(matrix=points.rows.matrix[:0].copy()))


def given_columns(n: int, chosen: np.ndarray) -> Points:
    """The chosen of n training points of a precomputed kernel: columns of what comes later."""
    nothing = np.zeros(0)
    return Points(Given(np.zeros((0, n)), np.asarray(chosen, dtype=np.int64)), nothing, nothing)


@n_rows.register(Given)
def _(rows):
    return rows.index.size


@n_rows.register(Items)
def _(rows):
    return rows.values.size


@gathered.register(Given)
def _(rows, index):
    return rows._replace(index=rows.index[index])


@gathered.register(Items)
def _(rows, index):
    return Items(rows.values[index])


@in_dtype.register(Given)
@in_dtype.register(Items)
def _(rows, dtype):
    return rows


@stacked.register(Given)
def _(rows, *others):
    return rows._replace(index=np.concatenate([part.index for part in (rows, *others)]))


@stacked.register(Items)
def _(rows, *others):
    return Items(np.concatenate([part.values for part in (rows, *others)]))
