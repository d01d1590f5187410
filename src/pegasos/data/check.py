"""The one door for arrays: whatever users hold -> rows, labels, weights.

Nothing is copied that need not be, the user's arrays are never written, and what comes out is
read-only, so that hot loops see one kind of array.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from pegasos.core.jit import hot
from pegasos.core.rows import CsrRows, DenseRows
from pegasos.core.threads import run_blocks

_ENTRIES = 1 << 18  # of an array, in float64 at a time
_INDICES = 1 << 23  # of columns, a millisecond of looking for the highest
_SUMMED = 1 << 20  # of values, some tenths of a millisecond: for less nobody needs help


def small_dtype(X: Any) -> list[type] | type:
    """dtypes to ask of scikit-learn's validation: small integers fit float32 exactly."""
    dtype = getattr(X, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind in "biuf" and dtype.itemsize <= 2:
        return np.float32
    return [np.float64, np.float32]


def plain(X: Any, y: Any) -> bool:
    """Whether X and y are finite numbers in arrays that any validation would leave as they are.

    Of all else scikit-learn is to say what is wrong, or to convert it.
    """
    if not (plain_rows(X) and type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "biuf"):
        return False
    values = X.data if sp.issparse(X) else X
    if not (values.flags.forc and y.flags.forc):  # or a look at it would be a copy
        return False
    return X.shape[0] == y.size and _finite(y) and _finite(values)


def plain_rows(X: Any) -> bool:
    """The same of rows alone, finite or not."""
    values = X.data if type(X) in (sp.csr_array, sp.csr_matrix) else X
    if type(values) is not np.ndarray or X.ndim != 2:
        return False
    return values.dtype in (np.float32, np.float64) and 0 < X.shape[0] and 0 < X.shape[1]


def _finite(values: np.ndarray) -> bool:
    """Whether all are finite; False also if the sum of their squares is not."""
    flat = values.ravel(order="K")
    block = -(-flat.size // max(1, flat.size // _SUMMED))

    def finite(start: int, stop: int) -> bool:
        with np.errstate(all="ignore"):
            return bool(np.isfinite(np.dot(flat[start:stop], flat[start:stop])))

    return values.dtype.kind != "f" or all(run_blocks(finite, flat.size, max(1, block)))


def as_rows(X: Any, bias: float = 0.0, sort: bool = True) -> DenseRows | CsrRows:
    """Rows of a validated float32/float64 array or CSR matrix.

    Without `sort` the columns of a CSR row may come in any order, and twice: products do not mind.
    """
    if not sp.issparse(X):
        return DenseRows(frozen(np.require(X, requirements=["C", "A"])), float(bias))
    X = canonical(X) if sort else _sound(X)
    values, columns = (frozen(np.require(a, requirements=["C", "A"])) for a in (X.data, X.indices))
    starts = frozen(X.indptr.astype(np.uint64))
    return CsrRows(values, _unsigned(columns), starts, int(X.shape[1]), float(bias))


def as_matrix(rows: Any) -> Any:
    """The array or CSR matrix that rows stand for, in the same memory."""
    if not isinstance(rows, CsrRows):
        return rows.values
    columns = rows.columns.view(np.int32 if rows.columns.itemsize == 4 else np.int64)
    inner = rows.values, columns, rows.starts.astype(np.int64)
    return sp.csr_matrix(inner, shape=(len(rows.starts) - 1, rows.width))


def canonical(X: Any) -> Any:
    """A CSR matrix with sorted, unique columns; a copy if need be; an error if it is corrupt."""
    if not (_sizes_fit(X) and _rises(X.indptr, X.indices, X.shape[1])):
        X = _sound(X).copy()
        X.sum_duplicates()
    return X


def _sound(X: Any) -> Any:
    """The same matrix, unless an index of it is out of range."""
    _check_starts(X)
    columns, width = _unsigned(X.indices), X.shape[1]
    highest = run_blocks(lambda s, e: columns[s:e].max(), len(columns), _INDICES)
    if highest and max(highest) >= width:
        raise ValueError(
            f"X is a corrupt CSR matrix: column indices must lie in 0..{width - 1}, "
            f"found {X.indices.min()}..{X.indices.max()}"
        )
    return X


def _check_starts(X: Any) -> None:
    if not _sizes_fit(X) or np.any(X.indptr[1:] < X.indptr[:-1]):
        raise ValueError(
            "X is a corrupt CSR matrix: its indptr must rise from 0 to the number of entries"
        )


def _sizes_fit(X: Any) -> bool:
    return bool(X.indptr[0] == 0 and X.indptr[-1] == len(X.indices) <= len(X.data))


def _unsigned(columns: np.ndarray) -> np.ndarray:
    """The same memory: negative numbers are then too high."""
    return columns.view(np.uint32 if columns.itemsize == 4 else np.uint64)


def _rises(starts: np.ndarray, columns: np.ndarray, width: int) -> bool:
    """Whether rows follow one another and the columns of each strictly increase, below width."""
    n, unsigned = len(starts) - 1, _unsigned(columns)
    block = max(1, (1 << 19) * n // max(1, len(columns)))
    return not any(run_blocks(lambda s, e: _falls(starts[s : e + 1], unsigned, width), n, block))


@hot
def _falls(starts, columns, width):
    """Whether a row has a column not above the one before or beyond the width, or is no row."""
    bad = False
    for i in range(starts.shape[0] - 1):
        if starts[i + 1] < starts[i]:
            return True
        row = columns[starts[i] : starts[i + 1]]
        m = row.shape[0]
        if m == 0:
            continue
        before, after = row[: m - 1], row[1:]
        for k in range(m - 1):
            bad |= after[k] <= before[k]
        bad |= row[m - 1] >= width
    return bad


def frozen(a: np.ndarray) -> np.ndarray:
    """A read-only view."""
    view = np.asarray(a).view()
    view.flags.writeable = False
    return view


def variance(X: Any, weight: np.ndarray | None = None) -> float:
    """Of all entries, the zeros of a CSR matrix included; with weights of the rows."""
    X = X if sp.issparse(X) else np.asarray(X)
    w = np.ones(X.shape[0]) if weight is None else np.asarray(weight, dtype=np.float64)
    if not sp.issparse(X):
        return _array_variance(X, w)
    each, size = np.repeat(w, np.diff(X.indptr)), w.sum() * X.shape[1]
    mean = float(each @ X.data.astype(np.float64)) / size
    return float(each @ np.square(X.data, dtype=np.float64)) / size - mean * mean


def _array_variance(X: np.ndarray, w: np.ndarray) -> float:
    """In blocks: a memory-mapped array is read, not copied."""
    size, block = w.sum() * X.shape[1], max(1, _ENTRIES // X.shape[1])

    def total(start: int, stop: int) -> float:
        return float(w[start:stop] @ X[start:stop].sum(axis=1, dtype=np.float64))

    mean = sum(run_blocks(total, len(X), block)) / size

    def squares(start: int, stop: int) -> float:
        rest = np.subtract(X[start:stop], mean, dtype=np.float64)
        return float(w[start:stop] @ np.einsum("ij,ij->i", rest, rest))

    return sum(run_blocks(squares, len(X), block)) / size
