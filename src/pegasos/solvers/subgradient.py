"""Subgradient descent on the primal: batch, mini-batch, single examples, Pegasos, perceptron.

Problem:   min_w lam/2 ||w - w0||^2 + (1/n) sum_i r_i l(z_i),  lam = 1/sum(c), r_i = n c_i / sum(c),
           which is P / sum(c) of `objective.problem`
Update:    w <- w - eta_t (lam (w - w0) + (1/k) sum_{i in A_t} r_i l'(z_i) y_i x_i), A_t of k rows;
           then onto the ball ||w - w0|| <= radius, if asked: at the optimum lam/2 ||w - w0||^2 is
           at most the mean loss at w0 (for pinball, half of it: by the dual)
Offset:    free: b <- b - eta_t (1/k) sum r_i l'(z_i) y_i; damped: min(eta_t, 1/sqrt(t)) for eta_t,
           since no penalty calls b back from a first step of 1/lam; residual: b = mean of y - w.x
           over the rows of a step (of one row it stays: it would make the margin 1 whatever w is)
Steps:     eta_t from a schedule: 1/(lam t) (Pegasos), constant, eta0/sqrt(t), or the user's
Average:   sum_t rho_t w_t / sum_t rho_t, rho_t = t^p from some step on
Dual:      each step adds rows to w, so w = w0 + sum alpha_i y_i x_i for an alpha that is kept on
           the way; put into its box it gives the lower bound of the certificate
Stopping:  `estimate`, the sum over an epoch of the terms of the duality gap (see solvers.dual)

w - w0 = scale * v: a step costs the entries of its rows, not the length of w. So does the average:
sum rho_t (w_t - w0) = held * v + past, where `past` takes back what v gains before it is held: a
sum of y_i x_i, whose coefficients take a number a step; it is summed when it is asked for, but on a
stream, where rows do not stay, it is kept. Where the two would cancel (projections make the scale
small) or overflow, the scale is multiplied into v.

Shalev-Shwartz, Singer, Srebro, Cotter 2011 (Pegasos); Jumutc, Huang, Suykens 2013 (pinball,
Algorithm 1); Rosenblatt 1958 (perceptron).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from pegasos.core.dispatch import generic, helper
from pegasos.core.jit import hot_allocating
from pegasos.core.matrix import combine, products
from pegasos.core.prefetch import prefetch
from pegasos.core.rng import shuffle
from pegasos.core.rows import n_entries, n_rows, row_axpy, row_dot, row_prefetch
from pegasos.objective.certificate import Evaluation, loss_sum
from pegasos.objective.losses import Pinball, conjugate, domain, slope, value
from pegasos.objective.problem import Problem
from pegasos.solvers.draws import SAMPLINGS, draw
from pegasos.solvers.iterate import NONE, Scalars, SubgradientState, empty_state
from pegasos.solvers.schedules import pegasos_steps
from pegasos.solvers.stops import LONGEST, quiet

OFFSETS = ("none", "free", "residual", "damped")
SLICE = 1 << 24  # entries between two returns to Python
_AHEAD = 3


class Rule(NamedTuple):
    """The method, for the hot loop: lam, r_i / c_i, k, sampling, offset, radius of the ball."""

    lam: float
    ratio: float
    k: int
    sampling: int
    offset: int
    radius: float


@dataclass(frozen=True)
class Subgradient:
    """The stochastic family.

    `batch` rows a step (0: all); `schedule(t, lam)` gives the steps of an array of t from 1 on;
    `power` None: no average, else rho_t = t^power (`tail`: from the second half of `epochs` on);
    `shrink` False: no penalty (the perceptron); `quiet`: see `solvers.stops`. On a stream, where
    sum(c) is not known, `lam` is given, and r_i = c_i.
    """

    batch: int = 1
    schedule: Callable[[np.ndarray, float], np.ndarray] = pegasos_steps
    sampling: str = "permuted"
    projection: bool = True
    power: float | None = 1.0
    tail: bool = False
    epochs: int = 1
    offset: str = "damped"
    shrink: bool = True
    lam: float | None = None
    quiet: tuple[tuple[int, float], ...] = ()

    def init(
        self, problem: Problem, seed: int, alpha: np.ndarray | None = None
    ) -> SubgradientState:
        n = n_rows(problem.rows)
        state = _at(empty_state(problem.center.size, seed), _base(problem))
        rows = {"past": np.zeros(0), "alpha": np.zeros(n), "alpha_past": np.zeros(n)}
        lengths = np.full(LONGEST, np.inf)
        return state._replace(vectors=state.vectors._replace(**rows, lengths=lengths))

    def step(self, problem: Problem, state: SubgradientState) -> SubgradientState:
        """An epoch, or a slice of one."""
        n = n_rows(problem.rows)
        rule = self.rule(problem)
        if state.cursor == 0 and self.sampling == "permuted" and rule.k < n:
            shuffle(state.vectors.order, n, state.vectors.rng)
        most = max(1, SLICE * n // max(1, n_entries(problem.rows)) // rule.k)
        count = min(most, -(-(n - state.cursor) // rule.k))
        return self.advance(problem, state, count)

    def advance(self, problem: Problem, state: SubgradientState, count: int) -> SubgradientState:
        """`count` steps, within the epoch; fewer where they fall quiet."""
        problem, rule = self.without_column(problem), self.rule(problem, state.base)
        etas, rhos = self.paces(problem, state.t, count)
        limits = np.array(self.quiet, dtype=np.float64).reshape(-1, 2)
        taken, *sums = _steps(problem, rule, state, etas, rhos, limits)
        state = state._replace(
            scalars=Scalars(*sums), t=state.t + taken, cursor=state.cursor + taken * rule.k
        )
        return state if state.cursor < n_rows(problem.rows) else _end_of_epoch(problem, state)

    def on_stream(
        self, problem: Problem, state: SubgradientState
    ) -> tuple[SubgradientState, np.ndarray]:
        """Steps on the rows of a batch, in their order; the given state stays as it is.

        Also returns w.x + b of each row before its step, when it was still unknown.
        Where a batch begins makes no difference, but that a step has no rows of two batches.
        """
        n, old = n_rows(problem.rows), state.vectors
        state = state._replace(
            vectors=old._replace(**{k: v.copy() for k, v in old._asdict().items()})
        )
        ball = self.projection and not problem.center.any()  # else of a radius yet unknown
        method = replace(self, sampling="order", tail=False, projection=ball)
        state = _at(state, _base(problem), scores=np.zeros(n))
        rule, problem, never = method.rule(problem), self.without_column(problem), np.empty((0, 2))
        etas, rhos = method.paces(problem, state.t, -(-n // rule.k))
        taken, *sums = _steps(problem, rule, state, etas, rhos, never)
        state = state._replace(scalars=Scalars(*sums), t=state.t + taken)
        return _at(state, np.zeros(0)), state.vectors.scores

    def paces(self, problem: Any, t: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        """eta and rho of `count` steps after the first t."""
        n = n_rows(problem.rows)
        ts = np.arange(t + 1, t + count + 1, dtype=np.float64)
        etas = np.asarray(self.schedule(ts, self._lam(problem)), dtype=np.float64)
        rhos = np.zeros(count) if self.power is None else ts**self.power
        if self.tail:
            rhos[2.0 * ts * min(self.batch or n, n) < self.epochs * n] = 0.0
        return etas, rhos

    def point(self, state: SubgradientState, past: np.ndarray, bias: float) -> np.ndarray:
        """The averaged w if there is one, else the last; b in the virtual column."""
        s, x = state.scalars, state.vectors
        averaged = s.mass > 0.0
        w = (s.held * x.v + past) / s.mass if averaged else s.scale * x.v
        if self.offset != "none":
            w[-1] = (s.b_sum / s.mass if averaged else s.b) / bias
        return w

    def without_column(self, problem: Any) -> Any:
        """A free offset is a number of its own, not the weight of a column."""
        if self.offset == "none":
            return problem
        rows, bias = problem.rows, problem.rows.bias
        return problem._replace(rows=rows._replace(bias=0.0), q=problem.q - bias * bias)

    def _lam(self, problem: Any) -> float:
        return 1.0 / float(problem.c.sum()) if self.lam is None else self.lam

    def rule(self, problem: Any, base: np.ndarray = NONE) -> Rule:
        """The method on this problem, in numbers; `base` is X w0."""
        n, lam = n_rows(problem.rows), self._lam(problem)
        reach = reach_of(problem, base) if self.projection else np.inf
        return Rule(
            lam if self.shrink else 0.0,
            n / float(problem.c.sum()) if self.lam is None else 1.0,
            min(self.batch or n, n),
            SAMPLINGS.index(self.sampling),
            OFFSETS.index(self.offset),
            float(np.sqrt(reach / lam)),
        )

    def candidate(self, problem: Problem, state: SubgradientState) -> tuple[np.ndarray, np.ndarray]:
        """The point and its alpha, put into the box."""
        s, x = state.scalars, state.vectors
        alpha, past = s.scale * x.alpha, x.past
        if s.mass > 0.0:
            alpha = (s.held * x.alpha + x.alpha_past) / s.mass
            past = combine(self.without_column(problem).rows, problem.y * x.alpha_past)
        low, high = domain(problem.loss)
        w = problem.center + self.point(state, past, problem.rows.bias)
        return np.clip(alpha, low * problem.c, high * problem.c), w

    def refresh(self, problem: Problem, state: Any, seen: Evaluation) -> Any:
        return state


def _base(problem: Problem) -> np.ndarray:
    """X w0"""
    w0 = problem.center
    return products(problem.rows, w0) if w0.any() else np.zeros(n_rows(problem.rows))


@generic
def reach_of(problem: Any, base: np.ndarray) -> float:
    """lam ||w - w0||^2 is at most this at the optimum; `base` is X w0 (of no rows: of w0 = 0)"""


@reach_of.register(Problem)
def _(problem, base):
    mean = value(problem.loss, 0.0)
    if base.any():
        mean = loss_sum(problem, problem.y * base) / float(problem.c.sum())
    return mean if isinstance(problem.loss, Pinball) else 2.0 * mean


def _at(state: SubgradientState, base: np.ndarray, scores: np.ndarray = NONE) -> SubgradientState:
    """The state before the rows behind `base`."""
    vectors = state.vectors._replace(order=np.arange(len(base)), scores=scores)
    return state._replace(vectors=vectors, base=base, cursor=0)


def _end_of_epoch(problem: Problem, state: SubgradientState) -> SubgradientState:
    """Sums of the epoch become the estimate; ||v||^2 is computed anew."""
    s = state.scalars
    sqnorm = float(state.vectors.v @ state.vectors.v)
    objective = 0.5 * s.scale**2 * sqnorm + s.losses
    return state._replace(
        scalars=s._replace(sqnorm=sqnorm, terms=0.0, losses=0.0),
        cursor=0,
        estimate=s.terms,
        objective=objective,
        epoch=state.epoch + 1,
    )


@hot_allocating
def _steps(problem, rule, state, etas, rhos, limits):
    """Steps of the given lengths and weights in the average, until a limit of `stops.quiet` holds;
    returns their number and the scalars. (An array in `rule` would cost a third of the speed.)"""
    rows, y, q, c, loss = problem.rows, problem.y, problem.q, problem.c, problem.loss
    x, s, base = state.vectors, state.scalars, state.base
    v, past, alpha, alpha_past, order = x.v, x.past, x.alpha, x.alpha_past, x.order
    scale, sqnorm, b, held, mass = s.scale, s.sqnorm, s.b, s.held, s.mass
    b_sum, terms, losses = s.b_sum, s.terms, s.losses
    n, k, share, kept = y.shape[0], rule.k, rule.ratio / rule.k, alpha.shape[0] > 0
    low, high = -slope(loss, np.inf), -slope(loss, -np.inf)
    dots, slopes, taken = np.empty(k), np.empty(k), 0
    for m in range(etas.shape[0]):
        eta, before = etas[m], scale * scale * sqnorm
        first = draw(order, x.rng, rule, state.cursor + m * k, n)
        size = min(k, n - first)
        if rule.sampling != 0 and first + size + _AHEAD < n:
            _prefetch(rows, y, c, base, alpha, alpha_past, order[first + size + _AHEAD])
        residual, met = 0.0, b
        for r in range(size):
            i = order[first + r]
            dots[r] = scale * row_dot(rows, i, v)
            residual += y[i] - base[i] - dots[r]
        if rule.offset == 2 and size > 1:
            b = residual / size
        for r in range(size):
            i = order[first + r]
            f = base[i] + dots[r]
            z = y[i] * (f + b)
            slopes[r] = slope(loss, z)
            if not kept:
                x.scores[i] = f + met
                z = y[i] * x.scores[i]
            cost = c[i] * value(loss, z)
            losses += cost
            if kept:
                a = min(max(scale * alpha[i], low * c[i]), high * c[i])
                terms += cost + c[i] * conjugate(loss, a / c[i]) + a * z
        fall, shrink = eta * rule.lam, 1.0 - eta * rule.lam
        scale *= shrink
        if not 1e-100 < abs(scale) < 1e100 or abs(held) > 1e4 * mass * abs(scale):
            sqnorm *= _fold(x, scale, held) ** 2
            scale, held = 1.0, 0.0
        along, push, pull = 0.0, 0.0, 0.0
        for r in range(size):
            i = order[first + r]
            step = -eta * share * c[i] * slopes[r] * y[i]
            if step != 0.0:
                gain, inner, overlap = step / scale, shrink * dots[r], 0.0
                dot = inner / scale
                if size > 1:
                    dot = row_dot(rows, i, v)
                    overlap = scale * dot - inner
                sqnorm += gain * (2.0 * dot + gain * q[i])
                row_axpy(rows, i, gain, v)
                if kept:
                    alpha[i] += gain * y[i]
                    alpha_past[i] -= held * gain * y[i]
                elif held != 0.0:
                    row_axpy(rows, i, -held * gain, past)
                along += step * dots[r]
                push += step * (2.0 * overlap + step * q[i])
                pull += step
        if rule.offset == 1:
            b += pull
        elif rule.offset == 3 and pull != 0.0:
            b += pull * min(1.0, 1.0 / (eta * np.sqrt(state.t + m + 1.0)))
        move = _squared_length(fall, before, along, push)
        after = scale * scale * max(0.0, sqnorm)
        if after > rule.radius**2:
            shorter = rule.radius / np.sqrt(after)
            cut = (after - rule.radius**2) / (after + rule.radius * np.sqrt(after))
            along = shorter * (along - fall * before)
            move = _squared_length(cut, before, along, shorter * shorter * move)
            scale *= shorter
        x.lengths[(state.t + m) % x.lengths.shape[0]] = np.sqrt(move)
        held += rhos[m] * scale
        mass += rhos[m]
        b_sum += rhos[m] * b
        taken = m + 1
        if limits.shape[0] > 0 and quiet(x.lengths, state.t + taken, limits):
            break
    return taken, scale, sqnorm, b, held, mass, b_sum, terms, losses


@helper
def _prefetch(rows, y, c, base, alpha, alpha_past, i):
    """Have what belongs to row i at hand soon."""
    row_prefetch(rows, i)
    prefetch(y, i)
    prefetch(c, i)
    prefetch(base, i)
    if alpha.shape[0] > 0:
        prefetch(alpha, i)
        prefetch(alpha_past, i)


@helper
def _squared_length(part, before, along, push):
    """||s - part u||^2 from ||u||^2, u.s and ||s||^2: short moves of a long u do not cancel."""
    return max(0.0, part * (part * before - 2.0 * along) + push)


@helper
def _fold(x, scale, held):
    """Multiply the scale into v and alpha, and what is held into the average; the scale."""
    for j in range(x.past.shape[0]):
        x.past[j] += held * x.v[j]
    for j in range(x.v.shape[0]):
        x.v[j] *= scale
    for i in range(x.alpha.shape[0]):
        x.alpha_past[i] += held * x.alpha[i]
        x.alpha[i] *= scale
    return scale
