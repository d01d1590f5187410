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

With one move this is conjugate gradients with an epoch of descent as preconditioner; since that is
not symmetric and changes from epoch to epoch, a few moves do better. What the clip and the rows
aside take away from a move costs a look at those rows, and at no others.

Notay, SIAM J. Sci. Comput. 2000 (flexible conjugate gradients); Bertrand, Massias, AISTATS 2021
(extrapolated coordinate descent).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pegasos.core.dispatch import generic
from pegasos.core.jit import hot
from pegasos.core.rows import n_rows, row_axpy, row_dot, row_work
from pegasos.objective.losses import slope
from pegasos.objective.problem import Problem
from pegasos.solvers.steps import Place

_SAME = 1e-10  # of 1: moves that agree so far say nothing new
_NOTHING = 1e-20  # of the objective: the gain of steps in the last digit
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


def worthwhile(problem: Any, place: Place, visits: int) -> bool:
    """Whether a move of so many visits has taken so long that a step costs little beside it."""
    vectors = place.alpha.size / n_rows(problem.rows)
    return visits * row_work(problem.rows) * vectors >= _COST * (place.alpha.size + place.w.size)


def combined(problem: Any, place: Place, moves: Moves, gain: float, visits: int) -> Moves:
    """Step to the best combination of the moves, the one at hand, which gained so much, included.

    alpha and w of `place` are changed; the step becomes a part of the move.
    """
    k, w0, (S, U, G, g, *_) = moves.oldest, problem.center, moves
    U[k] = np.ravel(place.w - w0 - moves.v)
    S[..., k] = place.alpha - moves.alpha
    along = U @ U[k] + _stiffness(problem, place.r, S[..., k], S)
    G[k], G[:, k] = along, along
    g -= along
    shift = np.ravel(w0[-1] - moves.b)  # by which a free intercept has moved the centre
    g -= U[:, -shift.size :] @ shift
    g[k] = gain - 0.5 * along[k]
    theta = _solution(G, g)
    dw, target = theta @ U, np.empty_like(place.alpha)
    tilt = float(theta @ g) + aim(problem, place, (S, theta), dw.reshape(place.w.shape), target)
    change = target - place.alpha
    bend = float(dw @ dw) + float(_stiffness(problem, place.r, change, change))
    t = min(1.0, tilt / bend) if tilt > 0.0 and bend > 0.0 else 0.0
    if t > 0.0:
        along = U @ dw + _stiffness(problem, place.r, change, S)
        g -= t * along
        g[k] += t * (tilt - t * bend)
        G[k] += t * along
        G[:, k] = G[k]
        G[k, k] += t * (along[k] + t * bend)
        place.w[:] += t * dw.reshape(place.w.shape)
        place.alpha[:] = target if t == 1.0 else place.alpha + t * change
        U[k] += t * dw
        S[..., k] = place.alpha - moves.alpha
    moves.alpha[:] = place.alpha
    moves.v[:] = place.w - w0
    return moves._replace(b=np.copy(w0[-1]), visits=visits, oldest=(k + 1) % len(g))


def _stiffness(problem: Any, r: float, a: np.ndarray, others: np.ndarray) -> Any:
    """a' diag(r / c) others: what the parabolas of the rows add to a curvature."""
    return (r * a / problem.c) @ others if r else 0.0


def moved(gain: float, objective: float) -> bool:
    """Whether steps gained more than the last digit holds."""
    return gain > _NOTHING * abs(objective)


def _solution(G: np.ndarray, g: np.ndarray) -> np.ndarray:
    """theta with G theta = g in the span of the moves that differ."""
    scale = np.sqrt(np.maximum(np.diag(G), 0.0))
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0.0)
    scaled = inverse[:, None] * G * inverse
    if not np.isfinite(scaled).all():  # overflow: no step
        return np.zeros_like(g)
    sizes, V = np.linalg.eigh(scaled)
    V = V[:, sizes > _SAME]
    return inverse * (V @ ((V.T @ (inverse * g)) / sizes[sizes > _SAME]))


@generic
def aim(problem: Any, place: Place, along: tuple, dw: np.ndarray, target: np.ndarray) -> float:
    """target = alpha + S theta for along = (S, theta), but feasible, and alpha for rows aside; dw
    follows. Returns what that changes in the slope of D."""


@aim.register(Problem)
def _(problem, place, along, dw, target):
    return _aim(problem, place, along, dw, target)


@hot
def _aim(problem, place, along, dw, target):
    S, theta = along
    low, high = -slope(problem.loss, np.inf), -slope(problem.loss, -np.inf)
    tilt = 0.0
    for i in range(place.alpha.shape[0]):
        move = 0.0
        for j in range(theta.shape[0]):
            move += theta[j] * S[i, j]
        old, c, y = place.alpha[i], problem.c[i], problem.y[i]
        new = min(max(old + move, low * c), high * c)
        if move == 0.0 or not place.stays[i]:
            new = old
        target[i] = new
        lack = new - (old + move)
        if lack != 0.0:
            tilt += lack * (place.k - y * row_dot(problem.rows, i, place.w) - place.r * old / c)
            row_axpy(problem.rows, i, lack * y, dw)
    return tilt
