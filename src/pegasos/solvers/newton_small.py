"""A Newton step of `solvers.newton` in one compiled loop.

What that does piece by piece, so that threads can take part, would be mostly Python where the rows
are one block for one thread.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pegasos.core.dispatch import helper
from pegasos.core.gram import add_tiles, few, room_for_tiles
from pegasos.core.jit import hot
from pegasos.core.many import makes_arrays
from pegasos.core.matrix import is_one_block
from pegasos.core.rows import (
    by_row,
    is_single,
    n_columns,
    n_rows,
    row_dot,
    row_outer,
    row_write,
    rows_axpy,
)
from pegasos.core.tile import tiled
from pegasos.objective.problem import Problem
from pegasos.solvers.linalg import solve_small
from pegasos.solvers.responses import Terms, proximal_loop, pull_loop

_COLUMNS = 128  # beyond, LAPACK is faster
_ROUNDING = 0.03  # that float32 may leave in G, where R adds 1
_ROUGHLY = 6e-8  # of what is summed: the rounding of float32


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


class Room(NamedTuple):
    """To work in: the factor of a matrix, vectors over columns and over rows, a matrix to take
    away, rows written out in float32 and in float64, to add and to take away, which are empty where
    rows have few entries; numbers of rows."""

    L: np.ndarray
    of_columns: np.ndarray
    of_rows: np.ndarray
    less: np.ndarray
    rough: tuple[np.ndarray, np.ndarray]
    fine: tuple[np.ndarray, np.ndarray]
    chosen: np.ndarray


def is_small(problem: Problem) -> bool:
    """Whether to take this loop."""
    rows = problem.rows
    stored = by_row(rows) and not makes_arrays(rows)
    return stored and n_columns(rows) < _COLUMNS and is_one_block(rows)


def reached(problem: Problem, at: Reached, around, last, room: Room) -> tuple[Reached, Sums]:
    """After a step from `at`; `around`: the proximal centre alpha and q; `last`: mass and whether
    products were precise."""
    to = Reached(*map(np.empty_like, at))
    single = is_single(problem.rows) and not problem.free
    return to, Sums(*_step(problem, at, around, (*last, single), to, room))


def begun(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """u and G before the first step."""
    size = tiled(n_columns(problem.rows) + 1)
    return np.zeros(len(problem.y)), np.zeros((size, size))


def room_for(problem: Problem) -> Room:
    n, width = n_rows(problem.rows), n_columns(problem.rows) + 1
    room = np.empty((width, width)), np.empty((5, width)), np.empty((2, n))
    chosen = np.empty(n, dtype=np.int64)
    if few(problem.rows):
        nothing = np.empty((0, 0), np.float32), np.empty((0, 0))
        return Room(*room, nothing[1], (nothing[0],) * 2, (nothing[1],) * 2, chosen)
    rough, fine = (
        (room_for_tiles(problem.rows, dtype), room_for_tiles(problem.rows, dtype))
        for dtype in (np.float32, np.float64)
    )
    return Room(*room, np.empty((tiled(width), tiled(width))), rough, fine, chosen)


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


@helper
def most_changed(changed, used):
    """Whether so many numbers changed, of those that are not 0, that a new matrix costs less."""
    return 2 * changed > used


@helper
def is_precise(single, mass, unit):
    """Whether float32 would leave more in G than is far below the unit that R adds."""
    return not single or mass * _ROUGHLY > _ROUNDING * unit


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
    mass, precise = _follow(problem, at, to, (unit, *last), room)
    if not solve_small(to.G, R, d, (room.L, room.of_columns[3], room.of_columns[4])):
        return False, False, mass, precise, (np.inf, np.inf, np.inf)
    d0, d1, start = 0.0, 0.0, 0.0
    for k in range(width):
        penalty = 1.0 if R[k] > 0.0 else 0.0
        d0 += penalty * (at.w[k] - problem.center[k]) * d[k]
        d1 += penalty * d[k] * d[k]
        start += gradient[k] * d[k]
    ways = d, room.of_rows[0], room.of_rows[1]
    moved, losses, conjugates = _go(problem, (at, to), around, (d0, d1, start), ways)
    return True, moved, mass, precise, weigh(problem, to.w, to.v, losses, conjugates)


@helper
def _follow(problem, at, to, given, room):
    """G of u = unit h: the last one corrected where u changed, or a new one if cheaper."""
    unit, before, was_precise, single = given
    changed, used, mass = 0, 0, 0.0
    for i in range(at.h.shape[0]):
        u = unit * at.h[i]
        to.u[i] = u
        room.chosen[changed] = i
        changed += u != at.u[i]
        if u != 0.0:  # most are 0, and a sum waits for each addition
            used += 1
            mass += u * problem.q[i]
    anew = most_changed(changed, used)
    most = mass if anew else max(mass, before)
    precise = is_precise(single, most, unit)
    anew |= precise != was_precise
    if anew:
        changed = _used(to.u, room.chosen)
    for k in range(to.G.shape[0]):
        for j in range(to.G.shape[0]):
            to.G[k, j] = 0.0 if anew else at.G[k, j]
    _add_changed(problem, (at, to), (anew, changed, precise), room)
    return mass if anew else most, precise


@helper
def _used(u, chosen):
    """Note where u is not 0, and how often."""
    used = 0
    for i in range(u.shape[0]):
        chosen[used] = i
        used += u[i] != 0.0
    return used


@helper
def _add_changed(problem, points, given, room):
    """G += X' diag(change of u) X"""
    (at, to), (anew, changed, precise) = points, given
    for s in range(changed):
        i = room.chosen[s]
        room.of_rows[0, s] = to.u[i] if anew else to.u[i] - at.u[i]
    few = room.less.shape[0] == 0
    for s in range(changed if few else 0):
        row_outer(problem.rows, room.chosen[s], room.of_rows[0, s], to.G)
    if not few and precise:
        _add_written(problem.rows, room, changed, room.fine, to.G)
    elif not few:
        _add_written(problem.rows, room, changed, room.rough, to.G)


@helper
def _add_written(rows, room, changed, written, G):
    """The same from rows that are written out, some at a time, those to take away aside."""
    (more, fewer), less = written, room.less
    added, taken = 0, 0
    for k in range(less.shape[0]):
        for j in range(k + 1):
            less[k, j] = 0.0
    for s in range(changed):
        i, change = room.chosen[s], room.of_rows[0, s]
        if change > 0.0:
            row_write(rows, i, np.sqrt(change), more[added])
            added += 1
        else:
            row_write(rows, i, np.sqrt(-change), fewer[taken])
            taken += 1
        if added == more.shape[0]:
            add_tiles(more, added, G)
            added = 0
        if taken == fewer.shape[0]:
            add_tiles(fewer, taken, less)
            taken = 0
    add_tiles(more, added, G)
    add_tiles(fewer, taken, less)
    for k in range(less.shape[0]):
        for j in range(k + 1):
            G[k, j] -= less[k, j]


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
