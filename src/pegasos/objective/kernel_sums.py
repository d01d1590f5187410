"""Sums f(x) = sum_j coef_j K(x, z_j): what predictions and certificates are made of.

Computed tile by tile, so that no block of kernel values is larger than a few megabytes; tiles are
shared out among the threads that are allowed, and no result depends on their number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pegasos.core.threads import run_blocks
from pegasos.objective.kernel_blocks import block, precise
from pegasos.objective.kernel_points import Points, n_points, take

_ROWS = 256
_COLUMNS = 4096


def kernel_sums(kernel: Any, a: Points, b: Points, coef: np.ndarray, exact=False) -> np.ndarray:
    """F[i, p] = sum_j K(a_i, b_j) coef[j, p], in float64; `exact`: all of it in float64."""
    out = np.zeros((n_points(a), coef.shape[1]))
    value = precise if exact else block
    starts = range(0, n_points(b), _COLUMNS)
    parts = [slice(s, min(s + _COLUMNS, n_points(b))) for s in starts]
    pieces = [(take(b, chosen), coef[chosen]) for chosen in parts]

    def part(start: int, stop: int) -> None:
        for s in range(start, stop, _ROWS):
            rows = slice(s, min(s + _ROWS, stop))
            some = take(a, rows)
            for piece, weights in pieces:
                K = value(kernel, some, piece)
                out[rows] += K @ weights.astype(K.dtype, copy=False)

    run_blocks(part, len(out), _ROWS)
    return out
