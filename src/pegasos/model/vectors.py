"""Vectors that a model keeps (support vectors, prototypes): rows as arrays of a file, checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from pegasos.core.rows import CsrRows, DenseRows, n_columns, n_rows
from pegasos.objective.kernel_points import Points


def to_arrays(rows: DenseRows | CsrRows) -> dict[str, np.ndarray]:
    """The arrays of a file that hold the rows."""
    if isinstance(rows, DenseRows):
        return {"vectors": rows.values}
    return {"values": rows.values, "columns": rows.columns, "starts": rows.starts}


def rows_of(arrays: dict[str, np.ndarray], d: int) -> Any:
    """The rows of d columns that arrays of a file hold, None if they hold none; not checked."""
    if "vectors" in arrays:
        if arrays["vectors"].ndim != 2:
            raise ValueError("vectors: not a matrix")
        return DenseRows(arrays["vectors"], 0.0)
    if {"values", "columns", "starts"} <= set(arrays):
        return CsrRows(arrays["values"], arrays["columns"], arrays["starts"], d, 0.0)
    return None


def check_rows(rows: DenseRows | CsrRows, m: int, d: int) -> None:
    """A ValueError unless these are m sound rows of d columns."""
    if rows.values.dtype not in (np.float32, np.float64):
        raise ValueError(f"vectors: {rows.values.dtype} is not float32 or float64")
    if isinstance(rows, CsrRows):
        _check_csr(rows)
    if n_rows(rows) != m or n_columns(rows) != d:
        raise ValueError(f"vectors: not {m} of {d} features")
    if not np.isfinite(rows.values).all():
        raise ValueError("vectors: hold numbers that are not finite")


def check_points(points: Points, m: int, d: int) -> None:
    """A ValueError unless these are m sound rows of d columns with the norms and centre that belong
    to them; nothing need be said of rows that were not moved."""
    check_rows(points.rows, m, d)
    moved = points.center.size
    if moved not in (0, d) or (moved and isinstance(points.rows, CsrRows)):
        raise ValueError("center: does not fit the support vectors")
    if points.sqnorms.size not in ((m,) if moved else (0, m)) or np.any(points.sqnorms < 0.0):
        raise ValueError("sqnorms: do not fit the support vectors")


def _check_csr(rows: CsrRows) -> None:
    values, columns, starts = rows.values, rows.columns, rows.starts
    good = values.ndim == columns.ndim == starts.ndim == 1 and starts.dtype == np.uint64
    if not good or columns.dtype not in (np.uint32, np.uint64) or len(columns) != len(values):
        raise ValueError("columns: not those of sparse rows")
    rises = starts.size and starts[0] == 0 and starts[-1] == len(values)
    if not rises or np.any(starts[1:] < starts[:-1]):
        raise ValueError("starts: must rise from 0 to the number of entries")
    falls = np.flatnonzero(columns[1:] <= columns[:-1]) + 1
    if np.any(columns >= rows.width) or not np.isin(falls, starts.astype(np.int64)).all():
        raise ValueError(f"columns: must rise in each row, below {rows.width}")
