"""Memory for kernel values: rows kept within a budget, in buffers that outlive a fit.

A fresh buffer is paid for page by page when it is first written, which costs as much as the kernel
values in it. Buffers therefore go back to a stock when their owner is gone, and the next fit takes
them from there.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

import numpy as np

from pegasos.core.jit import hot

_stock: list[np.ndarray] = []
_lock = threading.RLock()  # the garbage collector may give back a buffer while one is taken


class Buffer:
    """Bytes from the stock, as an array of a shape; they go back when it is no longer used."""

    def __init__(self, shape: tuple[int, int], dtype: Any):
        size = shape[0] * shape[1] * np.dtype(dtype).itemsize
        raw = _borrow(size)
        self.array = raw[:size].view(dtype).reshape(shape)
        weakref.finalize(self, _give_back, raw)


def _borrow(size: int) -> np.ndarray:
    """The smallest of the stock that is large enough; else a new one, and the stock goes."""
    with _lock:
        fitting = [k for k, raw in enumerate(_stock) if raw.size >= size]
        if fitting:
            return _stock.pop(min(fitting, key=lambda k: _stock[k].size))
        _stock.clear()
    return np.empty(size, dtype=np.uint8)


def _give_back(raw: np.ndarray) -> None:
    with _lock:
        _stock.append(raw)


def empty_stock(most: int = 0) -> None:
    """Free what is kept for later fits, but for buffers of no more than `most` bytes."""
    with _lock:
        _stock[:] = [raw for raw in _stock if 0 < raw.size <= most]


class RowCache:
    """Rows of the kernel matrix, as many as the budget of bytes holds; the oldest go first.

    `slot[i]` is the place of row i, or -1.
    """

    def __init__(self, n: int, budget: int, dtype: Any):
        capacity = min(n, max(0, budget) // max(1, n * np.dtype(dtype).itemsize))
        capacity = capacity if capacity >= 2 else 0  # a pair's second row must not evict its first
        empty_stock(max(0, budget))  # a larger one would break it
        self._buffer: Buffer | None = Buffer((capacity, n), dtype)
        self.rows = self._buffer.array
        self.slot = np.full(n, -1)
        self.owner = np.full(capacity, -1)
        self.used = np.zeros(capacity, dtype=np.int64)  # the round of the last use
        self.round = 0

    def release(self) -> None:
        """Hold nothing from now on: the memory goes back to the stock."""
        self.slot[:] = -1
        self.owner, self.used = self.owner[:0], self.used[:0]
        self.rows = np.empty((0, len(self.slot)), self.rows.dtype)
        self._buffer = None

    def held(self, index: np.ndarray) -> np.ndarray:
        """Which of the rows are here; they count as used now."""
        self.round += 1
        here = self.slot[index] >= 0
        self.used[self.slot[index[here]]] = self.round
        return here

    def admit(self, index: np.ndarray) -> np.ndarray:
        """Places for rows that are not here, in the order given; -1 where there is none."""
        free = np.flatnonzero(self.used < self.round)
        if free.size > index.size:
            free = free[np.argsort(self.used[free], kind="stable")[: index.size]]
        self.slot[self.owner[free][self.owner[free] >= 0]] = -1
        places = np.full(index.size, -1)
        places[: free.size] = free
        self.owner[free] = index[: free.size]
        self.slot[index[: free.size]] = free
        self.used[free] = self.round
        return places


@hot
def add_rows(K, places, delta, f):
    """f += sum_r delta_r K[places_r]: four rows in the precision of K, whose values are no more
    exact than that, and all of them in float64."""
    n, R = f.shape[0], places.shape[0]
    kind = K.dtype.type
    r = 0
    while r + 4 <= R:
        a, b, c, d = K[places[r]], K[places[r + 1]], K[places[r + 2]], K[places[r + 3]]
        u, v = kind(delta[r]), kind(delta[r + 1])
        w, x = kind(delta[r + 2]), kind(delta[r + 3])
        for k in range(n):
            f[k] += np.float64((u * a[k] + v * b[k]) + (w * c[k] + x * d[k]))
        r += 4
    while r < R:
        a, u = K[places[r]], delta[r]
        for k in range(n):
            f[k] += u * a[k]
        r += 1


@hot
def store(tile, places, K):
    """K[places_r] = tile[r], where there is a place."""
    n = tile.shape[1]
    for r in range(places.shape[0]):
        if places[r] >= 0:
            line = K[places[r]]
            for k in range(n):
                line[k] = tile[r, k]
