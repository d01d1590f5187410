"""The kernel matrix of a working set, kept from round to round: only who joins is computed.

Members keep their positions, who joins takes those of who left; positions without a member are
inert (member -1).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pegasos.core.jit import hot
from pegasos.core.threads import run_blocks
from pegasos.solvers.kernel_cache import Buffer
from pegasos.solvers.kernel_rows import KernelRows
from pegasos.solvers.smo import LANES

_PANEL = 256  # rows computed at a time
_WORK = 1 << 19  # values that a thread computes in a millisecond


class WorkingMatrix:
    """`K[s, t]` is the kernel of members s and t, for positions below `extent`."""

    def __init__(self, n: int, dtype: Any):
        self.dtype = dtype
        self.position = np.full(n, -1)
        self.release()

    def release(self) -> None:
        """No members: the memory goes back to the stock."""
        self.members = np.empty(0, dtype=np.int64)
        self.position[:] = -1
        self.K = np.empty((0, 0), self.dtype)
        self._buffer: Buffer | None = None

    @property
    def extent(self) -> int:
        return len(self.members)

    def admit(self, rows: KernelRows, chosen: np.ndarray) -> None:
        """Make `chosen` the members."""
        stays = np.zeros(len(self.position), dtype=bool)
        stays[chosen] = True
        stays &= self.position >= 0
        vacant = np.ones(self.extent, dtype=bool)
        vacant[self.position[stays]] = False
        joins = chosen[~stays[chosen]]
        size = max(self.extent, chosen.size)
        if size > 1.25 * chosen.size + LANES:  # too many holes
            vacant, joins, size = np.zeros(0, dtype=bool), chosen, chosen.size
        before = self.extent
        self._resize(-(-size // LANES) * LANES, vacant)
        places = np.flatnonzero(self.members < 0)[: joins.size]
        self.members[places] = joins
        never = np.flatnonzero(self.members < 0)
        self.K[: self.extent, never[never >= before]] = 0.0  # not what the buffer held before
        self.position[:] = -1
        held = self.members >= 0
        self.position[self.members[held]] = np.flatnonzero(held)
        self._fill(rows, places)

    def _resize(self, extent: int, vacant: np.ndarray) -> None:
        """Room for `extent` members; those that are not vacant stay."""
        members = np.full(extent, -1)
        kept = np.flatnonzero(~vacant)
        members[kept] = self.members[kept]
        if extent > len(self.K):
            side = -(-int(1.2 * extent) // LANES) * LANES
            buffer = Buffer((side, side), self.dtype)
            k = vacant.size
            buffer.array[:k, :k] = self.K[:k, :k]
            self._buffer, self.K = buffer, buffer.array
        self.members = members

    def _fill(self, rows: KernelRows, places: np.ndarray) -> None:
        """Rows and columns of the positions that were taken, each pair of them once."""
        joins = self.members[places]
        old = np.setdiff1d(np.flatnonzero(self.members >= 0), places, assume_unique=True)
        order = np.concatenate([old, places])
        columns = np.concatenate([self.members[old], joins])

        def part(start: int, stop: int) -> None:
            last = old.size + stop
            tile = rows.between(joins[start:stop], columns[:last])
            mirror(tile, places[start:stop], order[:last], self.K)

        few = joins.size * columns.size < _WORK  # less than a thread takes to wake
        run_blocks(part, joins.size, max(1, joins.size) if few else _PANEL)


@hot
def mirror(tile, rows, columns, K):
    """K[rows_r, columns_c] = K[columns_c, rows_r] = tile[r, c]"""
    R, n = tile.shape
    for r in range(R):
        line = K[rows[r]]
        for c in range(n):
            line[columns[c]] = tile[r, c]
    for first in range(0, n, 16):  # as many lines as stay in the cache
        last = min(first + 16, n)
        for r in range(R):
            s = rows[r]
            for c in range(first, last):
                K[columns[c], s] = tile[r, c]
