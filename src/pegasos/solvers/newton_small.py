"""A step of `solvers.newton` on a small table (see `solvers.small`)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pegasos.core.dispatch import helper
from pegasos.core.jit import hot
from pegasos.core.rows import is_single, row_dot, rows_axpy
from pegasos.objective.problem import Problem
from pegasos.solvers.linalg import solve_small
from pegasos.solvers.responses import Terms, proximal_loop, pull_loop
from pegasos.solvers.small import Room, follow


class Reached(NamedTuple):
    """A point: w, its scores, the response a, h and v = X'ya there, the u of the last matrix
    X' diag(u) X and that matrix, its lower triangle in whole tiles."""

    w: np.ndarray
    scores: np.ndarray
    a: np.ndarray
    h: np.ndarray
    v: np.ndarray
    u: np.ndarray
    G: np.ndarray


class Sums(NamedTuple):
    """Of a step: whether it could be made, and moved any score; `mass` and whether products are
    precise, as in `newton.Curvature`; what `weigh` tells."""

    made: bool
    moved: bool
    mass: float
    precise: bool
    weights: tuple[float, float, float]


def reached(problem: Problem, at: Reached, around, last, room: Room) -> tuple[Reached, Sums]:
    """After a step from `at`; `around`: the proximal centre alpha and q; `last`: mass and whether
    products were precise."""
    to = Reached(*map(np.empty_like, at))
    single = is_single(problem.rows) and not problem.free
    return to, Sums(*_step(problem, at, around, (*last, single), to, room))


@helper
def is_there(at, half, start):
    """Whether a t will do: the derivative there has nearly vanished, and it lies below the start.

    The derivative rises with t, so a sum <= 0 of its values at t/2 and t proves descent.
    """
    return abs(at) <= 0.1 * abs(start) and (at <= 0.0 or half + at <= 0.0)


@helper
def next_try(k, t, at, bracket):
    """The t to try after the k-th, where the derivative is `at`, and the new bracket.

    A bracket is (low, high, derivative at low, at high); secants and halves take turns.
    """
    low, high, at_low, at_high = bracket
    if at <= 0.0:
        low, at_low = t, at
    else:
        high, at_high = t, at
    middle = 0.5 * (low + high)
    if k % 2 == 1 and 0.0 < at_high - at_low < np.inf:
        middle = low - at_low * (high - low) / (at_high - at_low)
    return (2.0 * t if high == np.inf else middle), (low, high, at_low, at_high)


@hot
def weighed(problem, w, v, losses, conjugates):
    """`weigh` for callers in Python."""
    return weigh(problem, w, v, losses, conjugates)


@helper
def weigh(problem, w, v, losses, conjugates):
    """P(w), the gap P(w) - D(a), and the part of it that the gradient R (w - w0) - v is."""
    n, away, pull, tilt, residual = w.shape[0], 0.0, 0.0, 0.0, 0.0
    for k in range(n - problem.free):
        a, center = w[k] - problem.center[k], problem.center[k]
        away += a * a
        pull += v[k] * v[k]
        tilt += center * v[k]
        residual += 0.5 * (a - v[k]) * (a - v[k])
    if problem.free:  # an unbalanced alpha costs about what it must give up
        residual += abs(v[n - 1] / problem.rows.bias)
    objective = 0.5 * away + losses
    return objective, abs(objective + 0.5 * pull + tilt + conjugates), residual


@hot
def _step(problem, at, around, last, to, room):
    alpha, q = around
    unit, width = q if q > 0.0 else 1.0, at.w.shape[0]
    R, gradient, d = room.of_columns[0], room.of_columns[1], room.of_columns[2]
    for k in range(width):
        free = problem.free and k == width - 1
        R[k] = 0.0 if free else unit
        gradient[k] = (0.0 if free else at.w[k] - problem.center[k]) - at.v[k]
        d[k] = -unit * gradient[k]
    mass, precise = follow(problem, at, to, (unit, *last), room)
    if not solve_small(to.G, R, d, (room.L, room.of_columns[3], room.of_columns[4])):
        return False, False, mass, precise, (np.inf, np.inf, np.inf)
    d0, d1, start = 0.0, 0.0, 0.0
    for k in range(width):
        if not to.G[k, k] + R[k] > 0.0:  # a free intercept without curvature goes by its gradient
            d[k] = -gradient[k]
        penalty = 1.0 if R[k] > 0.0 else 0.0
        d0 += penalty * (at.w[k] - problem.center[k]) * d[k]
        d1 += penalty * d[k] * d[k]
        start += gradient[k] * d[k]
    ways = d, room.of_rows[0], room.of_rows[1]
    moved, losses, conjugates = _go(problem, (at, to), around, (d0, d1, start), ways)
    return True, moved, mass, precise, weigh(problem, to.w, to.v, losses, conjugates)


@helper
def _go(problem, points, around, line, ways):
    """Along d, by the line search of `solvers.newton`; whether a score has moved, the sums of
    losses and conjugates. Where the loss has curvature v is summed up anew: every row changes."""
    (at, to), (d, along, shift), (alpha, q) = points, ways, around
    terms, n = Terms(problem.loss, problem.y, problem.c), along.shape[0]
    for i in range(n):
        along[i] = row_dot(problem.rows, i, d)
    t, moved = _search(terms, at.scores, along, around, line), False
    for k in range(d.shape[0]):
        to.w[k], to.v[k] = at.w[k] + t * d[k], at.v[k] if q > 0.0 else 0.0
    for i in range(n):
        to.scores[i] = at.scores[i] + t * along[i]
        moved |= t * along[i] != 0.0
    losses, conjugates = proximal_loop(terms, q, (alpha, to.scores, at.a), (to.a, to.h, shift))
    for i in range(0 if q > 0.0 else n):
        shift[i] = problem.y[i] * to.a[i]
    rows_axpy(problem.rows, shift, 0, n, to.v)
    return moved, losses, conjugates


@helper
def _search(terms, scores, along, around, line):
    (alpha, q), (d0, d1, start) = around, line
    t, bracket = 1.0, (0.0, np.inf, start, np.inf)
    for k in range(60):
        at = d0 + t * d1 - pull_loop(terms, alpha, q, scores, along, t)
        half = 0.0
        if 0.0 < at <= 0.1 * abs(start):
            half = d0 + 0.5 * t * d1 - pull_loop(terms, alpha, q, scores, along, 0.5 * t)
        if is_there(at, half, start):
            return t
        t, bracket = next_try(k, t, at, bracket)
    return bracket[0]
