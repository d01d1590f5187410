"""Rows of the kernel matrix, computed when they are wanted and kept within a budget of memory.

Threads share out the columns, so that every sum over rows has one order whatever their number.
"""

from __future__ import annotations

import numpy as np

from pegasos.core.threads import run_blocks
from pegasos.objective.kernel_blocks import block
from pegasos.objective.kernel_points import in_precision_of, n_points, take
from pegasos.objective.kernel_problem import KernelProblem
from pegasos.solvers.kernel_cache import RowCache, add_rows, store

_PANEL = 128  # rows computed at a time
_COLUMNS = 2048  # a tile of float32 values is 1 MB


class KernelRows:
    """The rows of a problem in float32 (or float64 if `wide`), in `budget` bytes."""

    def __init__(self, problem: KernelProblem, budget: int, wide: bool = False):
        self.kernel, self.dtype = problem.kernel, np.float64 if wide else np.float32
        self.points = in_precision_of(problem.points, np.float64) if wide else problem.fast
        self.n = len(problem.y)
        self.cache = RowCache(self.n, budget, self.dtype)
        self.computed = 0

    def add(self, index: np.ndarray, delta: np.ndarray, f: np.ndarray) -> None:
        """f += K[:, index] delta"""
        here = self.cache.held(index)
        slots, old = self.cache.slot[index[here]], delta[here]
        missing, new = index[~here], delta[~here]
        places = self.cache.admit(missing)
        panels = [slice(s, s + _PANEL) for s in range(0, missing.size, _PANEL)]
        rows = [take(self.points, missing[panel]) for panel in panels]

        def part(start: int, stop: int) -> None:
            kept, target = self.cache.rows[:, start:stop], f[start:stop]
            add_rows(kept, slots, old, target)
            if not rows:
                return
            columns = take(self.points, slice(start, stop))
            room = np.empty((_PANEL, stop - start), self.dtype)
            for panel, a in zip(panels, rows, strict=True):
                tile = block(self.kernel, a, columns, room[: n_points(a)])
                add_rows(tile, np.arange(len(tile)), new[panel], target)
                store(tile, places[panel], kept)

        run_blocks(part, self.n, _COLUMNS)
        self.computed += missing.size

    def row(self, i: int) -> np.ndarray:
        """Row i: a view that is valid until two more are asked for."""
        index = np.array([i])
        if not self.cache.held(index)[0]:
            place = self.cache.admit(index)[0]
            values = np.empty((1, self.n), self.dtype)
            block(self.kernel, take(self.points, index), self.points, values)
            self.computed += 1
            if place < 0:
                return values[0]
            self.cache.rows[place] = values[0]
        return self.cache.rows[self.cache.slot[i]]

    def between(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """K(x_i, x_j) for i of a and j of b."""
        out = np.empty((a.size, b.size), self.dtype)
        return block(self.kernel, take(self.points, a), take(self.points, b), out)
