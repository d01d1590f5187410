"""Newton's method on a small sample of the rows, in one compiled loop.

Problem, update and line search are those of `solvers.newton_cg`, with H factored at each step. What
that method does piece by piece, so that threads and the driver can take part, would be mostly
Python on some thousand rows of some ten columns. Only w comes out: a start needs no proof.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pegasos.core.dispatch import helper
from pegasos.core.gram import add_tiles, few, room_for_tiles
from pegasos.core.jit import hot, hot_allocating
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
from pegasos.solvers.responses import FLAT, Terms, along_block, next_length

_SMALL = 1 << 19  # numbers in the sample as an array: beyond, threads gain more
_STEPS = 30
_ROUNDING = 0.1  # that float32 may leave in G, where R adds 1: more than in steps that prove
_MANY = 0.2  # rows that changed, as a share: then to make it anew is faster


class Sample(NamedTuple):
    """w, R, the gradient, d, room to solve for it; X' diag(h) X (lower triangle, in tiles) and room
    for its factor; rows written out; of each row its score, product with d, what a response fills
    (`Responses`) and the h of the last matrix."""

    w: np.ndarray
    R: np.ndarray
    gradient: np.ndarray
    d: np.ndarray
    unit: np.ndarray
    column: np.ndarray
    G: np.ndarray
    L: np.ndarray
    written: np.ndarray
    scores: np.ndarray
    along: np.ndarray
    moved: np.ndarray
    a: np.ndarray
    h: np.ndarray
    push: np.ndarray
    before: np.ndarray


def is_short(problem: Problem) -> bool:
    """Whether to take these loops."""
    size = n_rows(problem.rows) * (n_columns(problem.rows) + 1)
    return by_row(problem.rows) and size <= _SMALL


def started(problem: Problem, w: np.ndarray, R: np.ndarray, noise: float) -> np.ndarray:
    """w after steps, until one gains less than `noise` of the objective."""
    at = _sample(problem, w, R)
    objective = _begin(problem, at)
    if not few(problem.rows):
        at = at._replace(written=room_for_tiles(problem.rows, _precision(problem, at)))
    _steps(problem, at, objective, noise)
    return at.w


def _sample(problem: Problem, w: np.ndarray, R: np.ndarray) -> Sample:
    n, d, size = n_rows(problem.rows), len(w), tiled(len(w))
    of_columns = [np.zeros(d) for _ in range(4)]
    of_rows = [np.zeros(n) for _ in range(7)]
    square = [np.zeros((size, size)), np.zeros((d, d)), np.empty((0, size))]
    return Sample(*[w.copy(), R, *of_columns, *square, *of_rows])


def _precision(problem: Problem, at: Sample) -> type:
    """float32 if its rounding is far below R."""
    single = is_single(problem.rows) and not problem.free
    rough = single and 6e-8 * float(at.h @ problem.q) < _ROUNDING
    return np.float32 if rough else np.float64


@hot
def _begin(problem, at):
    """Scores and responses at w; the objective."""
    for i in range(at.scores.shape[0]):
        at.scores[i] = row_dot(problem.rows, i, at.w)
    return _size(problem, at) + _respond(problem, at, 0.0)[1]


@hot_allocating
def _steps(problem, at, objective, noise):
    """Steps until one gains less than `noise` of the objective; polynomials make arrays."""
    before = np.inf
    for _ in range(_STEPS):
        if not before - objective > noise * objective:
            break
        _look(problem, at)
        for k in range(at.d.shape[0]):
            at.d[k] = -at.gradient[k]
        if not solve_small(at.G, at.R, at.d, (at.L, at.unit, at.column)):
            break
        before, objective = objective, _step(problem, at, objective)


@helper
def _look(problem, at):
    """The gradient; G follows the rows that changed, or is made anew."""
    g, h, before, n = at.gradient, at.h, at.before, at.h.shape[0]
    for k in range(g.shape[0]):
        g[k] = 0.0
    rows_axpy(problem.rows, at.push, 0, n, g)
    for k in range(g.shape[0]):
        g[k] = at.R[k] * (at.w[k] - problem.center[k]) - g[k]
    changed = 0
    for i in range(n):
        changed += h[i] != before[i]
    if changed > _MANY * n and at.written.shape[0] > 0:
        _make_anew(problem, at)
    else:
        for i in range(n):
            if h[i] != before[i]:
                row_outer(problem.rows, i, h[i] - before[i], at.G)
    for i in range(n):
        before[i] = h[i]


@helper
def _make_anew(problem, at):
    used, h, room = 0, at.h, at.written.shape[0]
    for k in range(at.G.shape[0]):
        for j in range(k + 1):
            at.G[k, j] = 0.0
    for i in range(h.shape[0]):
        if h[i] != 0.0:
            row_write(problem.rows, i, np.sqrt(h[i]), at.written[used])
            used += 1
        if used == room:
            add_tiles(at.written, used, at.G)
            used = 0
    add_tiles(at.written, used, at.G)


@helper
def _step(problem, at, objective):
    """w + t d, lower and where the derivative along d has nearly vanished, or w; P there."""
    n, w, R, d = at.scores.shape[0], at.w, at.R, at.d
    for i in range(n):
        at.along[i] = row_dot(problem.rows, i, d)
    d0, d1, start = 0.0, 0.0, 0.0
    for k in range(w.shape[0]):
        d0 += R[k] * (w[k] - problem.center[k]) * d[k]
        d1 += R[k] * d[k] * d[k]
        start += at.gradient[k] * d[k]
    t, losses = search(
        problem, at, (d0, d1, start), (objective - _size(problem, at), 1e-14 * abs(objective))
    )
    if t == 0.0:
        return objective
    for k in range(w.shape[0]):
        w[k] += t * d[k]
    for i in range(n):
        at.scores[i] = at.moved[i]
    return _size(problem, at) + losses


@helper
def search(problem, at, line, most):
    """t and the losses there, or 0; beyond the lowest point the losses decide. `most`: what they
    are now, and how much more may be rounding.

    `at` has scores, products with d along them, and room for a response (see `Sample`).
    """
    (d0, d1, start), (highest, slack) = line, most
    t, bracket = 1.0, (0.0, np.inf, start, np.inf)
    for k in range(60 if start < 0.0 else 0):
        pull, losses = _respond(problem, at, t)
        tilt = d0 + t * d1 - pull
        if abs(tilt) <= -FLAT * start or (t >= 8.0 and tilt <= 0.0):
            if tilt <= 0.0 or losses + t * (d0 + 0.5 * t * d1) <= highest + slack:
                return t, losses
        t, bracket = next_length(k, t, tilt, bracket)
    _respond(problem, at, 0.0)
    return 0.0, 0.0


@helper
def _respond(problem, at, t):
    terms = Terms(problem.loss, problem.y, problem.c)
    return along_block(terms, at.scores, at.along, t, (at.moved, at.a, at.h, at.push))


@helper
def _size(problem, at):
    """1/2 ||w - w0||_R^2"""
    total = 0.0
    for k in range(at.w.shape[0]):
        total += 0.5 * at.R[k] * (at.w[k] - problem.center[k]) ** 2
    return total
