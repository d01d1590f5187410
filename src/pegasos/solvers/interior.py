"""Mehrotra's interior point method for tall data (rows >> columns) and piecewise linear losses.

Problem:  min_w 1/2 ||w - w0||_R^2 + sum_i c_i l(z_i),  l(z) = max(1 - z, tau (z - 1)),
          z_i = y_i x_i.w,  R = I, but 0 for a free intercept
Dual:     max_b -1/2 ||v||_R^2 - w0.R v + sum_i c_i b_i,  v = sum_i c_i b_i y_i x_i,
          -tau <= b_i <= 1 (alpha_i = c_i b_i),  v = 0 in the coordinate of a free intercept
Path:     with lo = b + tau and up = 1 - b, the distances from the bounds, and z - 1 = over - under,
              R (w - w0) = v,    lo_i over_i = up_i under_i = mu s_i,    all four > 0.
          mu -> 0 leads to the optimum; on the path the gap is 2 mu sum c. The room of a row is
          s_i ~ (leverage_i)^(1/4) / sqrt(c_i), leverage = c_i x_i' (R + X' diag(c) X)^-1 x_i:
          rows that weigh little or stand alone move far in a step and would block it first.
Update:   Newton's step on the path's equations, the two products aimed at P_i and Q_i:
              (R + X' diag(h) X) dw = v - R (w - w0) + X' (y h g),  db = h (g - y X dw) / c,
              h = c / (over/lo + under/up),  g = under - over + P/lo - Q/up.
          Predictor: P = Q = 0; its longest step would leave mu', and sigma = (mu'/mu)^6
          (measured: Mehrotra's exponent 3 takes more iterations here).
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
from pegasos.core.gram import gram, gram_columns
from pegasos.core.jit import hot_allocating
from pegasos.core.matrix import combine, products
from pegasos.core.rows import is_single
from pegasos.objective.certificate import Evaluation, evaluate
from pegasos.objective.losses import Pinball
from pegasos.objective.problem import Problem
from pegasos.solvers.linalg import factor
from pegasos.solvers.newton import penalties

_START = 1.5  # mu at the start, in units of the mean distance |z - 1|
_SHARE = 0.95  # of the way to the nearest bound, more when the predictor came far
_REACH = 0.3  # how much longer a step the further correctors try for
_BAND = 10.0  # products beyond this factor of sigma mu s are outlying
_PROBES = 8  # random projections that estimate s
_PATIENCE = 5  # iterations without a better merit: rounding has the last word


class Point(NamedTuple):
    """Distances from the bounds, parts of z - 1; all positive, all with full relative precision."""

    lo: np.ndarray
    up: np.ndarray
    over: np.ndarray
    under: np.ndarray


class InteriorState(NamedTuple):
    """w, the point of the rows, v; s, occupied columns; sum c (lo over + up under); merit.

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
    objective: float
    epoch: int
    exhausted: bool


class Direction(NamedTuple):
    """dw, X dw, db; the aims P and Q, y h g and X' (y h g) behind them; the longest step inside."""

    w: np.ndarray
    scores: np.ndarray
    b: np.ndarray
    P: np.ndarray
    Q: np.ndarray
    pull: np.ndarray
    force: np.ndarray
    limit: float


