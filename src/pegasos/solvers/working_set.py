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
from typing import Any, NamedTuple

import numpy as np

from pegasos.core.jit import hot
from pegasos.objective.certificate import Evaluation
from pegasos.objective.kernel_certificate import extremes, feasible
from pegasos.objective.kernel_problem import KernelProblem
from pegasos.solvers.kernel_cache import add_rows
from pegasos.solvers.kernel_rows import KernelRows
from pegasos.solvers.smo import Board, board, pair_steps
from pegasos.solvers.working_matrix import WorkingMatrix

_SLICE = 1 << 27  # numbers of the matrix read between two returns to Python
_NARROW = 1e-5  # the violation to which float32 is good


class WorkingState(NamedTuple):
    """beta and f = K beta - p; the rows and the matrix of the working set; `bounds` least and most
    f that can move; `dual` the value of the last round, `waited` rounds since it rose."""

    beta: np.ndarray
    f: np.ndarray
    rows: Any
    matrix: Any
    bounds: tuple[float, float]
    rng: Any
    violation: float
    dual: float
    waited: int
    iterations: int
    wide: bool
    estimate: float
    objective: float
    epoch: int
    exhausted: bool


@dataclass(frozen=True)
class WorkingSet:
    """`budget` bytes hold rows and matrix. A working set is solved to `depth` times the violation
    it starts with, never below `floor`, nor below what a relative gap of `share` seems to need."""

    budget: int = 1 << 30
    first: int = 2048
    smallest: int = 1024
    largest: int = 6144
    depth: float = 0.1
    floor: float = 0.0
    share: float = 0.0

    def init(self, problem: KernelProblem, seed: int, alpha: Any = None) -> WorkingState:
        n = len(problem.y)
        beta, f = np.zeros(n), -problem.p
        wide = self.floor < _NARROW and self.share < _NARROW and 16 * n * n <= self.budget
        rows, matrix = self._memory(problem, wide)
        if alpha is not None:
            beta = feasible(problem, alpha)
            used = np.flatnonzero(beta)
            rows.add(used, beta[used], f)
        state = WorkingState(
            beta=beta,
            f=f,
            rows=rows,
            matrix=matrix,
            bounds=(0.0, 0.0),
            rng=np.random.default_rng(seed),
            violation=np.inf,
            dual=-np.inf,
            waited=0,
            iterations=0,
            wide=wide,
            estimate=np.inf,
            objective=np.inf,
            epoch=0,
            exhausted=False,
        )
        return _gauged(problem, state)

    def _side(self, wide: bool) -> int:
        """Of the largest matrix: half of the budget, with room to grow."""
        return max(128, min(self.largest, int(np.sqrt(self.budget / (6.0 * (8 if wide else 4))))))

    def _memory(self, problem: KernelProblem, wide: bool) -> tuple[KernelRows, WorkingMatrix]:
        n = len(problem.y)
        side = 1.2 * min(n, self._side(wide))
        left = self.budget - int(side * side) * (8 if wide else 4)
        rows = KernelRows(problem, left, wide)
        return rows, WorkingMatrix(n, rows.dtype)

    def step(self, problem: KernelProblem, state: WorkingState) -> WorkingState:
        """One working set."""
        if not state.wide and (state.violation < _NARROW or state.waited > 1):
            state = self._widened(problem, state)
        chosen = self._choose(problem, state)
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
        state = state._replace(epoch=state.epoch + 1, iterations=state.iterations + steps)
        return _gauged(problem, state)

    def _widened(self, problem: KernelProblem, state: WorkingState) -> WorkingState:
        rows, matrix = self._memory(problem, True)
        return state._replace(rows=rows, matrix=matrix, wide=True, waited=0)

    def _choose(self, problem: KernelProblem, state: WorkingState) -> np.ndarray:
        """The working set, in order."""
        n, beta, f = len(state.f), state.beta, state.f
        largest = self._side(state.wide)
        if n <= min(self.first, largest):
            return np.arange(n)
        if not beta.any():
            return _sample(problem, min(self.first, largest), state.rng)
        grows, shrinks = beta < problem.high, beta > problem.low
        free = np.flatnonzero(grows & shrinks)
        size = int(min(n, largest, max(self.smallest, 1.25 * free.size + 512)))
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

    def _board(self, problem: KernelProblem, state: WorkingState) -> tuple[Board, np.ndarray]:
        members = state.matrix.members
        there = members >= 0

        def of(vector: np.ndarray) -> np.ndarray:
            return np.where(there, vector[members], 0.0)

        least, most = state.bounds
        middle = 0.5 * (least + most) if problem.free else 0.0
        parts = (of(problem.q), of(state.f - middle), of(state.beta))
        return board(state.matrix.K, *parts, of(problem.low), of(problem.high)), members

    def _solve(self, problem: KernelProblem, state: WorkingState, small: Board) -> int:
        """Steps within the working set, a slice at a time."""
        needed = self.share * state.objective / max(state.estimate, 1e-300)
        goal = max(self.floor, state.violation * min(self.depth, needed))
        goal = max(0.5 * goal if goal > self.depth * state.violation else goal, 0.0 if state.wide else 0.5 * _NARROW)
        goal = max(goal, self.depth * state.violation)
        m = len(small.beta)
        length, total = max(1, _SLICE // m), 0
        while total < 50 * m:
            steps, gap = pair_steps(small, goal, min(length, 50 * m - total))
            total += steps
            if steps < length:
                break
        return total

    def candidate(self, problem: KernelProblem, state: WorkingState) -> tuple[np.ndarray, Any]:
        return state.beta, state.f + problem.p

    def refresh(
        self, problem: KernelProblem, state: WorkingState, seen: Evaluation
    ) -> WorkingState:
        """Go on from the exact scores."""
        state.f[:] = problem.y * seen.margins - seen.w[-1] - problem.p
        state.beta[:] = seen.alpha
        return _gauged(problem, state)


def _sample(problem: KernelProblem, size: int, rng: Any) -> np.ndarray:
    """Rows of both classes, as many of each as their share, yet an eighth at least."""
    positive, negative = np.flatnonzero(problem.y > 0), np.flatnonzero(problem.y < 0)
    share = round(size * positive.size / len(problem.y))
    share = int(np.clip(share, size // 8, size - size // 8))
    share = max(min(share, positive.size), size - negative.size)
    drawn = rng.choice(positive, share, replace=False), rng.choice(negative, size - share, replace=False)
    return np.sort(np.concatenate(drawn))


def _largest(values: np.ndarray, k: int) -> np.ndarray:
    """Indices of the k largest."""
    if k >= values.size:
        return np.arange(values.size)
    return np.argpartition(-values, k)[:k]


def _gauged(problem: KernelProblem, state: WorkingState) -> WorkingState:
    """The state with the gap, the objective and the violation by its f."""
    least, most = extremes(state.f, state.beta, problem.low, problem.high)
    b = -0.5 * (least + most) if problem.free else 0.0
    square, linear, losses = _sums(state.f, state.beta, problem.p, problem.y, problem.c, b, problem.loss.tau)
    primal, dual = 0.5 * square + losses, linear - 0.5 * square
    rose = dual > state.dual + 1e-14 * abs(state.dual)
    waited = 0 if rose else state.waited + 1
    violation = most - least if problem.free else max(most, -least)
    return state._replace(
        bounds=(least, most),
        violation=max(0.0, violation),
        dual=max(dual, state.dual),
        waited=waited,
        estimate=primal - dual,
        objective=primal,
        exhausted=state.wide and waited > 2,
    )


@hot
def _sums(f, beta, p, y, c, b, tau):
    """beta'K beta, p'beta and the sum of losses at offset b."""
    square, linear, losses = 0.0, 0.0, 0.0
    for i in range(f.shape[0]):
        score = f[i] + p[i]
        square += beta[i] * score
        linear += beta[i] * p[i]
        z = y[i] * (score + b)
        losses += c[i] * max(1.0 - z, tau * (z - 1.0))
    return square, linear, losses
