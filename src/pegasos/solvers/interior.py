"""Mehrotra's interior point method for tall data (rows >> columns) and piecewise linear losses.

Problem:  min_w 1/2 ||w - w0||_R^2 + sum_i c_i l(z_i),  l(z) = max(1 - z, tau (z - 1)),
          z_i = y_i x_i.w,  R = I, but 0 for a free intercept
Dual:     max_b -1/2 ||v||_R^2 - w0.R v + sum_i c_i b_i,  v = sum_i c_i b_i y_i x_i,
          -tau <= b_i <= 1 (alpha_i = c_i b_i),  v = 0 in the coordinate of a free intercept
Path:     with lo = b + tau and up = 1 - b, the distances from the bounds, and z - 1 = over - under,
              R (w - w0) = v,    lo_i over_i = up_i under_i = mu s_i,    all four > 0.
          mu -> 0 leads to the optimum. s_i = sum c / (sqrt(c_i) sum sqrt(c)): light rows, which
          count little, stay further from their bounds; on the path the gap is 2 mu sum c.
Update:   Newton's step on the path's equations, the two products aimed at P_i and Q_i:
              (R + X' diag(h) X) dw = v - R (w - w0) + X' (y h g),  db = h (g - y X dw) / c,
              h = c / (over/lo + under/up),  g = under - over + P/lo - Q/up.
          Predictor: P = Q = 0; its longest step would leave mu', and sigma = (mu'/mu)^5.
          Corrector: P = sigma mu s - db dover, Q = sigma mu s + db dunder, of the predictor.
          Then up to `correctors` times: P and Q are moved by what a longer step would lack to
          bring outlying products back near sigma mu s. All solves share one factorisation.
Stopping: `estimate` = P(w) - D(alpha).

Mehrotra, SIAM J. Optim. 1992; Gondzio, Comput. Optim. Appl. 1996 (the further correctors);
Ferris & Munson, SIAM J. Optim. 2002 (box duals of massive support vector machines).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pegasos.core.dispatch import helper
from pegasos.core.jit import hot
from pegasos.core.matrix import combine, gram, occupied, products
from pegasos.objective.certificate import Evaluation, evaluate
from pegasos.objective.losses import Pinball
from pegasos.objective.problem import Problem
from pegasos.solvers.linalg import factor
from pegasos.solvers.newton import penalties

_START = 1.5  # mu at the start, in units of the mean distance |z - 1|
_SHARE = 0.999  # of the way to the nearest bound
_BAND = 10.0  # products beyond this factor of sigma mu s are outlying
_PATIENCE = 5  # iterations without a better merit: rounding has the last word


class Point(NamedTuple):
    """Distances from the bounds, parts of z - 1; all positive, all with full relative precision."""

    lo: np.ndarray
    up: np.ndarray
    over: np.ndarray
    under: np.ndarray


class InteriorState(NamedTuple):
    """w, the point of the rows, v; s, occupied columns; sum c (lo over + up under); the merit.

    The merit bounds the gap: that sum plus what R (w - w0) != v costs. `best` is its least value
    so far, `idle` counts the iterations since.
    """

    w: np.ndarray
    point: Point
    v: np.ndarray
    s: np.ndarray
    columns: np.ndarray
    complementarity: float
    merit: float
    best: float
    idle: int
    estimate: float
    epoch: int
    exhausted: bool


class System(NamedTuple):
    """The normal equations at a point: r -> H^-1 r, h, and R (w - w0) - v."""

    solve: Callable[[np.ndarray], np.ndarray]
    h: np.ndarray
    residual: np.ndarray


class Direction(NamedTuple):
    """dw, X dw, db, the aims P and Q that led to them, and the longest step that stays inside."""

    w: np.ndarray
    scores: np.ndarray
    b: np.ndarray
    P: np.ndarray
    Q: np.ndarray
    limit: float


@dataclass(frozen=True)
class Interior:
    """Interior point method; `correctors`: solves beyond Mehrotra's two for one factorisation."""

    correctors: int = 2

    def init(self, problem: Problem, seed: int, alpha: np.ndarray | None = None) -> InteriorState:
        if not isinstance(problem.loss, Pinball):
            raise TypeError(
                "Interior solves piecewise linear losses (hinge, pinball); "
                f"use Newton for {type(problem.loss).__name__}"
            )
        s = 1.0 / np.sqrt(problem.c)
        s *= problem.c.sum() / (problem.c @ s)
        w, z, mu = _start(problem) if alpha is None else _resume(problem, alpha)
        point = Point(*_central(z, problem.loss.tau, mu * s))
        columns = occupied(problem.rows)
        start = InteriorState(w, point, w, s, columns, 0.0, 0.0, np.inf, 0, np.inf, -1, False)
        return _arrive(problem, start, w, point)

    def step(self, problem: Problem, state: InteriorState) -> InteriorState:
        """One factorisation, its directions, and a step along the last of them."""
        try:
            system = _normal_equations(problem, state)
        except (np.linalg.LinAlgError, ValueError):  # not finite, or far from positive
            return state._replace(exhausted=True)
        d = self._direction(problem, state, system)
        t = min(1.0, _SHARE * d.limit)
        point = Point(*_moved(state.point, d, t))
        moved = _arrive(problem, state, state.w + t * d.w, point)
        if t < 1e-10 or not moved.merit <= 10.0 * state.merit:  # no way on, worse, or not a number
            return state._replace(exhausted=True)
        return moved

    def _direction(self, problem: Problem, state: InteriorState, system: System) -> Direction:
        """Predictor, corrector, and further correctors while they lengthen the step."""
        zero = np.zeros_like(problem.c)
        d = _solve(problem, state, system, zero, zero)
        t = min(1.0, d.limit)
        bend = float((problem.c * problem.y * d.b * d.scores).sum())  # of the products along d
        left = max(0.0, 1.0 - t + t * t * bend / state.complementarity)
        mu = state.complementarity / (2.0 * float(problem.c.sum()))
        target = mu * min(1.0, left) ** 5 * state.s
        d = _solve(problem, state, system, *_second_order(state.point, d, target))
        for _ in range(self.correctors):
            if d.limit >= 1.0:
                break
            t = min(1.0, max(1.5 * d.limit, d.limit + 0.1))
            longer = _solve(problem, state, system, *_recalled(state.point, d, t, target))
            if not longer.limit > d.limit:
                break
            d = longer
        return d

    def candidate(self, problem: Problem, state: InteriorState) -> tuple[np.ndarray, np.ndarray]:
        lo, up = state.point.lo, state.point.up
        return problem.c * np.where(lo < up, lo - problem.loss.tau, 1.0 - up), state.w

    def refresh(self, problem: Problem, state: InteriorState, seen: Evaluation) -> InteriorState:
        return state


