"""Newton's method on a small sample of the rows, in two compiled loops a step.

Problem, update and line search are those of `solvers.newton_cg`, with H factored at each step. What
that method does piece by piece, so that threads and the driver can take part, would be mostly
Python on some thousand rows of some ten columns. Only w comes out: a start needs no proof.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pegasos.core.dispatch import helper
from pegasos.core.jit import hot, hot_allocating
from pegasos.core.matrix import few
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
from pegasos.objective.problem import Problem
from pegasos.solvers.linalg import diagonal_of, factored, solved
from pegasos.solvers.responses import FLAT, Terms, along_block, next_length

_SMALL = 1 << 19  # numbers in the sample as an array: beyond, threads gain more
_STEPS = 30
_ROUNDING = 0.1  # that float32 may leave in G, where R adds 1: more than in steps that prove
_MANY = 0.2  # rows that changed, as a share: then BLAS is faster


class Sample(NamedTuple):
    """w, R, the gradient, X' diag(h) X (lower triangle), rows written out for BLAS; of each row its
    score, product with d, what a response fills (`Responses`) and the h of the last matrix."""

    w: np.ndarray
    R: np.ndarray
    gradient: np.ndarray
    G: np.ndarray
    block: np.ndarray
    scores: np.ndarray
    along: np.ndarray
    moved: np.ndarray
    a: np.ndarray
    h: np.ndarray
    push: np.ndarray
    before: np.ndarray


def is_small(problem: Problem) -> bool:
    """Whether to take these loops."""
    size = n_rows(problem.rows) * (n_columns(problem.rows) + 1)
    return by_row(problem.rows) and size <= _SMALL


def started(problem: Problem, w: np.ndarray, R: np.ndarray, noise: float) -> np.ndarray:
    """w after steps, until one gains less than `noise` of the objective."""
    at = _sample(problem, w, R)
    objective, before = _begin(problem, at), np.inf
    at = at._replace(block=_block(problem, at))
    for _ in range(_STEPS):
        if not before - objective > noise * objective:
            break
        before, used = objective, _look(problem, at)
        if used >= 0:
            at.G[:] = at.block[:used].T @ at.block[:used]
        H = at.G.copy()
        diagonal_of(H)[:] += R
        try:
            d = -solved(factored(H), at.gradient)
        except np.linalg.LinAlgError:
            break
        objective = _step(problem, at, d, objective)
    return at.w


def _sample(problem: Problem, w: np.ndarray, R: np.ndarray) -> Sample:
    n, d = n_rows(problem.rows), len(w)
    of_rows = (np.zeros(n) for _ in range(7))
    return Sample(w.copy(), R, np.zeros(d), np.zeros((d, d)), np.empty((0, d)), *of_rows)


def _block(problem: Problem, at: Sample) -> np.ndarray:
    """Room for all rows, if BLAS is to make G; in float32 if its rounding is far below R."""
    rows = problem.rows
    n = 0 if few(rows) else n_rows(rows)
    rough = is_single(rows) and not problem.free and 6e-8 * float(at.h @ problem.q) < _ROUNDING
    return np.empty((n, len(at.w)), np.float32 if rough else np.float64)


@hot
def _begin(problem, at):
    """Scores and responses at w; the objective."""
    for i in range(at.scores.shape[0]):
        at.scores[i] = row_dot(problem.rows, i, at.w)
    return _size(problem, at) + _respond(problem, at, 0.0)[1]


@hot_allocating
def _look(problem, at):
    """The gradient; G follows the rows that changed (-1), or so many are written out to make it."""
    g, h, before, n = at.gradient, at.h, at.before, at.h.shape[0]
    g[:] = 0.0
    rows_axpy(problem.rows, at.push, 0, n, g)
    for k in range(g.shape[0]):
        g[k] = at.R[k] * (at.w[k] - problem.center[k]) - g[k]
    changed, used = 0, 0
    for i in range(n):
        changed += h[i] != before[i]
    anew = changed > _MANY * n and at.block.shape[0] == n
    for i in range(n):
        if anew and h[i] != 0.0:
            row_write(problem.rows, i, np.sqrt(h[i]), at.block[used])
            used += 1
        elif not anew and h[i] != before[i]:
            row_outer(problem.rows, i, h[i] - before[i], at.G)
        before[i] = h[i]
    return used if anew else -1


@hot
def _step(problem, at, d, objective):
    """w + t d, lower and where the derivative along d has nearly vanished, or w; P there."""
    n, w, R = at.scores.shape[0], at.w, at.R
    for i in range(n):
        at.along[i] = row_dot(problem.rows, i, d)
    d0, d1, start = 0.0, 0.0, 0.0
    for k in range(w.shape[0]):
        d0 += R[k] * (w[k] - problem.center[k]) * d[k]
        d1 += R[k] * d[k] * d[k]
        start += at.gradient[k] * d[k]
    t, losses = _search(problem, at, (d0, d1, start), objective - _size(problem, at))
    if t == 0.0:
        return objective
    for k in range(w.shape[0]):
        w[k] += t * d[k]
    for i in range(n):
        at.scores[i] = at.moved[i]
    return _size(problem, at) + losses


@helper
def _search(problem, at, line, most):
    """t and the losses there; beyond the lowest point the value decides, which is `most` now."""
    d0, d1, start = line
    t, bracket = 1.0, (0.0, np.inf, start, np.inf)
    for k in range(60 if start < 0.0 else 0):
        pull, losses = _respond(problem, at, t)
        tilt = d0 + t * d1 - pull
        if abs(tilt) <= -FLAT * start or (t >= 8.0 and tilt <= 0.0):
            if tilt <= 0.0 or losses + t * (d0 + 0.5 * t * d1) <= most + 1e-14 * abs(most):
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
