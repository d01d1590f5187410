"""Kernel dual coordinate descent: no offset, or a penalised one (the kernel K + 1).

Dual:      max p'beta - 1/2 beta'K beta,  low <= beta <= high;   the gradient f = K beta - p is kept
Update:    beta_i <- clip(beta_i - f_i / K_ii, low_i, high_i), f follows at the cost of a row
Order:     a fresh random permutation of all rows in each epoch; who would not move costs nothing
Stopping:  the gap by the f at hand; the driver certifies

`coordinate_steps` is the same on a small matrix, always with the coordinate of the greatest slope.

Steinwart, Hush, Scovel, JMLR 2011 (SVMs without offset); Hsieh et al., ICML 2008.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pegasos.core.jit import hot, hot_allocating
from pegasos.core.rng import shuffle, stream
from pegasos.objective.kernel_problem import KernelProblem
from pegasos.solvers.kernel_state import KernelState, begun, gauged, refreshed
from pegasos.solvers.smo import BIG, LANES

_SLICE = 1 << 25  # kernel values used between two returns to the driver


class Tour(NamedTuple):
    """An epoch under way: rows in `order`, those before `place` are done, `moved` of them moved."""

    order: np.ndarray
    place: int
    moved: int


@dataclass(frozen=True)
class KernelDual:
    """Coordinate descent with rows in float64 from a cache of `budget` bytes."""

    budget: int = 1 << 30

    def init(self, problem: KernelProblem, seed: int, alpha: Any = None) -> KernelState:
        if problem.free:
            raise ValueError("coordinate descent has no free offset: use SMO or working sets")
        return begun(problem, alpha, self.budget)._replace(rng=stream(seed))

    def step(self, problem: KernelProblem, state: KernelState) -> KernelState:
        """An epoch, every row once, or 0.1 s of it."""
        order, s, moved = state.tour or (self._order(state), 0, 0)
        limits = problem.q, problem.low, problem.high
        for _ in range(max(1, _SLICE // len(order))):
            s = next_to_move(order, s, state.beta, state.f, *limits)
            if s == len(order):
                return gauged(problem, state._replace(tour=None), moved)
            i = order[s]
            slide(state.beta, state.f, state.rows.row(i), limits, i)
            moved, s = moved + 1, s + 1
        return state._replace(tour=Tour(order, s, moved))

    def _order(self, state: KernelState) -> np.ndarray:
        order = np.arange(len(state.f))
        shuffle(order, len(order), state.rng)
        return order

    def candidate(self, problem: KernelProblem, state: KernelState) -> tuple[np.ndarray, Any]:
        return state.beta, state.f + problem.p

    def refresh(self, problem: KernelProblem, state: KernelState, seen: Any) -> KernelState:
        return refreshed(problem, state, seen)


@hot
def next_to_move(order, s, beta, f, q, low, high):
    """The first place from s on in the order whose coordinate would move."""
    while s < order.shape[0]:
        i = order[s]
        new = min(max(beta[i] - f[i] / max(q[i], 1e-300), low[i]), high[i])
        if abs(new - beta[i]) > 1e-15 * abs(new):
            break
        s += 1
    return s


@hot
def slide(beta, f, row, limits, i):
    """One coordinate step, and f after it."""
    q, low, high = limits
    new = min(max(beta[i] - f[i] / max(q[i], 1e-300), low[i]), high[i])
    t = new - beta[i]
    beta[i] = new
    for k in range(f.shape[0]):
        f[k] += t * row[k]


@hot_allocating
def coordinate_steps(board, goal, most):
    """Up to `most` steps on a `smo.Board`, until no slope is above `goal`; their number, and it."""
    K, diagonal, up, down, beta = board.K, board.diagonal, board.up, board.down, board.beta
    chunks = up.shape[0]
    zero, big = up.dtype.type(0.0), up.dtype.type(BIG)
    value = np.empty(LANES, up.dtype)
    chunk = np.empty(LANES, np.int32)
    s, i = zero, np.int64(0)
    for step in range(most + 1):
        value[:] = zero
        chunk[:] = 0
        for c in range(chunks):
            a, grow, shrink = K[i, c], up[c], down[c]
            for k in range(LANES):
                d = s * a[k]
                u, v = grow[k] + d, shrink[k] + d
                grow[k], shrink[k] = u, v
                slope = v if v > -u else -u
                better = slope > value[k]
                chunk[k] = np.int32(c) if better else chunk[k]
                value[k] = slope if better else value[k]
        ki = np.argmax(value)
        gap = value[ki]
        if gap <= goal or step == most:
            return step, gap
        ci = np.int64(chunk[ki])
        i = ci * LANES + ki
        f = up[ci, ki] if up[ci, ki] < big else down[ci, ki]
        new = beta[i] - np.float64(f) / max(np.float64(diagonal[ci, ki]), 1e-300)
        new = min(max(new, board.low[i]), board.high[i])
        s = up.dtype.type(new - beta[i])
        beta[i] = new
        up[ci, ki] = f if new < board.high[i] else big
        down[ci, ki] = f if new > board.low[i] else -big
    return most, zero
