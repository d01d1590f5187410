"""Second-order steps of descent, from the moves of its last epochs.

Problem:  where l*(-a) is a line or a parabola (hinge, pinball, squared hinge), the dual is
          quadratic, D(alpha) = sum_i (k alpha_i - r alpha_i^2 / (2 c_i)) - 1/2 ||v||^2 - w0.v, and
          where descent is slow its epochs are steps of a linear iteration on the rows between
          their bounds
Moves:    S_j, the last few moves of alpha, and U_j = sum_i S_ij y_i x_i, those of w. In their
          span D is known without a look at the rows: slopes g_j = S_j.grad D, curvature
          G = U U' + S' diag(r / c) S
Update:   alpha <- alpha + t (clip(alpha + sum_j theta_j S_j) - alpha), G theta = g,
          t <= 1 from the slope and the curvature along it, so that D never falls
Slopes:   followed from move to move (the gain of an epoch is summed over its steps s, for r = 0
          k s - z s - q s^2 / 2): as differences of sum alpha and w.v they would drown in rounding
          at small gaps

Of several classes (`solvers.crammer_singer`) alpha and w are matrices; each U_j is w in one line.

`curved_moves` has the same verbs (`patience`, `is_far`, `combined`) for a dual that is not
quadratic.

With one move this is conjugate gradients with an epoch of descent as preconditioner; since that is
not symmetric and changes from epoch to epoch, a few moves do better. What the clip and the rows
aside take away from a move costs a look at those rows, and at no others.

Notay, SIAM J. Sci. Comput. 2000 (flexible conjugate gradients); Bertrand, Massias, AISTATS 2021
(extrapolated coordinate descent).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pegasos.core.dispatch import generic, helper
from pegasos.core.jit import hot, hot_allocating
from pegasos.core.rows import n_entries, n_rows, row_axpy, row_dot, row_work
from pegasos.core.threads import run_blocks
from pegasos.objective.losses import slope
from pegasos.objective.problem import Problem
from pegasos.solvers.steps import Place

PATIENCE = 20  # epochs before the first move is remembered, at most
_EARLY = 8  # the same where each variable has a curvature of its own
_SAME = 1e-10  # of 1: moves that agree so far say nothing new
_NOTHING = 1e-20  # of the objective: the gain of steps in the last digit
_COLUMNS = 1024  # of a block that stays in cache
_MANY, _PIECES = 1 << 24, 4  # entries, from which on rows are looked at in so many pieces
_OUTWEIGH = 128  # entries to a column: or sums cost more than they spare
_COST = 2.0  # work between two steps in ns, for each entry of alpha and w


class Moves(NamedTuple):
    """S, U, G and g; `alpha`, `v` = w - w0 and the centre b of the virtual weight where the move
    at hand began, and `visits` as they were; it will take the place of move `oldest`."""

    S: np.ndarray
    U: np.ndarray
    G: np.ndarray
    g: np.ndarray
    alpha: np.ndarray
    v: np.ndarray
    b: np.ndarray
    visits: int
    oldest: int


def no_moves(problem: Any, place: Place, visits: int, memory: int) -> Moves:
    """A first move begins here."""
    S, U = np.zeros((*place.alpha.shape, memory)), np.zeros((memory, place.w.size))
    G, g = np.zeros((memory, memory)), np.zeros(memory)
    v, b = place.w - problem.center, np.copy(problem.center[-1])
    return Moves(S, U, G, g, place.alpha.copy(), v, b, visits, 0)


def check(moves: Moves) -> None:
    """A ValueError if the arrays do not fit each other, as compiled loops take for granted."""
    m = moves.g.size
    fit = moves.S.shape[-1] == m and moves.S.shape[:-1] == moves.alpha.shape
    fit = fit and moves.U.shape == (m, moves.v.size) and moves.G.shape == (m, m)
    if not (fit and 0 <= moves.oldest < m):
        raise ValueError("moves: arrays of different lengths")


def worthwhile(problem: Any, place: Place, visits: int) -> bool:
    """Whether a move of so many visits has taken so long that a step costs little beside it."""
    vectors = place.alpha.size / n_rows(problem.rows)
    return visits * row_work(problem.rows) * vectors >= _COST * (place.alpha.size + place.w.size)


def combined(problem: Any, place: Place, moves: Moves, gain: float, visits: int) -> Moves:
    """Step to the best combination of the moves, the one at hand, which gained so much, included.

    alpha and w of `place` are changed; the step becomes a part of the move.
    """
    k, (S, U, G, g, *_), b = moves.oldest, moves, problem.center[-1]
    shift = np.ravel(b - moves.b)  # by which a free intercept has moved the centre
    target, dw = np.empty_like(place.alpha), np.empty(U.shape[1])
    c = problem.c if place.alpha.ndim == 1 else np.repeat(problem.c, place.alpha.shape[1])
    at_rows = S.reshape(-1, len(g)), place.alpha.reshape(-1), moves.alpha.reshape(-1), c, place.r
    at_columns = U, place.w.reshape(-1), problem.center.reshape(-1), moves.v.reshape(-1), dw
    theta = _best(at_rows, at_columns, (G, g), k, gain, shift)
    tilt = float(theta @ g) + aim(problem, place, (S, theta), dw.reshape(place.w.shape), target)
    _go(at_rows, at_columns, (G, g), k, tilt, target.reshape(-1))
    return moves._replace(b=np.copy(b), visits=visits, oldest=(k + 1) % len(g))


@hot_allocating
def _best(at_rows, at_columns, known, k, gain, shift):
    """Close move k in S, U, G and g; theta, the best combination, and its dw."""
    S, alpha, before, c, r = at_rows
    U, w, w0, v, dw = at_columns
    G, g = known
    along = np.zeros(g.shape[0])
    close(U, k, w, w0, v)
    bends(U, U[k], along)
    for i in range(alpha.shape[0]):
        S[i, k] = alpha[i] - before[i]
    if r > 0.0:
        along += _stiffness(S, c, r, before, alpha)[0]
    for j in range(g.shape[0]):
        G[k, j], G[j, k] = along[j], along[j]
        g[j] -= along[j] + np.dot(U[j, U.shape[1] - shift.shape[0] :], shift)
    g[k] = gain - 0.5 * along[k]
    theta = best_of(G, g)
    combine(U, theta, dw)
    return theta


@hot_allocating
def _go(at_rows, at_columns, known, k, tilt, target):
    """A step towards the target, the best that is not beyond, which is a part of move k; the next
    one begins there."""
    S, alpha, before, c, r = at_rows
    U, w, w0, v, dw = at_columns
    G, g = known
    along = np.zeros(g.shape[0])
    bend = bends(U, dw, along)
    if r > 0.0:
        more, stiff = _stiffness(S, c, r, alpha, target)
        along += more
        bend += stiff
    t = min(1.0, tilt / bend) if tilt > 0.0 and bend > 0.0 else 0.0
    if t > 0.0:
        for j in range(g.shape[0]):
            g[j] -= t * along[j]
            G[k, j] += t * along[j]
            G[j, k] = G[k, j]
        g[k] += t * (tilt - t * bend)
        G[k, k] += t * (along[k] + t * bend)
    for i in range(alpha.shape[0]):
        if t > 0.0:
            alpha[i] = target[i] if t == 1.0 else alpha[i] + t * (target[i] - alpha[i])
        S[i, k] = alpha[i] - before[i]
        before[i] = alpha[i]
    take(t, dw, U[k], w, w0, v)


@helper
def _stiffness(S, c, r, start, to):
    """What the parabolas of the rows add to the curvatures of a way with the moves and with itself:
    d' diag(r / c) S and d' diag(r / c) d, d = to - start."""
    pull, bend = np.empty(to.shape[0]), 0.0
    for i in range(to.shape[0]):
        pull[i] = r * (to[i] - start[i]) / c[i]
        bend += pull[i] * (to[i] - start[i])
    return np.dot(pull, S), bend


@helper
def close(U, k, w, w0, v):
    """U_k = w - w0 - v"""
    own = U[k]
    for j in range(w.shape[0]):
        own[j] = w[j] - w0[j] - v[j]


@helper
def combine(U, theta, dw):
    """dw = sum_j theta_j U_j, block by block, which stay in cache."""
    for start in range(0, dw.shape[0], _COLUMNS):
        end = min(start + _COLUMNS, dw.shape[0])
        sum_ = dw[start:end]
        sum_[:] = 0.0
        for m in range(U.shape[0]):
            move, a = U[m, start:end], theta[m]
            for j in range(end - start):
                sum_[j] += a * move[j]


@helper
def bends(U, dw, along):
    """Products of dw with all of U, added to `along`, and with itself."""
    bend = 0.0
    for start in range(0, dw.shape[0], _COLUMNS):
        end = min(start + _COLUMNS, dw.shape[0])
        step = dw[start:end]
        bend += np.dot(step, step)
        for m in range(U.shape[0]):
            along[m] += np.dot(U[m, start:end], step)
    return bend


@helper
def take(t, dw, move, w, w0, v):
    """A step of length t, which is a part of the move; the next one begins at v = w - w0."""
    for j in range(dw.shape[0]):
        if t > 0.0:
            w[j] += t * dw[j]
            move[j] += t * dw[j]
        v[j] = w[j] - w0[j]


def patience(state: Any) -> int:
    """Epochs before the first move is remembered."""
    return _EARLY if state.r > 0.0 else PATIENCE


def is_far(state: Any) -> bool:
    """Whether the steps of descent since the last move gained more than the last digit holds."""
    return bool(state.gain > _NOTHING * abs(state.objective))


@helper
def best_of(G, g):
    """theta with G theta = g in the span of the moves that differ: by elimination, the move that
    adds most to the others first; moves that add nothing are left out."""
    m = g.shape[0]
    theta, scale, A = np.zeros(m), np.zeros(m), np.empty((m, m + 1))
    for i in range(m):
        scale[i] = 1.0 / np.sqrt(G[i, i]) if G[i, i] > 0.0 else 0.0
    for i in range(m):
        for j in range(m):
            A[i, j] = scale[i] * G[i, j] * scale[j]
        A[i, m] = scale[i] * g[i]
    if not np.isfinite(A).all():  # overflow: no step
        return theta
    order, rank = np.arange(m), 0
    while rank < m:
        best = rank
        for i in range(rank + 1, m):
            best = i if A[order[i], order[i]] > A[order[best], order[best]] else best
        order[rank], order[best] = order[best], order[rank]
        p = order[rank]
        if not A[p, p] > _SAME:
            break
        rank += 1
        for i in order[rank:]:
            A[i] -= (A[i, p] / A[p, p]) * A[p]
    for s in range(rank - 1, -1, -1):
        p = order[s]
        rest = A[p, m]
        for q in order[s + 1 : rank]:
            rest -= A[p, q] * theta[q]
        theta[p] = rest / A[p, p]
    return scale * theta


@generic
def aim(problem: Any, place: Place, along: tuple, dw: np.ndarray, target: np.ndarray) -> float:
    """target = alpha + S theta for along = (S, theta), but feasible, and alpha for rows aside; dw
    follows. Returns what that changes in the slope of D."""


@aim.register(Problem)
def _(problem, place, along, dw, target):
    """Rows of a very large problem in pieces, which threads share: each has a sum of its own."""
    n = n_rows(problem.rows)
    if n_entries(problem.rows) < max(_MANY, _OUTWEIGH * dw.size):
        return _aim(problem, place, along, dw, target, 0, n)

    def piece(start: int, stop: int) -> tuple[float, np.ndarray]:
        own = np.zeros_like(dw)
        return _aim(problem, place, along, own, target, start, stop), own

    found = run_blocks(piece, n, -(-n // _PIECES))
    for _, own in found:
        dw += own
    return sum(tilt for tilt, _ in found)


@hot
def _aim(problem, place, along, dw, target, start, stop):
    S, theta = along
    low, high = -slope(problem.loss, np.inf), -slope(problem.loss, -np.inf)
    tilt = 0.0
    for i in range(start, stop):
        move, old = 0.0, place.alpha[i]
        for j in range(theta.shape[0]):
            move += theta[j] * S[i, j]
        target[i] = old
        if move == 0.0:
            continue
        c, y = problem.c[i], problem.y[i]
        new = min(max(old + move, low * c), high * c) if place.stays[i] else old
        target[i] = new
        lack = new - (old + move)
        if lack != 0.0:
            tilt += lack * (place.k - y * row_dot(problem.rows, i, place.w) - place.r * old / c)
            row_axpy(problem.rows, i, lack * y, dw)
    return tilt
