"""Working sets: a block of coordinates at a time, solved by pairs on its own kernel matrix.

Dual:      max p'beta - 1/2 beta'K beta,  low <= beta <= high,  sum beta = 0 if the offset is free
Update:    beta_W from the problem of the working set W with the rest fixed (`smo.pair_steps`, or
           `kernel_dual.coordinate_steps` without offset); then f += K[:, moved] (change of beta)
Selection: first a random sample of both classes; then all free variables, and of the others those
           that violate the optimality conditions most, from both ends
Stopping:  the gap and the violation by the f at hand; the driver certifies in float64, and f goes
           on from there

A working set smaller than the set of free variables crawls, so it grows with them. Full rows of
the kernel matrix are computed only for variables that moved. All of this is in float32 with sums in
float64, until that can do no more: then rows are computed in float64 as well (`wide`).

Osuna, Freund, Girosi, 1997; Joachims, 1999.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pegasos.objective.certificate import Evaluation
from pegasos.objective.kernel_problem import KernelProblem
from pegasos.solvers.free_steps import free_step
from pegasos.solvers.kernel_cache import add_rows
from pegasos.solvers.kernel_dual import coordinate_steps
from pegasos.solvers.kernel_rows import KernelRows
from pegasos.solvers.kernel_state import KernelState, begun, gauged, measured, refreshed
from pegasos.solvers.smo import Board, board, pair_steps
from pegasos.solvers.working_matrix import WorkingMatrix

_SLICE = 1 << 27  # numbers of the matrix read between two returns to Python
_PATIENCE = 5  # steps per variable after which free ones are moved together
_NARROW = 1e-5  # the violation to which float32 is good


@dataclass(frozen=True)
class WorkingSet:
    """`budget` bytes hold rows and matrix. Up to `whole` rows are one working set; else the first
    has `first` rows, or a quarter, and later ones from `smallest` to `largest`. A working set is
    solved to `depth` times the violation it starts with, never below `floor`, nor below what a
    relative gap of `share` seems to need."""

    budget: int = 1 << 30
    whole: int = 768
    first: int = 2048
    smallest: int = 1024
    largest: int = 6144
    depth: float = 0.1
    floor: float = 0.0
    share: float = 0.0

    def init(self, problem: KernelProblem, seed: int, alpha: Any = None) -> KernelState:
        n = len(problem.y)
        wide = self.floor < _NARROW and self.share < _NARROW and 16 * n * n <= self.budget
        state = begun(problem, alpha, self._left(n, wide), wide)
        matrix = WorkingMatrix(n, state.rows.dtype)
        return state._replace(matrix=matrix, rng=np.random.default_rng(seed))

    def _side(self, wide: bool) -> int:
        """Of the largest matrix: half of the budget, with room to grow."""
        return max(128, min(self.largest, int(np.sqrt(self.budget / (6.0 * (8 if wide else 4))))))

    def _left(self, n: int, wide: bool) -> int:
        """Bytes for rows, beside the matrix."""
        side = 1.2 * min(n, self._side(wide))
        return self.budget - int(side * side) * (8 if wide else 4)

    def step(self, problem: KernelProblem, state: KernelState) -> KernelState:
        """One working set."""
        if not state.wide and (state.violation < _NARROW or state.waited > 1):
            state = self._widened(problem, state)
        chosen = self._choose(problem, state)
        if not chosen.size:  # nothing violates the optimality conditions
            return gauged(problem, state, 0)
        state.matrix.admit(state.rows, chosen)
        small, members = self._board(problem, state)
        steps = self._solve(problem, state, small)
        moved = np.flatnonzero(small.beta - np.where(members < 0, 0.0, state.beta[members]))
        delta = small.beta[moved] - state.beta[members[moved]]
        state.beta[members[moved]] = small.beta[moved]
        if chosen.size == len(state.f):
            change = np.zeros(len(members))
            add_rows(state.matrix.K[:, : len(members)], moved, delta, change)
            state.f[members[members >= 0]] += change[members >= 0]
        else:
            state.rows.add(members[moved], delta, state.f)
        return gauged(problem, state, steps)

    def _widened(self, problem: KernelProblem, state: KernelState) -> KernelState:
        """The state in float64: what float32 said of f, and so of the dual value, is forgotten."""
        state.rows.cache.release()  # before as much is taken again
        state.matrix.release()
        rows = KernelRows(problem, self._left(len(problem.y), True), True)
        f, used = -problem.p, np.flatnonzero(state.beta)
        rows.add(used, state.beta[used], f)
        matrix = WorkingMatrix(rows.n, rows.dtype)
        state = state._replace(f=f, rows=rows, matrix=matrix, wide=True)
        return measured(problem, state)._replace(lowest=np.inf, waited=0)

    def _choose(self, problem: KernelProblem, state: KernelState) -> np.ndarray:
        """The working set, in order."""
        n, beta, f = len(state.f), state.beta, state.f
        largest = self._side(state.wide)
        if n <= min(self.whole, largest):
            return np.arange(n)
        if not beta.any():
            size = max(min(n // 4, self.first), self.whole)
            return _sample(problem, min(size, largest), state.rng)
        grows, shrinks = beta < problem.high, beta > problem.low
        free = np.flatnonzero(grows & shrinks)
        least_size, spare = min(self.smallest, n // 4), min(512, n // 8)
        size = int(min(n, largest, max(least_size, 1.25 * free.size + spare)))
        least, most = state.bounds if problem.free else (0.0, 0.0)
        if free.size > 3 * size // 4:
            away = np.abs(f[free] - 0.5 * (least + most))
            free = free[_largest(away, 3 * size // 4)]
        grows[free] = shrinks[free] = False
        up, down = np.flatnonzero(grows & (f < most)), np.flatnonzero(shrinks & (f > least))
        room = size - free.size
        half = max(room - down.size, min(room // 2, up.size))
        up = up[_largest(-f[up], half)]
        grows[up] = False
        down = np.setdiff1d(down, up, assume_unique=True)
        down = down[_largest(f[down], room - up.size)]
        return np.sort(np.concatenate([free, up, down]))

    def _board(self, problem: KernelProblem, state: KernelState) -> tuple[Board, np.ndarray]:
        members = state.matrix.members
        there = members >= 0

        def of(vector: np.ndarray) -> np.ndarray:
            return np.where(there, vector[members], 0.0)

        least, most = state.bounds
        middle = 0.5 * (least + most) if problem.free else 0.0
        parts = (of(problem.q), of(state.f - middle), of(state.beta))
        return board(state.matrix.K, *parts, of(problem.low), of(problem.high)), members

    def _solve(self, problem: KernelProblem, state: KernelState, small: Board) -> int:
        """Steps within the working set, a slice at a time."""
        # of the violation, what the gap asked for seems to need
        needed = min(1.0, self.share * state.objective / max(state.estimate, 1e-300))
        enough = 0.5 * max(self.floor, needed * state.violation if self.share else 0.0)
        whole = np.count_nonzero(state.matrix.members >= 0) == len(state.f)
        depth = (0.0 if self.floor else 0.01) if whole else self.depth
        goal = max(enough, depth * state.violation, 0.0 if state.wide else 0.5 * _NARROW)
        method = pair_steps if problem.free else coordinate_steps
        m = len(small.beta)
        length, total = max(1, min(_SLICE // m, _PATIENCE * m)), 0
        while total < 50 * m:
            steps, _ = method(small, goal, length)
            total += steps
            if steps < length:
                break
            free_step(small, problem.free)
        return total

    def candidate(self, problem: KernelProblem, state: KernelState) -> tuple[np.ndarray, Any]:
        return state.beta, state.f + problem.p

    def refresh(self, problem: KernelProblem, state: KernelState, seen: Evaluation) -> KernelState:
        return refreshed(problem, state, seen)


def _sample(problem: KernelProblem, size: int, rng: Any) -> np.ndarray:
    """Rows of both classes, as many of each as their share, yet an eighth at least."""
    positive, negative = np.flatnonzero(problem.y > 0), np.flatnonzero(problem.y < 0)
    share = round(size * positive.size / len(problem.y))
    share = int(np.clip(share, size // 8, size - size // 8))
    share = max(min(share, positive.size), size - negative.size)
    drawn = (
        rng.choice(positive, share, replace=False),
        rng.choice(negative, size - share, replace=False),
    )
    return np.sort(np.concatenate(drawn))


def _largest(values: np.ndarray, k: int) -> np.ndarray:
    """Indices of the k largest."""
    if k >= values.size:
        return np.arange(values.size)
    return np.argpartition(-values, k)[:k]
