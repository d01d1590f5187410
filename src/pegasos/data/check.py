"""The one door for arrays: whatever users hold -> rows, labels, weights.

Nothing is copied that need not be, the user's arrays are never written, and what comes out is
read-only, so that hot loops see one kind of array.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from pegasos.core.rows import CsrRows, DenseRows


def small_dtype(X: Any) -> list[type] | type:
    """dtypes to ask of scikit-learn's validation: small integers fit float32 exactly."""
    dtype = getattr(X, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind in "biuf" and dtype.itemsize <= 2:
        return np.float32
    return [np.float64, np.float32]


def as_rows(X: Any, bias: float = 0.0) -> DenseRows | CsrRows:
    """Rows of a validated float32/float64 array or CSR matrix."""
    if not sp.issparse(X):
        return DenseRows(frozen(np.require(X, requirements=["C", "A"])), float(bias))
    X = canonical(X)
    values, columns = frozen(X.data), frozen(X.indices)
    columns = columns.view(np.uint32 if columns.itemsize == 4 else np.uint64)
    starts = frozen(X.indptr.astype(np.uint64))
    return CsrRows(values, columns, starts, int(X.shape[1]), float(bias))


def canonical(X: Any) -> Any:
    """A CSR matrix with sorted, unique columns; a copy if need be; an error if it is corrupt."""
    starts, columns = X.indptr, X.indices
    sizes_fit = starts[0] == 0 and starts[-1] == len(columns) <= len(X.data)
    if not sizes_fit or np.any(starts[1:] < starts[:-1]):
        raise ValueError(
            "X is a corrupt CSR matrix: its indptr must rise from 0 to the number of entries"
        )
    if len(columns) and not (columns.min() >= 0 and columns.max() < X.shape[1]):
        raise ValueError(
            f"X is a corrupt CSR matrix: column indices must lie in 0..{X.shape[1] - 1}, "
            f"found {columns.min()}..{columns.max()}"
        )
    if not _rises(starts, columns):
        X = X.copy()
        X.sum_duplicates()
    return X


def _rises(starts: np.ndarray, columns: np.ndarray) -> bool:
    """Whether the columns of each row strictly increase: they may fall only where a row begins."""
    falls = np.flatnonzero(columns[1:] <= columns[:-1]) + 1
    begins = np.zeros(len(columns) + 1, dtype=bool)
    begins[starts] = True
    return bool(begins[falls].all())


def frozen(a: np.ndarray) -> np.ndarray:
    """A read-only view."""
    view = np.asarray(a).view()
    view.flags.writeable = False
    return view


def variance(X: Any, weight: np.ndarray | None = None) -> float:
    """Of all entries, the zeros of a CSR matrix included; with weights of the rows."""
    if weight is None and not sp.issparse(X):
        return float(np.asarray(X).var(dtype=np.float64))
    w = np.ones(X.shape[0]) if weight is None else np.asarray(weight, dtype=np.float64)
    if not sp.issparse(X):
        mean = float(w @ X.mean(axis=1, dtype=np.float64)) / w.sum()
        rest = np.subtract(X, mean, dtype=np.float64)
        return float(w @ np.einsum("ij,ij->i", rest, rest)) / (w.sum() * X.shape[1])
    each, size = np.repeat(w, np.diff(X.indptr)), w.sum() * X.shape[1]
    mean = float(each @ X.data.astype(np.float64)) / size
    return float(each @ np.square(X.data, dtype=np.float64)) / size - mean * mean
