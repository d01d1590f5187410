"""Newton's method for tall data (rows >> columns): d x d normal equations.

Problem:  min_w 1/2 ||w - w0||_R^2 + sum_i c_i l(z_i),  R = I, but 0 for a free intercept
Response: a_i(z) = -c_i l'(z)                           (smooth loss)
          a_i(z) = dual_step(l, alpha_i, z, q, c_i)     (piecewise linear loss, q > 0)
Update:   (R + X' diag(h) X) dw = -(R (w - w0) - X' diag(y) a),  h_i = -a_i'(z_i),
          then a line search on the derivative along dw.
Outer:    a loss without curvature is smoothed by the proximal term q/2 (a - alpha)^2 of the
          augmented Lagrangian: when the inner problem is solved well enough, alpha <- a and
          q <- q / 3. The smooth case is q = 0 and needs no outer loop: the same code.
Stopping: `estimate` = P(w) - D(a).

Mangasarian 2002 and Keerthi & DeCoste 2005 (squared hinge); Li, Sun, Toh 2018 (SsNAL).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pegasos.core.jit import hot
from pegasos.core.matrix import combine, gram, gram_columns, products
from pegasos.core.rows import is_single, n_rows
from pegasos.objective.certificate import Evaluation, conjugate_sum, loss_sum
from pegasos.objective.losses import curvature, dual_step, is_piecewise_linear, slope
from pegasos.objective.problem import Problem
from pegasos.solvers.linalg import diagonal_of, factor


class Curvature(NamedTuple):
    """G = X' diag(u) X, kept between steps: few of the u change from one step to the next.

    `mass` is the largest sum u_i ||x_i||^2 behind G, the measure of its rounding errors.
    """

    u: np.ndarray
    G: np.ndarray
    mass: float
    dtype: type


class NewtonState(NamedTuple):
    """w and its scores X w; proximal centre alpha and weight q; at w the response a, h, X'ya."""

    w: np.ndarray
    scores: np.ndarray
    alpha: np.ndarray
    q: float
    response: np.ndarray
    slopes: np.ndarray
    v: np.ndarray
    columns: np.ndarray
    curvature: Curvature | None
    inner: int
    estimate: float
    objective: float
    epoch: int
    exhausted: bool

    @property
    def passes(self) -> float:
        """The work done: each step is one over all rows."""
        return float(self.epoch)


@dataclass(frozen=True)
class Newton:
    """Newton's method; `growth` divides q after an outer step, `patience` bounds inner steps."""

    growth: float = 3.0
    patience: int = 30

    def init(
        self,
        problem: Problem,
        seed: int,
        alpha: np.ndarray | None = None,
        w: np.ndarray | None = None,
    ) -> NewtonState:
        """From alpha and w; without a w from that of alpha."""
        q = 2.0 if alpha is None else 1.0
        if alpha is None:
            alpha = np.zeros(n_rows(problem.rows))
        v = combine(problem.rows, problem.y * alpha)
        if w is None:
            w = problem.center + penalties(problem) * v
        q = q / float(np.median(problem.c)) if is_piecewise_linear(problem.loss) else 0.0
        scores = products(problem.rows, w)
        used = gram_columns(problem.rows)
        state = NewtonState(
            w, scores, alpha, q, alpha, alpha, v, used, None, 0, np.inf, np.inf, 0, False
        )
        return _respond(problem, state)

    def step(self, problem: Problem, state: NewtonState) -> NewtonState:
        """An inner step, after an outer one if the inner problem is solved well enough."""
        gradient = penalties(problem) * (state.w - problem.center) - state.v
        if state.q > 0.0 and self._inner_done(problem, state, gradient):
            slower = 1.0 if state.inner >= self.patience else self.growth
            state = state._replace(alpha=state.response, q=state.q / slower, inner=0)
            state = _respond(problem, state)
            gradient = penalties(problem) * (state.w - problem.center) - state.v
        unit = state.q if state.q > 0.0 else 1.0
        last, u = state.curvature, state.slopes * unit
        bend = followed(problem, last, u, unit, state.columns)
        H = bend.G / unit
        diagonal_of(H)[:] += penalties(problem)[state.columns]
        direction = np.zeros_like(gradient)  # in an empty column w stays at w0
        try:
            direction[state.columns] = -factor(H)(gradient[state.columns])
        except np.linalg.LinAlgError:
            return state._replace(epoch=state.epoch + 1, exhausted=True)
        along = products(problem.rows, direction)
        t = _line_search(problem, state, direction, along)
        stuck = not np.any(t * along)
        moved = state._replace(
            w=state.w + t * direction,
            scores=state.scores + t * along,
            curvature=bend,
            inner=self.patience if stuck else state.inner + 1,
            epoch=state.epoch + 1,
            exhausted=stuck and (state.q == 0.0 or np.array_equal(state.response, state.alpha)),
        )
        return _respond(problem, moved)

    def _inner_done(self, problem: Problem, state: NewtonState, gradient: np.ndarray) -> bool:
        residual = 0.5 * float(gradient @ gradient)
        if problem.free:  # an unbalanced alpha costs about what it must give up
            residual += abs(gradient[-1] / problem.rows.bias) - 0.5 * gradient[-1] ** 2
        enough = residual <= 0.1 * state.estimate or state.inner >= self.patience
        return state.inner > 0 and enough

    def candidate(self, problem: Problem, state: NewtonState) -> tuple[np.ndarray, np.ndarray]:
        return state.response, state.w

    def refresh(self, problem: Problem, state: NewtonState, seen: Evaluation) -> NewtonState:
        return state


