"""Second-order steps of descent where the dual is curved, as it is with the logistic loss.

Problem:  D(alpha) = -1/2 ||v||^2 - w0.v - sum_i c_i l*(-alpha_i/c_i), l* with two derivatives
          inside its domain (`objective.losses.rise`)
Moves:    S_j and U_j as in `solvers.moves`. In their span the gradient and the second derivatives
          of D cost a sum over the rows and one over the columns, but no look at any row:
          g = -U w - S' l*',  G = U U' + S' diag(l*'' / c) S
Update:   alpha <- alpha + t (clip(alpha + sum_j theta_j S_j) - alpha), G theta = g, a Newton step
          in the span that goes at most nine tenths of the way to a bound, where l*'' has no end;
          t is the first of 1, 1/2, 1/4 that raises D, else 0

An epoch with such a loss moves every row: the sums of a step cost little beside it, and pay early.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pegasos.core.dispatch import generic
from pegasos.core.jit import hot, hot_allocating
from pegasos.core.rows import row_axpy
from pegasos.objective.losses import conjugate, domain, rise
from pegasos.objective.problem import Problem
from pegasos.solvers.moves import Moves, bends, best_of, close, combine, take
from pegasos.solvers.steps import Place

_PATIENCE = 4  # epochs before the first move is remembered
_LEAST = (
    1e-11  # gap, of the objective: below, moves are rounding, of which w has another than alpha
)
_FAR = 0.9  # of the way to a bound
_EDGE = 1e-12  # of c: who is so near to a bound does not take part
_LENGTHS = (1.0, 0.5, 0.25)


@generic
def is_curved(problem: Any) -> bool:
    """Whether these steps can be taken"""
    return False


@is_curved.register(Problem)
def _(problem):
    low, high = domain(problem.loss)
    middle = 0.5 * (low + high)
    return bool(np.isfinite(middle) and np.isfinite(rise(problem.loss, middle)).all())


def patience(state: Any) -> int:
    """Epochs before the first move is remembered."""
    return _PATIENCE


def is_far(state: Any) -> bool:
    """Whether moves are more than rounding."""
    return bool(state.estimate > _LEAST * abs(state.objective))


def combined(problem: Problem, place: Place, moves: Moves, gain: float, visits: int) -> Moves:
    """Step to about the best combination of the moves, the one at hand included; `gain`, what it
    gained, is for other duals.

    alpha and w of `place` are changed; the step becomes a part of the move.
    """
    k, (S, U, G, g, *_) = moves.oldest, moves
    at_columns = U, place.w, problem.center, moves.v, np.empty(U.shape[1])
    S[:, k] = place.alpha - moves.alpha
    reach = domain(problem.loss)
    _bend(problem, place, (S, reach), g, G)
    theta = _best(at_columns, k, g, G)
    change = np.empty_like(place.alpha)
    _aim(problem, place, (S, theta, reach), at_columns[-1], change)
    slope, bend = _along(at_columns)
    for t in _LENGTHS:
        if t * (slope - 0.5 * t * bend) + _rise(problem, place.alpha, change, t) > 0.0:
            place.alpha[:] += t * change
            S[:, k] += t * change
            break
    else:
        t = 0.0
    _go(t, at_columns, k)
    moves.alpha[:] = place.alpha
    return moves._replace(visits=visits, oldest=(k + 1) % len(g))


@hot_allocating
def _best(at_columns, k, g, G):
    """Close move k; with what the columns add to g and G, the best combination and its dw."""
    U, w, w0, v, dw = at_columns
    along = np.zeros(g.shape[0])
    close(U, k, w, w0, v)
    bends(U, w, along)
    for m in range(g.shape[0]):
        g[m] -= along[m]
        bends(U, U[m], G[m])
    theta = best_of(G, g)
    combine(U, theta, dw)
    return theta


@hot_allocating
def _along(at_columns):
    """-w.dw and ||dw||^2"""
    _, w, _, _, dw = at_columns
    return -np.dot(w, dw), np.dot(dw, dw)


@hot
def _go(t, at_columns, k):
    U, w, w0, v, dw = at_columns
    take(t, dw, U[k], w, w0, v)


@hot
def _bend(problem, place, along, g, G):
    """What the rows add to the slopes and the curvatures along the moves."""
    S, (low, high) = along
    g[:] = 0.0
    G[:, :] = 0.0
    for i in range(place.alpha.shape[0]):
        c = problem.c[i]
        a = place.alpha[i] / c
        if min(a - low, high - a) <= _EDGE:
            continue
        tilt, bend = rise(problem.loss, a)
        for m in range(g.shape[0]):
            g[m] -= S[i, m] * tilt
            for j in range(g.shape[0]):
                G[m, j] += S[i, m] * S[i, j] * (bend / c)


@hot
def _aim(problem, place, along, dw, change):
    """change = S theta, but well inside the domain, and 0 for rows aside; dw follows."""
    S, theta, (low, high) = along
    for i in range(place.alpha.shape[0]):
        move = 0.0
        for m in range(theta.shape[0]):
            move += theta[m] * S[i, m]
        old, c = place.alpha[i], problem.c[i]
        kept = min(max(move, _FAR * (low * c - old)), _FAR * (high * c - old))
        if not place.stays[i] or min(old - low * c, high * c - old) <= _EDGE * c:
            kept = 0.0
        change[i] = kept
        if kept != move:
            row_axpy(problem.rows, i, (kept - move) * problem.y[i], dw)


@hot
def _rise(problem, alpha, change, t):
    """By how much sum c_i l*(-alpha_i/c_i) falls with t times the change."""
    total = 0.0
    for i in range(alpha.shape[0]):
        if change[i] != 0.0:
            c = problem.c[i]
            new = conjugate(problem.loss, (alpha[i] + t * change[i]) / c)
            total += c * (conjugate(problem.loss, alpha[i] / c) - new)
    return total
