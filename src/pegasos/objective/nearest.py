"""Squared distances in the form of a kernel, and the nearest of some centres."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pegasos.core.threads import run_blocks
from pegasos.objective.kernel_blocks import block
from pegasos.objective.kernel_points import Points, in_precision_of, n_points, points, take
from pegasos.objective.kernels import kernel, of_distance, of_products

_VALUES = 1 << 19  # distances computed at a time: 2 MB


@kernel
class SquaredDistance(NamedTuple):
    """||x - z||^2: no kernel, but blocks of it are matrix products as those of kernels are."""


@of_products.register(SquaredDistance)
def _(kernel, t, a, b):
    return abs(a + b - t - t)


@of_distance.register(SquaredDistance)
def _(kernel):
    return True


def places(X: Any, like: Points | None = None) -> Points:
    """Rows made ready for distances, in float32."""
    return in_precision_of(points(SquaredDistance(), X, like), np.float32)


def nearest(rows: Points, centres: Points, k: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """The k nearest centres of each row, the nearest first, and their squared distances."""
    index = np.empty((n_points(rows), k), dtype=np.int64)
    squares = np.empty((n_points(rows), k), dtype=np.float32)

    def part(start: int, stop: int) -> None:
        D = block(SquaredDistance(), centres, take(rows, slice(start, stop))).T
        found = D.argmin(axis=1)[:, None]
        if k > 1:
            found = np.argpartition(D, k - 1, axis=1)[:, :k]
            order = np.lexsort((found, np.take_along_axis(D, found, axis=1)))
            found = np.take_along_axis(found, order, axis=1)
        index[start:stop], squares[start:stop] = found, np.take_along_axis(D, found, axis=1)

    run_blocks(part, n_points(rows), max(256, _VALUES // n_points(centres)))
    return index, squares
