"""A step of `solvers.newton_cg` on a small table (see `solvers.small`), with H factored."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pegasos.core.dispatch import helper
from pegasos.core.jit import hot
from pegasos.core.rows import is_single, row_dot, rows_axpy
from pegasos.objective.losses import conjugate, domain
from pegasos.objective.problem import Problem
from pegasos.solvers.linalg import solve_small
from pegasos.solvers.newton import Curvature, penalties
from pegasos.solvers.newton_cg_state import NewtonCGState, Preconditioner, Response
from pegasos.solvers.newton_start import search
from pegasos.solvers.responses import Terms, ahead_block
from pegasos.solvers.small import Room, begun, follow, room_for


class Point(NamedTuple):
    """w, its scores, the response a and h there, a feasible alpha, the gradient (if it is known),
    the u of a matrix X' diag(u) X and that matrix, its lower triangle in whole tiles."""

    w: np.ndarray
    scores: np.ndarray
    a: np.ndarray
    h: np.ndarray
    alpha: np.ndarray
    gradient: np.ndarray
    u: np.ndarray
    G: np.ndarray


class Along(NamedTuple):
    """What `newton_start.search` goes by."""

    scores: np.ndarray
    along: np.ndarray
    moved: np.ndarray
    a: np.ndarray
    h: np.ndarray
    push: np.ndarray


class Told(NamedTuple):
    """Of a step: the gap of w and a before it (inf: the gradient was known), its length (0: none
    was found), mass and whether products are precise, as in `newton.Curvature`; P(w), the gap of w
    and alpha, whether the gradient is known."""

    own: float
    t: float
    mass: float
    precise: bool
    objective: float
    gap: float
    known: bool


def small_step(problem: Problem, state: NewtonCGState, near: float) -> NewtonCGState:
    """A step from a response; a gap below the share `near` of P needs no gradient."""
    assert state.at is not None
    at, room, bend = state.at, state.room or room_for(problem), _bend(problem, state.M)
    known, gradient = at.gradient is not None, at.gradient
    if gradient is None:
        gradient = np.empty_like(at.w)
    point = Point(at.w, at.scores, at.a, at.h, at.alpha, gradient, bend.u, bend.G)
    given = at.objective, known, bend.mass, bend.dtype == np.float64, near
    to, told = _stepped(problem, point, given, room)
    at = at._replace(gradient=gradient)
    if told.own < at.gap:
        at = at._replace(gap=told.own, alpha=at.a)
    bend = Curvature(to.u, to.G, told.mass, np.float64 if told.precise else np.float32)
    columns = np.arange(0) if state.M is None else state.M.columns
    state = state._replace(
        at=at,
        M=Preconditioner(columns, penalties(problem), None, bend),
        passes=state.passes + 3.0,
        epoch=state.epoch + 1,
        room=room,
    )
    if told.t == 0.0:
        return state._replace(exhausted=True)
    g = to.gradient if told.known else None
    moved = Response(to.w, to.scores, to.a, to.h, told.objective, told.gap, to.alpha, g)
    better = moved.objective < at.objective or moved.gap < at.gap
    return state._replace(w=to.w, at=moved, exhausted=not better)


def _bend(problem: Problem, M: Preconditioner | None) -> Curvature:
    """The matrix of the last step, or one of nothing."""
    found = None if M is None else M.curvature
    none = begun(problem)
    if found is None or found.G.shape != none[1].shape:
        return Curvature(*none, 0.0, np.float64)
    return found


def _stepped(problem: Problem, at: Point, given, room: Room) -> tuple[Point, Told]:
    """The point after a step; given: P at w, whether the gradient is known, mass and whether
    products were precise, the share of P below which a gap needs no gradient."""
    to = Point(*map(np.empty_like, at))
    rules = is_single(problem.rows) and not problem.free, *domain(problem.loss)
    return to, Told(*_step(problem, at, given, rules, to, room))


