"""Second-order steps of lanes, from the moves of their last epochs: `solvers.moves` for a line.

Losses: of two lines that meet at z = k (hinge, pinball)
Moves:  S_j of alpha and U_j of w, lines of LANES numbers in float32
Slopes: g_j = k sum_i S_ij - U_j.w and curvatures U_j.U_l, summed anew in float64 each time: float32
        leads to gaps at which such differences do not yet drown in rounding
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pegasos.core.dispatch import helper
from pegasos.core.jit import hot, hot_allocating
from pegasos.core.lanes import LANES, add_line, add_product, lines, put_line
from pegasos.core.many import row_axpys, row_dots, row_mark
from pegasos.core.rows import n_rows, row_work
from pegasos.objective.losses import parabola, slope
from pegasos.objective.problem import Problem
from pegasos.solvers.lane_steps import LaneState

MEMORY = 3  # moves
PATIENCE = 20  # epochs before the first
_SAME = 1e-6  # of 1: moves in float32 that agree so far say nothing new
_NOISE = 1e-7  # of ||w - w0||^2: less is rounding, which a step of many such moves would multiply
_COST = 20.0  # ns of work between two steps, for each line of alpha and W
_VISIT = 30.0  # ns of a step on a row beside its entries
_MOVE, _OLD, _LACK, _SLOPE, _NUMBERS = range(5)  # of lanes at a row, lines of an array


class LaneMoves(NamedTuple):
    """S and U; alpha, W and the last line of w0 where the move at hand began; what a step would
    make of alpha and add to W; marks of the rows that have moved and of their columns."""

    S: np.ndarray
    U: np.ndarray
    alpha: np.ndarray
    W: np.ndarray
    b: np.ndarray
    target: np.ndarray
    dw: np.ndarray
    rows: np.ndarray
    columns: np.ndarray


def has_moves(loss: Any) -> bool:
    """Whether the dual is quadratic, with no curvature but that of w."""
    return bool(parabola(loss)[1] == 0.0)


def visits_between(problem: Problem) -> int:
    """Steps on rows that take so long that a second-order step costs little beside them."""
    n, d = n_rows(problem.rows), len(problem.center)
    return int(_COST * (n + d) / (_VISIT + 2.0 * row_work(problem.rows)))


def no_moves(state: LaneState) -> LaneMoves:
    """A first move begins here."""
    n, d = len(state.alpha), len(state.W)
    S, U, alpha, W = lines(MEMORY * n), lines(MEMORY * d), lines(n), lines(d)
    alpha[:], W[:] = state.alpha, state.W
    marks = np.zeros(n, np.bool_), np.zeros(d, np.bool_)
    return LaneMoves(S, U, alpha, W, state.centers[-1:].copy(), lines(n), lines(d), *marks)


def combined(problem: Problem, state: LaneState, moves: LaneMoves, oldest: int) -> int:
    """Step to the best combination of the moves, in lanes that run.

    alpha and W are changed; the step becomes a part of the move, which takes the place `oldest`.
    Returns the number of rows that it looked at.
    """
    k = parabola(problem.loss)[0]
    _mark(problem.rows, state.alpha, moves)
    places = np.flatnonzero(moves.rows), np.flatnonzero(moves.columns)
    G, g = _summed(state, moves, places, oldest, k)
    theta = _solution(G, g, state.running, _NOISE * state.sqdist)
    tilt, bend, looks = _aim(problem, state, moves, places, theta, k)
    tilt += np.sum(theta * g, axis=0)
    good = (tilt > 0.0) & (bend > 0.0)
    t = np.minimum(1.0, np.divide(tilt, bend, out=np.zeros(LANES), where=good))
    _go(state, moves, places, t[None, :], oldest)
    moves.b[:] = state.centers[-1]
    return int(looks)


@hot_allocating
def _solution(G, g, running, least):
    """theta of each lane that runs with G theta = g; a move that others span has no part in it."""
    theta, L, pivot = np.zeros((MEMORY, LANES)), np.zeros((MEMORY, MEMORY)), np.zeros(MEMORY)
    for p in range(LANES):
        for a in range(MEMORY):  # G = L diag(pivot) L'
            for b in range(a + 1):
                total = G[a, b, p]
                for m in range(b):
                    total -= L[a, m] * pivot[m] * L[b, m]
                if b < a:
                    L[a, b] = total / pivot[b] if pivot[b] > 0.0 else 0.0
            new = total > max(_SAME * G[a, a, p], least[p])
            pivot[a] = total if running[p] and new else 0.0
        for a in range(MEMORY):
            theta[a, p] = g[a, p]
            for b in range(a):
                theta[a, p] -= L[a, b] * theta[b, p] if pivot[b] > 0.0 else 0.0
        for a in range(MEMORY - 1, -1, -1):
            theta[a, p] = theta[a, p] / pivot[a] if pivot[a] > 0.0 else 0.0
            for b in range(a + 1, MEMORY):
                theta[a, p] -= L[b, a] * theta[b, p] if pivot[a] > 0.0 else 0.0
    return theta


@hot
def _mark(rows, alpha, moves):
    for i in range(alpha.shape[0]):
        if not moves.rows[i]:
            moved = np.int64(0)
            for p in range(LANES):
                moved |= np.int64(alpha[i, p] != moves.alpha[i, p])
            if moved != 0:
                moves.rows[i] = True
                row_mark(rows, i, moves.columns)


@hot_allocating
def _summed(state, moves, places, oldest, k):
    """Close the move at hand; curvatures and slopes of all moves."""
    S, U, W, alpha = moves.S, moves.U, state.W, state.alpha
    end = W.shape[0] - 1
    add_line(state.centers, end, 1.0, moves.W, end)  # a free intercept has moved the centre
    add_line(moves.b, 0, -1.0, moves.W, end)
    G, g = np.zeros((MEMORY, MEMORY, LANES)), np.zeros((MEMORY, LANES))
    for j in places[1]:
        put_line(W, j, 1.0, U, j * MEMORY + oldest)
        add_line(moves.W, j, -1.0, U, j * MEMORY + oldest)
        for a in range(MEMORY):
            add_product(U, j * MEMORY + a, W, j, g, a)
            for b in range(a + 1):
                add_product(U, j * MEMORY + a, U, j * MEMORY + b, G, a * MEMORY + b)
    g *= -1.0
    for i in places[0]:
        put_line(alpha, i, 1.0, S, i * MEMORY + oldest)
        add_line(moves.alpha, i, -1.0, S, i * MEMORY + oldest)
        for a in range(MEMORY):
            add_line(S, i * MEMORY + a, k, g, a)
    for a in range(MEMORY):
        for b in range(a):
            G[b, a] = G[a, b]
    return G, g


@hot_allocating
def _aim(problem, state, moves, places, theta, k):
    """target = alpha + S theta, but feasible, and alpha for rows aside; dw follows. Returns what
    that changes in the slope along the step, its curvature, and at how many rows it looked."""
    rows, dw = problem.rows, moves.dw
    work, tilt, bend = np.zeros((_NUMBERS, LANES)), np.zeros((1, LANES)), np.zeros((1, LANES))
    line, looks = np.empty((1, LANES), np.float32), 0
    for j in places[1]:
        _combination(moves.U, theta, j, work)
        put_line(work, _MOVE, 1.0, dw, j)
    for i in places[0]:
        _combination(moves.S, theta, i, work)
        put_line(state.alpha, i, 1.0, work, _OLD)
        if _falls_short(problem.loss, state.c[i], state.wanted[i], work):
            looks += 1
            row_dots(rows, i, state.W, line)
            for p in range(LANES):
                y = 1.0 if problem.y[i] == state.targets[p] else -1.0
                work[_SLOPE, p] = k - y * line[0, p]
                line[0, p] = y * work[_LACK, p]
            add_product(work, _SLOPE, work, _LACK, tilt, 0)
            row_axpys(rows, i, line, dw)
        put_line(work, _MOVE, 1.0, moves.target, i)
    for j in places[1]:
        add_product(dw, j, dw, j, bend, 0)
    return tilt[0], bend[0], looks


@helper
def _combination(X, theta, i, work):
    work[_MOVE] = 0.0
    for a in range(MEMORY):
        add_product(X, i * MEMORY + a, theta, a, work, _MOVE)


@helper
def _falls_short(loss, weights, want, work):
    """Turn the moves of a row into its targets; whether a bound, or being aside, keeps one back."""
    low, high = -slope(loss, np.inf), -slope(loss, -np.inf)
    short = np.int64(0)
    for p in range(LANES):
        c, old, aim = np.float64(weights[p]), work[_OLD, p], work[_OLD, p] + work[_MOVE, p]
        new = min(max(aim, low * c), high * c) if (want >> p) & 1 != 0 else old
        work[_MOVE, p], work[_LACK, p] = new, new - aim
        short |= np.int64(new != aim)
    return short != 0


@hot_allocating
def _go(state, moves, places, t, oldest):
    """The step, t of the way; it belongs to the move, and the next one begins."""
    work = np.zeros((2, LANES))
    for j in places[1]:
        work[0] = 0.0
        add_product(moves.dw, j, t, 0, work, 0)
        add_line(work, 0, 1.0, state.W, j)
        put_line(state.W, j, 1.0, moves.U, j * MEMORY + oldest)
        add_line(moves.W, j, -1.0, moves.U, j * MEMORY + oldest)
        put_line(state.W, j, 1.0, moves.W, j)
    for i in places[0]:
        put_line(state.alpha, i, -1.0, work, 0)
        add_line(moves.target, i, 1.0, work, 0)
        put_line(state.alpha, i, 1.0, work, 1)
        add_product(work, 0, t, 0, work, 1)
        put_line(work, 1, 1.0, state.alpha, i)
        put_line(state.alpha, i, 1.0, moves.S, i * MEMORY + oldest)
        add_line(moves.alpha, i, -1.0, moves.S, i * MEMORY + oldest)
        put_line(state.alpha, i, 1.0, moves.alpha, i)
