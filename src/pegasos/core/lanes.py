"""Sixteen weight vectors side by side: an entry of a row meets one cache line of float32 numbers.

In compiled loops the two functions are vector instructions; see `core.llvm`.
"""

from __future__ import annotations

import numpy as np

LANES = 16


def dots(values: np.ndarray, columns: np.ndarray | None, W: np.ndarray, out: np.ndarray) -> None:
    """out += sum_k values[k] W[columns[k]], for W and out with LANES float32 numbers in a line.

    Without columns: those from 0 on.
    """
    lines = W[: len(values)] if columns is None else W[columns]
    out += values.astype(np.float32) @ lines


def axpys(values: np.ndarray, columns: np.ndarray | None, a: np.ndarray, W: np.ndarray) -> None:
    """W[columns[k]] += values[k] a for all k; the columns differ."""
    chosen = slice(len(values)) if columns is None else columns
    W[chosen] += np.outer(values.astype(np.float32), a)


def lines(n: int) -> np.ndarray:
    """Zeros of shape (n, LANES), each line in one line of the cache."""
    size = 4 * LANES
    raw = np.zeros(size * (n + 1), dtype=np.uint8)
    start = -raw.ctypes.data % size
    return raw[start : start + size * n].view(np.float32).reshape(n, LANES)
