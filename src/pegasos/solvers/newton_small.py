"""The rest of a Newton step, once its matrix is there, in two compiled loops.

What `solvers.newton` does piece by piece, so that threads can take part, would be mostly Python
where the rows are one block for one thread.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pegasos.core.dispatch import helper
from pegasos.core.jit import hot
from pegasos.core.matrix import is_one_block
from pegasos.core.rows import by_row, n_columns, row_dot, rows_axpy
from pegasos.objective.problem import Problem
from pegasos.solvers.linalg import solve_small
from pegasos.solvers.responses import Terms, proximal_loop, pull_loop

_COLUMNS = 128  # beyond, LAPACK is faster


class Reached(NamedTuple):
    """After a step: w, its scores, the response a, h and v = X'ya there."""

    w: np.ndarray
    scores: np.ndarray
    a: np.ndarray
    h: np.ndarray
    v: np.ndarray


class Sums(NamedTuple):
    """Whether a step moved any score, sums c_i l(z_i) and c_i l*(-a_i/c_i)."""

    moved: bool
    losses: float
    conjugates: float


def is_small(problem: Problem) -> bool:
    """Whether to take these loops."""
    rows = problem.rows
    return by_row(rows) and n_columns(rows) < _COLUMNS and is_one_block(rows)


def direction(G: np.ndarray, R: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """-(G + diag(R))^-1 gradient; a LinAlgError if there is none."""
    d, room = -gradient, (np.empty_like(G), np.empty_like(R), np.empty_like(R))
    if not _solve(G, R, d, room):
        raise np.linalg.LinAlgError("not positive definite, whatever is added to the diagonal")
    return d


def reached(problem: Problem, at: Reached, around, d: np.ndarray, line) -> tuple[Reached, Sums]:
    """Along d, by the line search of `solvers.newton`; `around`: the proximal centre alpha and q;
    `line`: what the derivative is made of (see `newton._line`)."""
    n, width = len(at.scores), len(at.w)
    to = Reached(*(np.empty(size) for size in (width, n, n, n, width)))
    sums = _go(problem, at, around, (d, line), (to, np.empty(n), np.empty(n)))
    return to, Sums(*sums)


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
def _solve(G, R, d, room):
    return solve_small(G, R, d, room)


@hot
def _go(problem, at, around, along_d, room):
    (d, line), (to, along, shift) = along_d, room
    n, (alpha, q) = along.shape[0], around
    terms = Terms(problem.loss, problem.y, problem.c)
    for i in range(n):
        along[i] = row_dot(problem.rows, i, d)
    t, moved = _search(terms, at.scores, along, around, line), False
    for k in range(d.shape[0]):
        to.w[k], to.v[k] = at.w[k] + t * d[k], at.v[k]
    for i in range(n):
        to.scores[i] = at.scores[i] + t * along[i]
        moved |= t * along[i] != 0.0
    losses, conjugates = proximal_loop(terms, q, (alpha, to.scores, at.a), (to.a, to.h, shift))
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