def _start(problem: Problem) -> tuple[np.ndarray, np.ndarray, float]:
    """w0, its margins, and a mu of their size."""
    w = problem.center.copy()
    z = problem.y * products(problem.rows, w)
    far = float(problem.c @ np.abs(z - 1.0)) / float(problem.c.sum())
    return w, z, _START * max(far, 1e-2)


def _resume(problem: Problem, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """The w of alpha, its margins, and the mu at which the path has alpha's gap."""
    seen = evaluate(problem, alpha)
    mu = seen.certificate.gap / (2.0 * float(problem.c.sum()))
    return seen.w, seen.margins, max(mu, 1e-10)


def _normal_equations(problem: Problem, state: InteriorState) -> System:
    """H = R + X' diag(h) X, factored; products in float32 while their rounding is far below R."""
    h = _curvature(problem.c, state.point)
    single = not problem.free and problem.rows.values.dtype == np.float32
    single = single and float(h @ problem.q) * 6e-8 < 0.03
    R, columns = penalties(problem), state.columns
    H = gram(problem.rows, h, np.float32 if single else np.float64, columns)
    H[np.diag_indices_from(H)] += R[columns]
    inverse = factor(H)

    def solve(r: np.ndarray) -> np.ndarray:
        x = np.zeros_like(r)  # in an empty column w stays at w0
        x[columns] = inverse(r[columns])
        return x

    return System(solve, h, R * (state.w - problem.center) - state.v)


def _solve(problem: Problem, state: InteriorState, system: System, P, Q) -> Direction:
    """Newton's direction towards the products P and Q."""
    pull = _pull(problem.y, system.h, state.point, P, Q)
    dw = system.solve(combine(problem.rows, pull) - system.residual)
    scores = products(problem.rows, dw)
    db, rates = _changes(problem.c, pull, problem.y, system.h, state.point, scores, (P, Q))
    return Direction(dw, scores, db, P, Q, 1.0 / max(1e-3, float(rates.max())))


def _arrive(problem: Problem, state: InteriorState, w: np.ndarray, point: Point) -> InteriorState:
    """The state at a new w and point: v, the gap, and whether the merit still improves."""
    pull, complementarity, terms = _weigh(problem.c, problem.y, problem.loss.tau, point)
    v = combine(problem.rows, pull)
    away = penalties(problem) * (w - problem.center - v)
    residual = 0.5 * float(away @ away)
    if problem.free:  # an unbalanced alpha costs about what it must give up
        residual += abs(v[-1] / problem.rows.bias)
    merit = residual + complementarity
    idle = 0 if merit < state.best else state.idle + 1
    return InteriorState(
        w=w,
        point=point,
        v=v,
        s=state.s,
        columns=state.columns,
        complementarity=complementarity,
        merit=merit,
        best=min(merit, state.best),
        idle=idle,
        estimate=residual + terms,
        epoch=state.epoch + 1,
        exhausted=idle >= _PATIENCE,
    )


@hot
def _central(z, tau, mu):
    """lo, up, over, under: the solution of the path's equations for given z and products mu."""
    n, T = z.shape[0], 1.0 + tau
    lo, up, over, under = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for i in range(n):
        t = abs(z[i] - 1.0)
        far = (T * t + 2.0 * mu[i] + np.sqrt(T * T * t * t + 4.0 * mu[i] * mu[i])) / (2.0 * T)
        near = mu[i] / far  # the distance from the bound on the side of z
        if z[i] >= 1.0:
            over[i], lo[i], up[i] = far, near, T - near
            under[i] = mu[i] / up[i]
        else:
            under[i], up[i], lo[i] = far, near, T - near
            over[i] = mu[i] / lo[i]
    return lo, up, over, under


@hot
def _curvature(c, point):
    """h = c / (over/lo + under/up)"""
    h = np.empty_like(c)
    for i in range(c.shape[0]):
        h[i] = c[i] / (point.over[i] / point.lo[i] + point.under[i] / point.up[i])
    return h


@hot
def _pull(y, h, point, P, Q):
    """y h g"""
    out = np.empty_like(h)
    for i in range(h.shape[0]):
        g = point.under[i] - point.over[i] + P[i] / point.lo[i] - Q[i] / point.up[i]
        out[i] = y[i] * h[i] * g
    return out


@helper
def _parts(point, i, b, P, Q):
    """dover and dunder of row i, for db = b"""
    over, under = point.over[i], point.under[i]
    return (P - over * b) / point.lo[i] - over, (Q + under * b) / point.up[i] - under


@hot
def _changes(c, pull, y, h, point, scores, aims):
    """db, and for each row the largest relative decrease of lo, up, over, under.

    Their maximum is left to NumPy: a loop that carries one does not vectorise.
    """
    n = c.shape[0]
    P, Q = aims
    db, rates = np.empty(n), np.empty(n)
    for i in range(n):
        b = y[i] * (pull[i] - h[i] * scores[i]) / c[i]
        o, u = _parts(point, i, b, P[i], Q[i])
        r1, r2 = -b / point.lo[i], b / point.up[i]
        r3, r4 = -o / point.over[i], -u / point.under[i]
        r1 = r1 if r1 > r2 else r2
        r3 = r3 if r3 > r4 else r4
        rates[i] = r1 if r1 > r3 else r3
        db[i] = b
    return db, rates


@hot
def _second_order(point, d, target):
    """The corrector's P and Q: `target` less the products of the predictor's changes"""
    n = d.b.shape[0]
    P, Q = np.empty(n), np.empty(n)
    for i in range(n):
        o, u = _parts(point, i, d.b[i], d.P[i], d.Q[i])
        P[i] = target[i] - d.b[i] * o
        Q[i] = target[i] + d.b[i] * u
    return P, Q


@hot
def _recalled(point, d, t, target):
    """P and Q, moved by what a step of length t lacks to bring the products into the band"""
    n = d.b.shape[0]
    P, Q = np.empty(n), np.empty(n)
    for i in range(n):
        low, high = target[i] / _BAND, target[i] * _BAND
        o, u = _parts(point, i, d.b[i], d.P[i], d.Q[i])
        first = (point.lo[i] + t * d.b[i]) * (point.over[i] + t * o)
        second = (point.up[i] - t * d.b[i]) * (point.under[i] + t * u)
        P[i] = d.P[i] + max(min(max(first, low), high) - first, -high)
        Q[i] = d.Q[i] + max(min(max(second, low), high) - second, -high)
    return P, Q


@hot
def _moved(point, d, t):
    """lo, up, over, under after a step of length t"""
    n = d.b.shape[0]
    lo, up, over, under = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for i in range(n):
        o, u = _parts(point, i, d.b[i], d.P[i], d.Q[i])
        lo[i] = point.lo[i] + t * d.b[i]
        up[i] = point.up[i] - t * d.b[i]
        over[i] = point.over[i] + t * o
        under[i] = point.under[i] + t * u
    return lo, up, over, under


@hot
def _weigh(c, y, tau, point):
    """y c b; sum c (lo over + up under); sum c (l(z) + l*(-b) + b z), whose terms are >= 0"""
    n = c.shape[0]
    pull = np.empty(n)
    total, terms = 0.0, 0.0
    for i in range(n):
        lo, up, over, under = point.lo[i], point.up[i], point.over[i], point.under[i]
        t = over - under
        pull[i] = y[i] * c[i] * (lo - tau if lo < up else 1.0 - up)
        total += c[i] * (lo * over + up * under)
        terms += c[i] * (lo * t if t > 0.0 else -up * t)
    return pull, total, terms