@dataclass(frozen=True)
class Interior:
    """Interior point method; `correctors`: solves beyond Mehrotra's two for one factorisation."""

    correctors: int = 3

    def init(self, problem: Problem, seed: int, alpha: np.ndarray | None = None) -> InteriorState:
        if not isinstance(problem.loss, Pinball):
            raise ValueError(
                "solver='interior' is for piecewise linear losses (hinge, pinball); for "
                f"{type(problem.loss).__name__} use solver='newton' or 'newton_cg'"
            )
        columns = gram_columns(problem.rows)
        s = _room(problem, columns, seed)
        w, z, b, mu = _entry(problem, alpha)
        point = Point(*_enter(z, b, problem.loss.tau, mu * s))
        start = InteriorState(w, point, w, s, columns, 0.0, 0.0, np.inf, 0, np.inf, 0.0, -1, False)
        return _arrive(problem, start, w, point)

    @np.errstate(over="ignore", invalid="ignore")  # what is not finite ends the run below
    def step(self, problem: Problem, state: InteriorState) -> InteriorState:
        """One factorisation; predictor, corrector and further correctors; a step along the last."""
        try:
            aim = _newton(problem, state)
        except np.linalg.LinAlgError:
            return state._replace(exhausted=True)
        zero = np.zeros_like(problem.c)
        d = aim(zero, zero)
        t = min(1.0, d.limit)
        bend = float((problem.c * problem.y * d.b * d.scores).sum())  # c (dlo dover + dup dunder)
        left = min(1.0, max(0.0, 1.0 - t + t * t * bend / state.complementarity))
        target = left**6 * state.complementarity / (2.0 * float(problem.c.sum())) * state.s
        d = self._correct(aim, aim(*_second_order(state.point, d, target)), state.point, target)
        t = min(1.0, max(_SHARE, 1.0 - left) * d.limit)
        moved = _arrive(problem, state, state.w + t * d.w, Point(*_moved(state.point, d, t)))
        if t < 1e-10 or not moved.merit <= 10.0 * state.merit:  # no way on, worse, or not a number
            return state._replace(exhausted=True)
        return moved

    def _correct(self, aim, d: Direction, point: Point, target: np.ndarray) -> Direction:
        """The direction after further correctors, as long as each lengthens the step."""
        for _ in range(self.correctors):
            if d.limit >= 1.0:
                break
            longer = aim(*_recalled(point, d, min(1.0, d.limit + _REACH), target), d)
            if not longer.limit > d.limit:
                break
            d = longer
        return d

    def candidate(self, problem: Problem, state: InteriorState) -> tuple[np.ndarray, np.ndarray]:
        lo, up = state.point.lo, state.point.up
        return problem.c * np.where(lo < up, lo - problem.loss.tau, 1.0 - up), state.w

    def refresh(self, problem: Problem, state: InteriorState, seen: Evaluation) -> InteriorState:
        return state


def _room(problem: Problem, columns: np.ndarray, seed: int) -> np.ndarray:
    """s, by random projections, with sum c s = sum c."""
    H = gram(problem.rows, problem.c, np.float64, columns)
    H[np.diag_indices_from(H)] += penalties(problem)[columns]
    scale = np.sqrt(np.diag(H))
    values, vectors = np.linalg.eigh(H / scale / scale[:, None])
    root = vectors / np.sqrt(np.maximum(values, 1e-12)) / scale[:, None]
    s = np.zeros(problem.c.size)
    for g in np.random.default_rng(seed).standard_normal((_PROBES, columns.size)):
        x = np.zeros(problem.center.size)
        x[columns] = root @ g
        s += products(problem.rows, x) ** 2
    total = problem.c.sum()
    s = s**0.25 * problem.c**-0.25
    s = np.maximum(s, 0.1 * float(problem.c @ s) / total + 1e-100)  # rows and columns of zeros
    return s * (total / (problem.c @ s))


def _entry(problem: Problem, alpha: np.ndarray | None) -> tuple[np.ndarray, ...]:
    """w, z, b and mu to start with: those of alpha if it is any good, else those of w0."""
    total = problem.c.sum()
    if alpha is not None:
        seen = evaluate(problem, alpha)
        if seen.certificate.relative_gap < 0.5:
            mu = max(seen.certificate.gap / (2.0 * total), 1e-12)
            return seen.w, seen.margins, seen.alpha / problem.c, mu
    w = problem.center.copy()
    z = problem.y * products(problem.rows, w)
    mu = _START * max(0.01, problem.c @ np.abs(z - 1.0) / total)
    return w, z, np.where(z < 1.0, 1.0, -problem.loss.tau), mu


