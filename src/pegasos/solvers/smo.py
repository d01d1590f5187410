"""Sequential minimal optimisation: pairs of coordinates, in closed form.

Dual:      max p'beta - 1/2 beta'K beta,  low <= beta <= high,  sum beta = 0;   f = K beta - p
Update:    beta_i += t, beta_j -= t,  t = min((f_j - f_i) / (K_ii + K_jj - 2 K_ij), room)
Selection: i = argmin f over beta < high;
           j = argmax (f_j - f_i)^2 / (K_ii + K_jj - 2 K_ij) over beta > low, f_j > f_i
Stopping:  max f over beta > low minus min f over beta < high; the driver certifies

`pair_steps` works on a matrix in memory; the selections run over LANES numbers side by side, for
a minimum over one running number does not vectorise. `Smo` is the same on the whole problem with
rows from a cache.

Platt, 1998; Fan, Chen, Lin, JMLR 2005 (second-order selection, WSS 2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pegasos.core.dispatch import helper
from pegasos.core.jit import hot, hot_allocating
from pegasos.objective.kernel_problem import KernelProblem
from pegasos.solvers.kernel_state import KernelState, begun, gauged, refreshed

LANES = 64
BIG = 1e30  # stands for "cannot move this way": beyond any slope, yet finite


class Board(NamedTuple):
    """A small problem: K of shape (m, m / LANES, LANES); `up` and `down` hold f of those that can
    grow and shrink (else +-BIG); beta, low, high in float64; `flat`: the least curvature along a
    pair, as a share of K_ii + K_jj."""

    K: np.ndarray
    diagonal: np.ndarray
    up: np.ndarray
    down: np.ndarray
    beta: np.ndarray
    low: np.ndarray
    high: np.ndarray
    flat: float


def board(K: np.ndarray, diagonal, f, beta, low, high) -> Board:
    """A board from a square matrix whose size is a multiple of LANES, and vectors as long."""
    dtype, shape = K.dtype, (-1, LANES)
    up = np.where(beta < high, f, BIG).astype(dtype).reshape(shape)
    down = np.where(beta > low, f, -BIG).astype(dtype).reshape(shape)
    diagonal = diagonal.astype(dtype).reshape(shape)
    flat = 2.0 * float(np.finfo(dtype).eps)
    return Board(K.reshape(len(K), -1, LANES), diagonal, up, down, beta, low, high, flat)


@helper
def _move(beta, low, high, i, j, t):
    """beta_i += t, beta_j -= t as far as the box allows; returns t."""
    room_i, room_j = high[i] - beta[i], beta[j] - low[j]
    if t >= room_i and room_i <= room_j:
        t = room_i
        beta[j] = low[j] if room_i == room_j else beta[j] - t
        beta[i] = high[i]
    elif t >= room_j:
        t = room_j
        beta[i] += t
        beta[j] = low[j]
    else:
        beta[i] += t
        beta[j] -= t
    return t


@hot_allocating
def pair_steps(board, goal, most):
    """Up to `most` steps, until the violation is below `goal`; returns their number and it."""
    K, diagonal, up, down, beta = board.K, board.diagonal, board.up, board.down, board.beta
    chunks = up.shape[0]
    zero, big = up.dtype.type(0.0), up.dtype.type(BIG)
    flat = up.dtype.type(board.flat)
    value = np.empty(LANES, up.dtype)  # of each lane, the best so far
    chunk = np.empty(LANES, np.int32)  # and where it is
    greatest = np.empty(LANES, up.dtype)
    value[:] = big
    chunk[:] = 0
    for c in range(chunks):
        line = up[c]
        for k in range(LANES):
            better = line[k] < value[k]
            chunk[k] = np.int32(c) if better else chunk[k]
            value[k] = line[k] if better else value[k]
    gap = big
    for step in range(most):
        ki = np.argmin(value)
        ci, least = np.int64(chunk[ki]), value[ki]
        i = ci * LANES + ki
        Ki, dii = K[i], diagonal[ci, ki]
        value[:] = zero
        chunk[:] = -1
        greatest[:] = -big
        for c in range(chunks):
            line, across, own = down[c], Ki[c], diagonal[c]
            for k in range(LANES):
                v = line[k]
                greatest[k] = v if v > greatest[k] else greatest[k]
                d = v - least
                d = d if d > zero else zero
                e = dii + own[k] - across[k] - across[k]
                least_e = flat * (dii + own[k])
                e = e if e > least_e else least_e
                gain = d * d / e
                better = gain > value[k]
                chunk[k] = np.int32(c) if better else chunk[k]
                value[k] = gain if better else value[k]
        gap = greatest.max() - least
        kj = np.argmax(value)
        cj = np.int64(chunk[kj])
        if gap < goal or cj < 0:
            return step, gap
        j = cj * LANES + kj
        Kj, fj = K[j], down[cj, kj]
        e = dii + diagonal[cj, kj] - Ki[cj, kj] - Ki[cj, kj]
        e = max(e, flat * (dii + diagonal[cj, kj]))
        t = _move(beta, board.low, board.high, i, j, np.float64((fj - least) / e))
        up[ci, ki] = least if beta[i] < board.high[i] else big
        down[ci, ki] = least if beta[i] > board.low[i] else -big
        up[cj, kj] = fj if beta[j] < board.high[j] else big
        down[cj, kj] = fj if beta[j] > board.low[j] else -big
        s = up.dtype.type(t)
        value[:] = big
        for c in range(chunks):
            a, b, grow, shrink = Ki[c], Kj[c], up[c], down[c]
            for k in range(LANES):
                d = s * (a[k] - b[k])
                u = grow[k] + d
                grow[k] = u
                shrink[k] += d
                better = u < value[k]
                chunk[k] = np.int32(c) if better else chunk[k]
                value[k] = u if better else value[k]
    return most, gap


@dataclass(frozen=True)
class Smo:
    """SMO on the whole problem, with rows in float64 from a cache of `budget` bytes."""

    budget: int = 1 << 30

    def init(self, problem: KernelProblem, seed: int, alpha: Any = None) -> KernelState:
        return begun(problem, alpha, self.budget)

    def step(self, problem: KernelProblem, state: KernelState) -> KernelState:
        """As many pairs as there are rows, or 0.1 s of them."""
        n = len(state.f)
        most = max(1, min(n, (1 << 25) // n))
        for done in range(most):
            if not self._pair(problem, state):
                return gauged(problem, state, done)
        return gauged(problem, state, most)

    def _pair(self, problem: KernelProblem, state: KernelState) -> bool:
        """One step; False if no pair can move."""
        f, beta, low, high = state.f, state.beta, problem.low, problem.high
        i = first_of_pair(f, beta, high)
        if i < 0:
            return False
        Ki = state.rows.row(i)
        j = second_of_pair(f, beta, low, Ki, problem.q, i)
        if j < 0:
            return False
        Kj = state.rows.row(j)
        step_of_pair(f, beta, (low, high), (Ki, Kj), problem.q, i, j)
        return True

    def candidate(self, problem: KernelProblem, state: KernelState) -> tuple[np.ndarray, Any]:
        return state.beta, state.f + problem.p

    def refresh(self, problem: KernelProblem, state: KernelState, seen: Any) -> KernelState:
        return refreshed(problem, state, seen)


@hot
def first_of_pair(f, beta, high):
    """argmin f over beta < high; -1 if there is none."""
    i, least = -1, np.inf
    for k in range(f.shape[0]):
        if beta[k] < high[k] and f[k] < least:
            i, least = k, f[k]
    return i


@helper
def _bend(q, K, i, k):
    """The curvature along a pair, kept above rounding."""
    e = q[i] + q[k] - 2.0 * K[k]
    return max(e, 4e-16 * (abs(q[i]) + abs(q[k])) + 1e-300)


@hot
def second_of_pair(f, beta, low, Ki, q, i):
    """The j that gains most with i; -1 if there is none."""
    j, best = -1, 0.0
    for k in range(f.shape[0]):
        d = f[k] - f[i]
        if beta[k] > low[k] and d > 0.0:
            gain = d * d / _bend(q, Ki, i, k)
            if gain > best:
                j, best = k, gain
    return j


@hot
def step_of_pair(f, beta, box, rows, q, i, j):
    """The step, and f after it."""
    t = (f[j] - f[i]) / _bend(q, rows[0], i, j)
    t = _move(beta, box[0], box[1], i, j, t)
    for k in range(f.shape[0]):
        f[k] += t * (rows[0][k] - rows[1][k])
