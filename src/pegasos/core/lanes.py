"""Eight weight vectors side by side: an entry of a row meets one line of eight numbers.

Two lines may share a line of the cache: an array of lines is then a view of every second one.
In compiled loops the functions on lines are vector instructions; see `core.llvm_lanes`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pegasos.core.jit import hot

LANES = 8
LINES = 2  # that lie side by side, at most


def dots(values: np.ndarray, columns: np.ndarray | None, W: np.ndarray, out: np.ndarray) -> None:
    """out += sum_k values[k] W[columns[k]], for W and out with LANES numbers in a line.

    Without columns: those from 0 on.
    """
    chosen = W[: len(values)] if columns is None else W[columns]
    out += values.astype(W.dtype) @ chosen


def axpys(values: np.ndarray, columns: np.ndarray | None, a: np.ndarray, W: np.ndarray) -> None:
    """W[columns[k]] += values[k] a for all k; the columns differ."""
    chosen = slice(len(values)) if columns is None else columns
    W[chosen] += np.outer(values.astype(W.dtype), a)


def put_line(X: np.ndarray, i: int, a: float, out: np.ndarray, k: int) -> None:
    """Line k of `out` = a times line i of X"""
    _lines(out)[k] = a * _lines(X)[i]


def add_line(X: np.ndarray, i: int, a: float, out: np.ndarray, k: int) -> None:
    """Line k of `out` += a times line i of X"""
    _lines(out)[k] += a * _lines(X)[i]


def add_product(X: np.ndarray, i: int, Z: np.ndarray, j: int, out: np.ndarray, k: int) -> None:
    """Line k of `out` += line i of X times line j of Z, in the precision of `out`"""
    _lines(out)[k] += _lines(X)[i].astype(out.dtype) * _lines(Z)[j].astype(out.dtype)


def _lines(X: np.ndarray) -> np.ndarray:
    return X if X.ndim == 2 else X.reshape(-1, LANES)


def lines(n: int, dtype: Any = np.float32, each: int = 1) -> np.ndarray:
    """Zeros of shape (n, each LANES), each up to LINES; no line is in two lines of the cache."""
    size = np.dtype(dtype).itemsize * LANES * each
    raw = np.zeros(size * n + 64, dtype=np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size * n].view(dtype).reshape(n, LANES * each)


def apart(X: np.ndarray) -> np.ndarray:
    """The numbers of each lane in a row of their own."""
    out = np.empty((LANES, len(X)))
    _apart(X, out)
    return out


@hot
def _apart(X, out):
    for i in range(X.shape[0]):
        for p in range(LANES):
            out[p, i] = X[i, p]


def whole_lines() -> None:
    """Of the function that calls it: let its loops take whole lines of float64 where registers hold
    them. Compilers take halves by default, and a line written in halves is read late."""
