"""A number for the content of each row: equal rows have equal ones, others hardly ever.

The same in every storage and precision, since zeros count for nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pegasos.core.dispatch import generic
from pegasos.core.rows import CsrRows, DenseRows, n_columns

_CHUNK = 1 << 20  # entries at a time


@generic
def row_digests(rows: Any) -> np.ndarray:
    """uint64, one for each row."""


def _factors(d: int) -> np.ndarray:
    return np.random.default_rng(0).integers(2**63, size=d, dtype=np.uint64) * np.uint64(2) + 1


def _mixed(values: np.ndarray, factors: np.ndarray) -> np.ndarray:
    bits = (values.astype(np.float64) + 0.0).view(np.uint64)  # -0 becomes 0
    bits = (bits ^ (bits >> np.uint64(29))) * factors
    return (bits ^ (bits >> np.uint64(32))) * factors


@row_digests.register(DenseRows)
def _(rows):
    n, d = rows.values.shape
    factors, out = _factors(d), np.zeros(n, dtype=np.uint64)
    size = max(1, _CHUNK // max(1, d))
    for s in range(0, n, size):
        _mixed(rows.values[s : s + size], factors).sum(axis=1, out=out[s : s + size])
    return out


@row_digests.register(CsrRows)
def _(rows):
    factors, starts = _factors(n_columns(rows)), rows.starts.astype(np.int64)
    sums = np.zeros(rows.values.size + 1, dtype=np.uint64)
    for s in range(0, rows.values.size, _CHUNK):
        part = slice(s, min(s + _CHUNK, rows.values.size))
        mixed = _mixed(rows.values[part], factors[rows.columns[part]])
        sums[part.start + 1 : part.stop + 1] = np.cumsum(mixed) + sums[part.start]
    return sums[starts[1:]] - sums[starts[:-1]]
