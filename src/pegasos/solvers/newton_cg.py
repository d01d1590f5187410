"""Truncated Newton method for losses with curvature: tall and wide data alike.

Problem:  min_w 1/2 ||w - w0||_R^2 + sum_i c_i l(z_i),  R = I, but 0 for a free intercept
Response: a_i = -c_i l'(z_i), v = sum_i a_i y_i x_i; the gradient is g = R (w - w0) - v
Update:   H d = -g, H = R + X' diag(h) X, h_i = c_i l''(z_i), by conjugate gradients until the
          residual is a tenth of g in the norm of a preconditioner M; then w <- w + t d with t
          from the derivative along d, for which the scores suffice
M:        an earlier H of the same rows or of a sample of them, factored, and renewed when the
          last step took more work on the rows than a new one; M = H needs no iterations. Where
          the columns are too many for a matrix it is the diagonal of H.
Start:    the same method on a sample of the rows, their weights scaled up: what is left to do
          on all of them is the error of the sample.
Stopping: `estimate` = P(w) - D(a) = 1/2 ||g||^2, and what the imbalance of a free intercept costs.

Lin, Weng, Keerthi, JMLR 2008 (trust region Newton); Byrd, Chin, Neveitt, Nocedal, SIAM J. Optim.
2011 (sampled Hessians).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pegasos.core.jit import hot
from pegasos.core.matrix import bent, combine, gram, gram_work, occupied, products, squares, taken
from pegasos.core.rows import is_single, n_columns, n_rows, row_work
from pegasos.data.check import frozen
from pegasos.objective.certificate import Evaluation
from pegasos.objective.losses import curvature, is_piecewise_linear, slope, value
from pegasos.objective.problem import Problem
from pegasos.solvers.linalg import Factor, factored, solved
from pegasos.solvers.newton import penalties

import os
MAX_COLUMNS = 2000  # beyond, a d x d matrix costs more than it gives
_RESIDUAL = float(os.environ.get("ETA", 0.1))  # of the gradient, where conjugate gradients stop
_MOST = 60  # of their iterations in one step
_USUAL = float(os.environ.get("USUAL", 4))  # of their iterations with an M that is about right
_SHARE = int(os.environ.get("SHARE", 8))  # the sample is this part of the rows, but at least
_PER_COLUMN = int(os.environ.get("PERCOL", 4))  # so many for each column


class Response(NamedTuple):
    """At w: its scores X w, a, h, g, P(w) and the gap of w and a."""

    w: np.ndarray
    scores: np.ndarray
    a: np.ndarray
    h: np.ndarray
    gradient: np.ndarray
    objective: float
    gap: float


class Preconditioner(NamedTuple):
    """M by its factor over the columns that hold anything, or (no factor) by its diagonal."""

    columns: np.ndarray
    diagonal: np.ndarray
    factor: Factor | None


class NewtonCGState(NamedTuple):
    """The response at w (None: nowhere yet), M, the iterations of the last step, work so far."""

    w: np.ndarray
    at: Response | None
    M: Preconditioner | None
    last: float
    passes: float
    epoch: int
    exhausted: bool

    @property
    def estimate(self) -> float:
        return np.inf if self.at is None else self.at.gap

    @property
    def objective(self) -> float:
        return np.inf if self.at is None else self.at.objective


@dataclass(frozen=True)
class NewtonCG:
    """Truncated Newton method; `sampling`: whether to begin with a sample of the rows."""

    sampling: bool = True

    def init(self, problem: Problem, seed: int, alpha: np.ndarray | None = None) -> NewtonCGState:
        if is_piecewise_linear(problem.loss):
            raise ValueError(
                f"NewtonCG needs a loss with curvature, which {type(problem.loss).__name__} "
                "is not: use Newton, Dual or Interior"
            )
        w = problem.center.copy()
        at = None
        if alpha is not None:
            w += penalties(problem) * combine(problem.rows, problem.y * alpha)
            at = respond(problem, w, products(problem.rows, w))
        return NewtonCGState(w, at, None, np.inf, 0.0, 0, False)

    def step(self, problem: Problem, state: NewtonCGState) -> NewtonCGState:
        """A Newton step on all rows, the first time after those on a sample."""
        if state.at is None:
            if self.sampling:
                state = _from_sample(problem, state)
            at = respond(problem, state.w, products(problem.rows, state.w))
            state = state._replace(at=at)
            if at.gap <= 1e-3 * at.objective: return state._replace(epoch=1)
        return _newton_step(problem, state)

    def candidate(self, problem: Problem, state: NewtonCGState) -> tuple[np.ndarray, np.ndarray]:
        at = state.at
        if at is None:
            at = respond(problem, state.w, products(problem.rows, state.w))
        return at.a, state.w

    def refresh(self, problem: Problem, state: NewtonCGState, seen: Evaluation) -> NewtonCGState:
        return state


def _from_sample(problem: Problem, state: NewtonCGState) -> NewtonCGState:
    n, d = n_rows(problem.rows), n_columns(problem.rows)
    every = n // max(1, n // _SHARE, _PER_COLUMN * d)
    if d > MAX_COLUMNS or every < 2:
        return state
    part = _sample(problem, every)
    w = state.w
    state = state._replace(M=Preconditioner(occupied(problem.rows), penalties(problem), None))
    state = state._replace(at=respond(part, w, products(part.rows, w)))
    before, noise = np.inf, max(3e-3, 0.5 * d * every / n)
    while not state.exhausted and state.epoch < 30 and before - state.at.objective > noise * state.at.objective:
        before = state.at.objective
        state = _newton_step(part, state)
    M = state.M
    if gram_work(part.rows) < _USUAL * _bend_work(problem) <gram_work(problem.rows):
        M = _preconditioner(part, state.at, M)
    return NewtonCGState(state.w, None, M, _USUAL, 0.0, 0, False)


def _sample(problem: Problem, every: int) -> Problem:
    """One row of each `every` that follow one another, drawn at random."""
    first = np.arange(0, n_rows(problem.rows) - every + 1, every)
    chosen = first + np.random.default_rng(0).integers(0, every, first.size)
    y, c, q = (frozen(values[chosen]) for values in (problem.y, every * problem.c, problem.q))
    return problem._replace(rows=taken(problem.rows, chosen), y=y, c=frozen(c), q=q)


def _bend_work(problem):
    return 1e5 + 2.0 * n_rows(problem.rows) * (row_work(problem.rows) + 5.0)


def _newton_step(problem: Problem, state: NewtonCGState) -> NewtonCGState:
    at, M, k = state.at, state.M, 0
    wide = n_columns(problem.rows) > MAX_COLUMNS
    if wide or M is None or M.factor is None or gram_work(problem.rows) <= state.last * _bend_work(problem):
        M = _preconditioner(problem, at, M)
        if M.factor is not None: k = -1
    if k < 0:
        d, k = -_apply(M, at.gradient), 0
    else:
        d, k = _solve(problem, at, M)
    moved = _line(problem, at, d)
    if os.environ.get('DEBUG'): print(len(at.a), k, moved.objective, moved.gap/moved.objective)
    better = moved.objective < at.objective or moved.gap < at.gap
    return state._replace(w=moved.w, at=moved, M=M, last=k or _USUAL, passes=state.passes + k + 3, epoch=state.epoch + 1, exhausted=not better)


def _preconditioner(problem, at, M):
    wide = n_columns(problem.rows) > MAX_COLUMNS
    R = penalties(problem)
    if wide:
        diagonal = R + squares(problem.rows, at.h)
        return Preconditioner(np.zeros(0, dtype=np.int64), np.where(diagonal > 0.0, diagonal, 1.0), None)
    columns = M.columns if M is not None else occupied(problem.rows)
    precise = problem.free or not is_single(problem.rows) or float(at.h @ problem.q) * 6e-8 > 0.03
    H = gram(problem.rows, at.h, np.float64 if precise else np.float32, columns)
    H[np.diag_indices_from(H)] += R[columns]
    return Preconditioner(columns, R, factored(H))


def _apply(M, r):
    if M.factor is None:
        return r / M.diagonal
    out = np.zeros_like(r)  # in an empty column w stays at w0
    out[M.columns] = solved(M.factor, r[M.columns])
    return out


def _solve(problem, at, M):
    """Conjugate gradients on H d = -g"""
    R = penalties(problem)
    d, r = np.zeros_like(at.w), -at.gradient
    s = _apply(M, r)
    p, size = s, float(r @ s)
    enough = _RESIDUAL**2 * size
    k = 0
    while size > enough and k < _MOST:
        Hp = R * p + bent(problem.rows, at.h, p)
        t = size / float(p @ Hp)
        d += t * p
        r -= t * Hp
        s = _apply(M, r)
        last, size = size, float(r @ s)
        p = s + (size / last) * p
        k += 1
    return d, k


def _line(problem, at, d):
    R = penalties(problem)
    along = products(problem.rows, d)
    pull = problem.y * along
    d0, d1 = float((at.w - problem.center) @ (R * d)), float(d @ (R * d))
    start = float(at.gradient @ d)
    if not start < 0.0: return at
    w0 = 0.5 * float(R @ (at.w - problem.center)**2)
    low, high, at_low, at_high, t = 0.0, np.inf, start, np.inf, 1.0
    for k in range(40):
        scores = at.scores + t * along
        found = _responses(problem, scores)
        tilt = d0 + t * d1 - float(pull @ found[0])
        objective = w0 + t * d0 + 0.5 * t * t * d1 + float(found[2].sum())
        lower = objective <= at.objective
        if abs(tilt) <= 0.2 * abs(start) and (tilt <= 0.0 or lower or abs(tilt)<1e-12*objective): break
        if tilt <= 0.0 and t >= 8.0: break
        if tilt <= 0: low, at_low = t, tilt
        else: high, at_high = t, tilt
        if high == np.inf: t = 2.0 * t
        elif k % 2 == 0:
            t = low - at_low * (high - low) / (at_high - at_low)
        else: t = 0.5 * (low + high)
    return _arrived(problem, at.w + t * d, scores, found)


def respond(problem: Problem, w: np.ndarray, scores: np.ndarray) -> Response:
    return _arrived(problem, w, scores, _responses(problem, scores))


def _arrived(problem, w, scores, found):
    a, h, costs = found
    R = penalties(problem)
    away = R * (w - problem.center)
    gradient = away - combine(problem.rows, problem.y * a)
    gap = 0.5 * float(gradient @ gradient)
    if problem.free:  # an unbalanced a costs about what it must give up
        gap += abs(gradient[-1] / problem.rows.bias) - 0.5 * gradient[-1] ** 2
    objective = 0.5 * float(away @ away) + float(costs.sum())
    return Response(w, scores, a, h, gradient, objective, gap)


def _responses(problem, scores):
    a, h, costs = np.empty_like(scores), np.empty_like(scores), np.empty_like(scores)
    _respond(problem, scores, a, h, costs)
    return a, h, costs


@hot
def _respond(problem, scores, a, h, costs):
    """Responses, curvatures and losses.

    Two loops, and sums left to NumPy: with more arrays, or a sum, a loop does not vectorise.
    """
    loss, y, c = problem.loss, problem.y, problem.c
    for i in range(scores.shape[0]):
        z = y[i] * scores[i]
        a[i], h[i] = -c[i] * slope(loss, z), c[i] * curvature(loss, z)
    for i in range(scores.shape[0]):
        costs[i] = c[i] * value(loss, y[i] * scores[i])