def _newton(problem: Problem, state: InteriorState) -> Callable[..., Direction]:
    """The function that turns P and Q into Newton's direction: H = R + X' diag(h) X, factored.

    Products of H are float32 while their rounding is far below R. If P and Q are those of the
    direction `last` in most rows, only the difference is combined.
    """
    h = _curvature(problem.c, state.point)
    single = not problem.free and is_single(problem.rows)
    single = single and float(h @ problem.q) * 6e-8 < 0.03
    R, columns = penalties(problem), state.columns
    H = gram(problem.rows, h, np.float32 if single else np.float64, columns)
    H[np.diag_indices_from(H)] += R[columns]
    solve = factor(H)
    residual = R * (state.w - problem.center) - state.v

    def aim(P: np.ndarray, Q: np.ndarray, last: Direction | None = None) -> Direction:
        pull = _pull(problem.y, h, state.point, P, Q)
        if last is None:
            force = combine(problem.rows, pull)
        else:
            force = last.force + combine(problem.rows, pull - last.pull)
        dw = np.zeros_like(residual)  # in an empty column w stays at w0
        dw[columns] = solve((force - residual)[columns])
        scores = products(problem.rows, dw)
        db, rates = _changes(problem.c, problem.y, h, state.point, pull, scores, (P, Q))
        return Direction(dw, scores, db, P, Q, pull, force, 1.0 / max(1e-3, float(rates.max())))

    return aim


def _arrive(problem: Problem, state: InteriorState, w: np.ndarray, point: Point) -> InteriorState:
    """The state at a new w and point: v, the gap, and whether the merit still improves."""
    pull, losses, complementarity, terms = _weigh(problem.c, problem.y, problem.loss.tau, point)
    v = combine(problem.rows, pull)
    away, apart = (penalties(problem) * (w - problem.center - u) for u in (0.0, v))
    residual = 0.5 * float(apart @ apart)
    if problem.free:  # an unbalanced alpha costs about what it must give up
        residual += abs(float(v[-1]) / problem.rows.bias)
    merit = residual + complementarity
    idle = 0 if merit < state.best else state.idle + 1
    objective = 0.5 * float(away @ away) + losses
    done = idle >= _PATIENCE or complementarity <= 1e-16 * objective
    state = state._replace(w=w, point=point, v=v, epoch=state.epoch + 1, exhausted=done)
    state = state._replace(merit=merit, best=min(merit, state.best), idle=idle, objective=objective)
    return state._replace(complementarity=complementarity, estimate=residual + terms)


@hot_allocating
def _enter(z, b, tau, mu):
    """lo, up, over, under near b; for b at the bound of its z they are on the path, products mu"""
    n, T = z.shape[0], 1.0 + tau
    lo, up, over, under = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for i in range(n):
        m, t = mu[i], z[i] - 1.0
        near = 2.0 * T * m / (T * abs(t) + 2.0 * m + np.sqrt(T * T * t * t + 4.0 * m * m))
        lo[i] = min(max(b[i] + tau, near), T - near)
        up[i] = min(max(1.0 - b[i], near), T - near)
        least = m / max(lo[i], up[i])
        over[i], under[i] = max(t, 0.0) + least, max(-t, 0.0) + least
    return lo, up, over, under


@hot_allocating
def _curvature(c, point):
    """h = c / (over/lo + under/up)"""
    h = np.empty_like(c)
    for i in range(c.shape[0]):
        h[i] = c[i] / (point.over[i] / point.lo[i] + point.under[i] / point.up[i])
    return h


@hot_allocating
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


@hot_allocating
def _changes(c, y, h, point, pull, scores, aims):
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


@hot_allocating
def _second_order(point, d, target):
    """The corrector's P and Q: `target` less the products of the predictor's changes"""
    n = d.b.shape[0]
    P, Q = np.empty(n), np.empty(n)
    for i in range(n):
        o, u = _parts(point, i, d.b[i], d.P[i], d.Q[i])
        P[i] = target[i] - d.b[i] * o
        Q[i] = target[i] + d.b[i] * u
    return P, Q


@hot_allocating
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


@hot_allocating
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


@hot_allocating
def _weigh(c, y, tau, point):
    """y c b; sum c l(z); sum c (lo over + up under); sum c (l(z) + l*(-b) + b z), terms >= 0"""
    n = c.shape[0]
    pull = np.empty(n)
    losses, total, terms = 0.0, 0.0, 0.0
    for i in range(n):
        lo, up, over, under = point.lo[i], point.up[i], point.over[i], point.under[i]
        t = over - under
        pull[i] = y[i] * c[i] * (lo - tau if lo < up else 1.0 - up)
        losses += c[i] * max(-t, tau * t)
        total += c[i] * (lo * over + up * under)
        terms += c[i] * max(-up * t, lo * t)
    return pull, losses, total, terms