def penalties(problem: Problem) -> np.ndarray:
    """The diagonal of R."""
    R = np.ones(problem.center.size)
    if problem.free:
        R[-1] = 0.0
    return R


def followed(
    problem: Problem, last: Curvature | None, u: np.ndarray, unit: float, columns: np.ndarray
) -> Curvature:
    """The Gram matrix of u: the last one corrected where u changed, or a new one if cheaper.

    Products are float32 while their rounding is far below the unit that R adds to G / unit.
    """
    mass = float(u @ problem.q)
    if last is not None:
        change = u - last.u
        mass = max(mass, last.mass)
        if 2 * np.count_nonzero(change) > np.count_nonzero(u):
            last, mass = None, float(u @ problem.q)
    precise = problem.free or not is_single(problem.rows) or mass * 6e-8 > 0.03 * unit
    dtype = np.float64 if precise else np.float32
    if last is None or last.dtype != dtype:
        G = gram(problem.rows, u, dtype, columns)
        return Curvature(u, G, float(u @ problem.q), dtype)
    more = gram(problem.rows, np.maximum(change, 0.0), dtype, columns)
    less = gram(problem.rows, np.maximum(-change, 0.0), dtype, columns)
    return Curvature(u, last.G + (more - less), mass, dtype)


def _respond(problem: Problem, state: NewtonState) -> NewtonState:
    """The state with response, slopes, v and gap estimate of its w."""
    a, h = np.empty_like(state.scores), np.empty_like(state.scores)
    if state.q == 0.0:
        fill_responses(problem, state.scores, a, h)
    else:
        _fill_proximal(problem, state.alpha, state.q, state.scores, a, h)
    v = combine(problem.rows, problem.y * a)
    free_of = penalties(problem)
    away, pull = free_of * (state.w - problem.center), free_of * v
    objective = 0.5 * float(away @ away) + loss_sum(problem, problem.y * state.scores)
    conjugates = conjugate_sum(problem, a)
    bound = -0.5 * float(pull @ pull) - float(problem.center @ pull) - conjugates
    gap = abs(objective - bound)
    return state._replace(response=a, slopes=h, v=v, estimate=gap, objective=objective)


def _line_search(problem, state, direction, along) -> float:
    """A t > 0 where the derivative along the direction has nearly vanished.

    t = 1 first; beyond it where no row is near its kink and a free intercept has no curvature.
    """
    shrink = penalties(problem) * direction
    d0, d1 = float((state.w - problem.center) @ shrink), float(shrink @ shrink)

    def derivative(t: float) -> float:
        return d0 + t * d1 - _pull(problem, state.alpha, state.q, state.scores, along, t)

    start = derivative(0.0)
    low, high, at_low, at_high = 0.0, np.inf, start, np.inf
    t = 1.0
    for k in range(60):
        at = derivative(t)
        # The derivative rises with t, so a sum <= 0 of its values at t/2 and t proves descent.
        if abs(at) <= 0.1 * abs(start) and (at <= 0.0 or derivative(0.5 * t) + at <= 0.0):
            return t
        if at <= 0.0:
            low, at_low = t, at
        else:
            high, at_high = t, at
        secant = k % 2 == 1 and 0.0 < at_high - at_low < np.inf
        middle = low - at_low * (high - low) / (at_high - at_low) if secant else 0.5 * (low + high)
        t = 2.0 * t if high == np.inf else middle
    return low


@hot
def fill_responses(problem, scores, a, h):
    """a_i = -c_i l'(z_i) and their slopes h_i = c_i l''(z_i); with a sum it would not vectorise."""
    loss, y, c = problem.loss, problem.y, problem.c
    for i in range(scores.shape[0]):
        z = y[i] * scores[i]
        a[i], h[i] = -c[i] * slope(loss, z), c[i] * curvature(loss, z)


@hot
def _fill_proximal(problem, alpha, q, scores, a, h):
    """The same with the proximal term."""
    loss, y, c = problem.loss, problem.y, problem.c
    low, high = -slope(loss, np.inf), -slope(loss, -np.inf)
    for i in range(scores.shape[0]):
        z = y[i] * scores[i]
        a[i] = dual_step(loss, alpha[i], z, q, c[i])
        bend = c[i] * curvature(loss, z + q * (a[i] - alpha[i]))
        at_kink = bend == 0.0 and low * c[i] < a[i] < high * c[i]
        h[i] = 1.0 / q if at_kink else bend / (1.0 + q * bend)


@hot
def _pull(problem, alpha, q, scores, along, t):
    """sum_i y_i along_i a_i(z_i + t y_i along_i)"""
    total = 0.0
    for i in range(scores.shape[0]):
        y = problem.y[i]
        z = y * (scores[i] + t * along[i])
        if q == 0.0:
            total -= y * along[i] * problem.c[i] * slope(problem.loss, z)
        else:
            total += y * along[i] * dual_step(problem.loss, alpha[i], z, q, problem.c[i])
    return total