@hot
def _step(problem, at, given, rules, to, room):
    (objective, known, mass, precise, near), (single, low, high) = given, rules
    R, d, rest, width = room.of_columns[0], room.of_columns[1], room.of_columns[2], at.w.shape[0]
    push, along = room.of_rows[1], room.of_rows[0]
    for k in range(width):
        R[k] = 0.0 if problem.free and k == width - 1 else 1.0
    own = np.inf if known else _gradient(problem, at, R, push)
    mass, precise = follow(problem, at, to, (1.0, mass, precise, single), room)
    for k in range(width):
        d[k] = -at.gradient[k]
    t, losses, size = 0.0, 0.0, 0.0
    if solve_small(to.G, R, d, (room.L, room.of_columns[3], room.of_columns[4])):
        for i in range(along.shape[0]):
            along[i] = row_dot(problem.rows, i, d)
        ways = Along(at.scores, along, to.scores, to.a, to.h, push)
        t, losses = _search(problem, at, R, d, ways, objective)
    if t == 0.0:
        return own, 0.0, mass, precise, objective, np.inf, True
    for k in range(width):
        to.w[k] = at.w[k] + t * d[k]
        rest[k] = (1.0 - t) * at.gradient[k]
        size += 0.5 * R[k] * (to.w[k] - problem.center[k]) ** 2
    objective = size + losses
    gap = abs(objective - _bound(problem, (at, to), (R, rest, push), (low, high)))
    if gap < near * objective:
        return own, t, mass, precise, objective, gap, False
    other = _gradient(problem, to, R, push)
    if gap <= other:
        return own, t, mass, precise, objective, gap, True
    for i in range(to.a.shape[0]):
        to.alpha[i] = to.a[i]
    return own, t, mass, precise, objective, other, True


@helper
def _gradient(problem, at, R, push):
    """R (w - w0) - v, and the gap of w and a."""
    g, last, gap = at.gradient, at.w.shape[0] - 1, 0.0
    for k in range(last + 1):
        g[k] = 0.0
    for i in range(push.shape[0]):
        push[i] = problem.y[i] * at.a[i]
    rows_axpy(problem.rows, push, 0, push.shape[0], g)
    for k in range(last + 1):
        g[k] = R[k] * (at.w[k] - problem.center[k]) - g[k]
        gap += 0.5 * g[k] * g[k]
    if problem.free:  # an unbalanced a costs about what it must give up
        gap += abs(g[last] / problem.rows.bias) - 0.5 * g[last] * g[last]
    return gap


@helper
def _search(problem, at, R, d, ways, objective):
    """t and the losses there."""
    d0, d1, start, size = 0.0, 0.0, 0.0, 0.0
    for k in range(d.shape[0]):
        away = R[k] * (at.w[k] - problem.center[k])
        d0 += away * d[k]
        d1 += R[k] * d[k] * d[k]
        start += at.gradient[k] * d[k]
        size += 0.5 * away * away
    return search(problem, ways, (d0, d1, start), (objective - size, 1e-14 * abs(objective)))


@helper
def _bound(problem, points, room, reach):
    """D of the response that the step foretold, made feasible, which becomes alpha; `rest` is its
    gradient before that."""
    (at, to), (R, rest, shift) = points, room
    terms = Terms(problem.loss, problem.y, problem.c)
    out = to.alpha, shift
    conjugates = ahead_block(terms, reach, at.a, at.h, at.scores, to.scores, out)
    if problem.free:
        for i in range(shift.shape[0]):
            shift[i] -= problem.y[i] * to.alpha[i]
        _balance(problem.y, to.alpha)
        conjugates = 0.0
        for i in range(shift.shape[0]):
            c = problem.c[i]
            shift[i] += problem.y[i] * to.alpha[i]
            conjugates += c * conjugate(problem.loss, to.alpha[i] / c) if c > 0.0 else 0.0
    pushed = to.gradient  # free until the gradient is known
    for k in range(pushed.shape[0]):
        pushed[k] = 0.0
    rows_axpy(problem.rows, shift, 0, shift.shape[0], pushed)
    bound = -conjugates
    for k in range(pushed.shape[0]):
        v = R[k] * (to.w[k] - problem.center[k] - rest[k] + pushed[k])
        bound -= 0.5 * v * v + problem.center[k] * v
    return bound


@helper
def _balance(y, alpha):
    """sum alpha_i y_i = 0, but for rounding that a certificate takes away (`feasible`)."""
    up, down = 0.0, 0.0
    for i in range(alpha.shape[0]):
        pull = alpha[i] * y[i]
        up += max(pull, 0.0)
        down -= min(pull, 0.0)
    for i in range(alpha.shape[0]):
        heavy, light = (up, down) if alpha[i] * y[i] > 0.0 else (down, up)
        alpha[i] *= light / heavy if heavy > light else 1.0
