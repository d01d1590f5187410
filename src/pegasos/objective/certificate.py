"""The certificate: how far an answer can be from the best possible one, proven.

For every w and every feasible alpha, with v = sum_i alpha_i y_i x_i,

    P(w) = 1/2 ||w - w0||^2 + sum c_i l(z_i)
        >=  D(alpha) = -1/2 ||v||^2 - w0.v - sum c_i l*(-alpha_i/c_i)

(and sum_i alpha_i y_i = 0 if the intercept is free), so the optimum lies between the two. Both
are computed here from scratch in float64, never from running sums of a solver.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from pegasos.core.dispatch import generic
from pegasos.core.jit import hot
from pegasos.core.lanes import LANES, apart, lines
from pegasos.core.matrix import combine, lane_combine, lane_products, products
from pegasos.core.threads import run_blocks
from pegasos.objective.losses import conjugate, domain, slope, value
from pegasos.objective.problem import Problem

_BLOCK = 1 << 16  # rows of which a thread sums up the losses


class Certificate(NamedTuple):
    """primal >= optimum >= dual."""

    primal: float
    dual: float

    @property
    def gap(self) -> float:
        """The objective is at most this far above the optimum."""
        gap = self.primal - self.dual
        slack = 1e-9 * (abs(self.primal) + abs(self.dual))
        if np.isnan(gap) or gap < -slack:  # NaN proves nothing, nor does a bound above a value
            return np.inf
        return max(0.0, gap)

    @property
    def above_zero(self) -> Certificate:
        """The same of an objective that is never negative."""
        return Certificate(self.primal, max(0.0, self.dual))

    @property
    def relative_gap(self) -> float:
        """The gap as a share of the objective."""
        if self.gap == 0.0:
            return 0.0
        return self.gap / abs(self.primal) if self.primal else np.inf


class Evaluation(NamedTuple):
    """A point, its margins z_i, a feasible alpha, and the certificate of the two."""

    w: np.ndarray
    alpha: np.ndarray
    margins: np.ndarray
    certificate: Certificate


@generic
def evaluate(problem: Any, alpha: np.ndarray, w: np.ndarray | None = None) -> Evaluation:
    """The certificate of a point of the problem, from scratch"""


@generic
def better(problem: Any, best: Evaluation, seen: Evaluation) -> Evaluation:
    """What is known after one more evaluation"""


@evaluate.register(Problem)
def _(problem, alpha, w=None):
    """Certify w (by default w0 + v) against alpha, made feasible first.

    With a free intercept, w is returned with the intercept that minimises P.
    """
    alpha = feasible(problem, alpha)
    v = combine(problem.rows, problem.y * alpha)
    if problem.free:
        v[-1] = 0.0
    w = problem.center + v if w is None else w.copy()
    return _weighed(problem, alpha, v, w, products(problem.rows, w))


def evaluate_all(problems: list[Problem], alphas: Iterable[np.ndarray]) -> list[Evaluation]:
    """[evaluate(problem, alpha) …] for problems on the same rows, of which some may have c_i = 0.

    Each row is read twice for LANES problems.
    """
    found: list[Evaluation] = []
    alphas = iter(alphas)
    for start in range(0, len(problems), LANES):
        part = problems[start : start + LANES]
        chosen = [feasible(*pair) for pair in zip(part, islice(alphas, LANES), strict=True)]
        found += _evaluate_lanes(part, chosen)
    return found


def _evaluate_lanes(problems: list[Problem], alphas: list[np.ndarray]) -> list[Evaluation]:
    rows, count = problems[0].rows, len(problems)
    A = lines(len(alphas[0]), np.float64)
    pairs = zip(problems, alphas, strict=True)
    A[:, :count] = np.array([problem.y * alpha for problem, alpha in pairs]).T
    V = lane_combine(rows, A)
    vs = apart(V)[:count]
    if problems[0].free:
        vs[:, -1] = 0.0
    ws = [problem.center + v for problem, v in zip(problems, vs, strict=True)]
    V[:, :count] = np.array(ws).T
    scores = apart(lane_products(rows, V))[:count]
    return [_weighed(*parts) for parts in zip(problems, alphas, vs, ws, scores, strict=True)]


def _weighed(problem: Problem, alpha, v, w: np.ndarray, scores: np.ndarray) -> Evaluation:
    """The certificate of w and alpha, whose products with the rows are known."""
    if problem.free:
        shift = best_shift(problem, scores)
        w[-1] += shift / problem.rows.bias
        scores += shift
    margins = problem.y * scores
    away = w - problem.center
    if problem.free:
        away[-1] = 0.0
    primal = 0.5 * float(away @ away) + loss_sum(problem, margins)
    dual = -0.5 * float(v @ v) - float(problem.center @ v) - conjugate_sum(problem, alpha)
    return Evaluation(w, alpha, margins, Certificate(primal, dual))


@better.register(Problem)
def _(problem, best, seen):
    """The lower primal point with the higher dual point: their gap is a proof as well.

    Where the primal values differ by rounding only, the later point is the better one.
    """
    old, new = best.certificate, seen.certificate
    worse = new.primal > old.primal + 1e-15 * abs(old.primal) or np.isnan(new.primal)
    primal = best if worse else seen
    dual = seen if new.dual > old.dual or np.isnan(old.dual) else best
    certificate = Certificate(primal.certificate.primal, dual.certificate.dual)
    return Evaluation(primal.w, dual.alpha, primal.margins, certificate)


def feasible(problem: Problem, alpha: np.ndarray) -> np.ndarray:
    """alpha clipped to its box and, if the intercept is free, balanced to sum alpha_i y_i = 0."""
    low, high = domain(problem.loss)
    clipped = np.empty(alpha.size)
    _clip(low, high, problem.c, alpha, clipped)
    alpha = clipped
    if problem.free:
        pull = alpha * problem.y
        excess = float(pull.sum())
        heavy = pull > 0.0 if excess > 0.0 else pull < 0.0
        weight = float(pull[heavy].sum())
        if weight != 0.0:
            alpha[heavy] *= max(0.0, 1.0 - excess / weight)  # towards 0 stays in the domain
    return alpha


@hot
def _clip(low, high, c, alpha, out):
    for i in range(alpha.shape[0]):
        a = alpha[i]
        a = low * c[i] if a < low * c[i] else a
        a = high * c[i] if a > high * c[i] else a
        out[i] = a if c[i] > 0.0 else 0.0


def best_shift(problem: Problem, scores: np.ndarray) -> float:
    """The t that minimises sum c_i l(y_i (scores_i + t)): a monotone root of its derivative.

    The search ends when no further move could lower the sum by 1e-10 of its value.
    """
    tilt, total = _tilt(problem, scores, 0.0)
    if tilt == 0.0 or total == 0.0:
        return 0.0
    near, far, near_tilt = 0.0, -np.sign(tilt) * 1e-3, tilt
    while (far_tilt := _tilt(problem, scores, far)[0]) * tilt > 0.0 and abs(far) < 1e12:
        near, near_tilt, far = far, far_tilt, 4.0 * far
    for k in range(80):
        secant = near - near_tilt * (far - near) / (far_tilt - near_tilt)
        t = secant if k % 2 and np.isfinite(secant) else 0.5 * (near + far)
        tilt_t, total = _tilt(problem, scores, t)
        if tilt_t * near_tilt > 0.0:
            near, near_tilt = t, tilt_t
        else:
            far, far_tilt = t, tilt_t
        if min(abs(near_tilt), abs(far_tilt)) * abs(far - near) <= 1e-10 * total:
            break
    return float(near if abs(near_tilt) <= abs(far_tilt) else far)


@hot
def _tilt(problem, scores, t):
    """Derivative and value of sum c_i l(y_i (scores_i + t)) in t."""
    tilt = 0.0
    total = 0.0
    for i in range(scores.shape[0]):
        z = problem.y[i] * (scores[i] + t)
        tilt += problem.c[i] * problem.y[i] * slope(problem.loss, z)
        total += problem.c[i] * value(problem.loss, z)
    return tilt, total


def loss_sum(problem: Problem, margins: np.ndarray) -> float:
    """sum c_i l(z_i)"""
    return _summed(_fill_losses, problem, margins)


def conjugate_sum(problem: Problem, alpha: np.ndarray) -> float:
    """sum c_i l*(-alpha_i/c_i)"""
    return _summed(_fill_conjugates, problem, alpha)


def _summed(fill: Any, problem: Problem, at: np.ndarray) -> float:
    """The sum is NumPy's: in the loop it would keep it from vectorising."""
    terms = np.empty(at.size)

    def part(start: int, stop: int) -> None:
        fill(problem.loss, problem.c[start:stop], at[start:stop], terms[start:stop])

    run_blocks(part, at.size, _BLOCK)
    return float(terms.sum())


@hot
def _fill_losses(loss, c, margins, terms):
    for i in range(margins.shape[0]):
        terms[i] = c[i] * value(loss, margins[i])


@hot
def _fill_conjugates(loss, c, alpha, terms):
    for i in range(alpha.shape[0]):
        terms[i] = c[i] * conjugate(loss, alpha[i] / c[i]) if c[i] > 0.0 else 0.0
