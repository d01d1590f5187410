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
    if not _rises(starts, columns, X.shape[1]):
        low, high = columns.min(), columns.max()
        if low < 0 or high >= X.shape[1]:
            raise ValueError(
                f"X is a corrupt CSR matrix: column indices must lie in 0..{X.shape[1] - 1}, "
                f"found {low}..{high}"
            )
        X = X.copy()
        X.sum_duplicates()
    return X


def _rises(starts: np.ndarray, columns: np.ndarray, width: int) -> bool:
    """Whether the columns of each row strictly increase from 0 on, below width."""
    unsigned = columns.view(np.uint32 if columns.itemsize == 4 else np.uint64)
    n = len(starts) - 1
    block = max(1, (1 << 19) * n // max(1, len(columns)))
    return not any(run_blocks(lambda s, e: _falls(starts[s : e + 1], unsigned, width), n, block))


@hot
def _falls(starts, columns, width):
    """Whether a row has a column that is not above the one before, or beyond the width."""
    bad = False
    for i in range(starts.shape[0] - 1):
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
