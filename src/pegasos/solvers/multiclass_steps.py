"""Stochastic subgradient steps on the multiclass objective of Crammer and Singer.

Problem:   min_W lam/2 ||W - W0||^2 + (1/n) sum_i r_i max_k m_ik, with m_ik, r_i and lam as in
           `objective.multiclass` and `solvers.subgradient`
Update:    a row whose worst class k has m_ik > 0 pulls w_y by eta_t r_i x_i / batch and pushes w_k
           by as much; W shrinks by 1 - eta_t lam, then goes onto the ball ||W - W0|| <= 1/sqrt(lam)
Offset:    free: the same steps on b; damped: of at most 1/sqrt(t)
Dual:      the pulls of each row, scaled as W is; what is left of c_i is the share of its own class

Schedules, sampling and averages are those of the Subgradient method that is wrapped. On a stream
the state of each class is that of a binary problem, so that files and widening know no difference.

Shalev-Shwartz, Singer, Srebro, Cotter 2011, section 5; Crammer, Singer, JMLR 2001.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from pegasos.core.dispatch import helper
from pegasos.core.jit import hot_allocating
from pegasos.core.many import row_products, row_spread
from pegasos.core.matrix import all_combine, all_products
from pegasos.core.rng import shuffle, stream
from pegasos.core.rows import n_entries, n_rows, row_prefetch
from pegasos.objective.certificate import Evaluation
from pegasos.objective.multiclass import MulticlassProblem, idle, loss_sum
from pegasos.solvers.draws import draw
from pegasos.solvers.iterate import Scalars, SubgradientState
from pegasos.solvers.subgradient import SLICE, Subgradient, reach_of

_AHEAD = 3


class Held(NamedTuple):
    """What steps write: V, past of the average (on a stream), offsets and their sums; pulls of the
    rows and their past; order, scores of the rows before their steps (on a stream), generator."""

    V: np.ndarray
    past: np.ndarray
    b: np.ndarray
    b_sum: np.ndarray
    pulls: np.ndarray
    pulls_past: np.ndarray
    scores: np.ndarray
    order: np.ndarray
    rng: np.ndarray


class Sums(NamedTuple):
    """scale, ||V||^2; held and mass of the average; terms and losses of the epoch."""

    scale: float
    sqnorm: float
    held: float
    mass: float
    terms: float
    losses: float


class MulticlassState(NamedTuple):
    """Arrays and sums, X W0, steps taken, the place in the epoch."""

    arrays: Held
    sums: Sums
    base: np.ndarray
    t: int
    cursor: int
    estimate: float
    objective: float
    epoch: int
    exhausted: bool


def _state(V: np.ndarray, past: np.ndarray, base: np.ndarray, kept: bool) -> MulticlassState:
    """Before the rows behind `base`; `kept`: their pulls are written down."""
    n, K = base.shape
    by_row = np.zeros((n if kept else 0, K))
    scores = np.zeros((0 if kept else n, K))
    b = np.zeros(K)
    arrays = Held(V, past, b, b.copy(), by_row, by_row.copy(), scores, np.arange(n), stream(0))
    sums = Sums(1.0, float(np.vdot(V, V)), 0.0, 0.0, 0.0, 0.0)
    return MulticlassState(arrays, sums, base, 0, 0, np.inf, np.inf, 0, False)


@reach_of.register(MulticlassProblem)
def _(problem, base):
    """||V||^2 is at most the loss at W0, as the optimal shares say."""
    return loss_sum(problem, base) / float(problem.c.sum()) if base.any() else 1.0


@dataclass(frozen=True)
class MulticlassSteps:
    """The stochastic method for all classes in one problem."""

    method: Subgradient

    def init(self, problem: MulticlassProblem, seed: int, alpha: Any = None) -> MulticlassState:
        past = np.zeros((0, problem.n_classes))
        state = _state(np.zeros_like(problem.center), past, _base(problem), kept=True)
        return state._replace(arrays=state.arrays._replace(rng=stream(seed)))

    def step(self, problem: MulticlassProblem, state: MulticlassState) -> MulticlassState:
        """An epoch, or a slice of one."""
        n, rule = n_rows(problem.rows), self.method.rule(problem)
        if state.cursor == 0 and self.method.sampling == "permuted" and rule.k < n:
            shuffle(state.arrays.order, n, state.arrays.rng)
        entries = problem.n_classes * max(1, n_entries(problem.rows))
        count = min(max(1, SLICE * n // entries // rule.k), -(-(n - state.cursor) // rule.k))
        state = _taken(self.method, problem, state, count)
        state = state._replace(cursor=state.cursor + count * rule.k)
        return state if state.cursor < n else _end_of_epoch(state)

    def candidate(self, problem: MulticlassProblem, state: MulticlassState) -> tuple[Any, Any]:
        """The point, and the shares that its pulls leave."""
        s, x = state.sums, state.arrays
        pulls, past = s.scale * x.pulls, x.past
        if s.mass > 0.0:
            pulls = (s.held * x.pulls + x.pulls_past) / s.mass
            past = all_combine(self.method.without_column(problem).rows, x.pulls_past)
        W = problem.center + self._point(state, past, problem.rows.bias)
        return _shares(problem, pulls), W

    def refresh(self, problem: Any, state: MulticlassState, seen: Evaluation) -> MulticlassState:
        return state

    def on_stream(
        self, problem: MulticlassProblem, states: list[SubgradientState]
    ) -> tuple[list[SubgradientState], list[np.ndarray]]:
        """Steps on the rows of a batch, in their order, from the states of the classes.

        Also returns the scores of the rows before their steps, by class.
        """
        n, states = n_rows(problem.rows), _of_one_scale(states)
        ball = self.method.projection and not problem.center.any()  # as of a binary problem
        method = replace(self.method, sampling="order", tail=False, projection=ball)
        V, past = (np.column_stack([getattr(s.vectors, k) for s in states]) for k in ("v", "past"))
        state = _state(V, past, _base(problem), kept=False)
        one = states[0].scalars
        for k, each in enumerate(states):
            state.arrays.b[k], state.arrays.b_sum[k] = each.scalars.b, each.scalars.b_sum
        sums = state.sums._replace(scale=one.scale, held=one.held, mass=one.mass, losses=one.losses)
        state = state._replace(sums=sums, t=states[0].t)
        state = _taken(method, problem, state, -(-n // method.rule(problem).k))
        return [_of_class(state, old, k) for k, old in enumerate(states)], list(
            state.arrays.scores.T
        )

    def _point(self, state: MulticlassState, past: np.ndarray, bias: float) -> np.ndarray:
        s, x = state.sums, state.arrays
        averaged = s.mass > 0.0
        W = (s.held * x.V + past) / s.mass if averaged else s.scale * x.V
        if self.method.offset != "none":
            W[-1] = (x.b_sum / s.mass if averaged else x.b) / bias
        return W


def _base(problem: MulticlassProblem) -> np.ndarray:
    """X W0"""
    if problem.center.any():
        return all_products(problem.rows, problem.center)
    return np.zeros((n_rows(problem.rows), problem.n_classes))


def _of_one_scale(states: list[SubgradientState]) -> list[SubgradientState]:
    """The states as they are if they have one scale; else (after steps of each class by itself)
    with the scales multiplied into their vectors."""
    if len({(s.scalars.scale, s.scalars.held) for s in states}) == 1:
        return states
    found = []
    for state in states:
        s, x = state.scalars, state.vectors
        vectors = x._replace(v=s.scale * x.v, past=x.past + s.held * x.v)
        found.append(state._replace(vectors=vectors, scalars=s._replace(scale=1.0, held=0.0)))
    return found


def _of_class(state: MulticlassState, old: SubgradientState, k: int) -> SubgradientState:
    """The part of class k, as that of a binary problem."""
    s, x = state.sums, state.arrays
    v, past = np.ascontiguousarray(x.V[:, k]), np.ascontiguousarray(x.past[:, k])
    b, b_sum = float(x.b[k]), float(x.b_sum[k])
    scalars = Scalars(s.scale, float(v @ v), b, s.held, s.mass, b_sum, 0.0, s.losses)
    return old._replace(vectors=old.vectors._replace(v=v, past=past), scalars=scalars, t=state.t)


def _shares(problem: MulticlassProblem, pulls: np.ndarray) -> np.ndarray:
    """pi: what the other classes hold, at most c_i in all, and the rest for the own one."""
    pi = np.maximum(-pulls, 0.0)
    own = idle(problem) > 0.0
    pi[own] = 0.0
    held = pi.sum(axis=1)
    pi *= np.minimum(1.0, problem.c / np.maximum(held, problem.c))[:, None]
    pi[own] = problem.c - pi.sum(axis=1)
    return pi


def _taken(method: Subgradient, problem, state: MulticlassState, count: int) -> MulticlassState:
    """After `count` steps within the epoch."""
    base = state.base if state.arrays.scores.size == 0 else np.zeros(0)
    rule, problem = method.rule(problem, base), method.without_column(problem)
    etas, rhos = method.paces(problem, state.t, count)
    sums = Sums(*_steps(problem, rule, state, etas, rhos))
    return state._replace(sums=sums, t=state.t + count)


def _end_of_epoch(state: MulticlassState) -> MulticlassState:
    """Sums of the epoch become the estimate; ||V||^2 is computed anew."""
    s, V = state.sums, state.arrays.V
    sqnorm = float(np.vdot(V, V))
    return state._replace(
        sums=s._replace(sqnorm=sqnorm, terms=0.0, losses=0.0),
        cursor=0,
        estimate=s.terms,
        objective=0.5 * s.scale**2 * sqnorm + s.losses,
        epoch=state.epoch + 1,
    )


@hot_allocating
def _steps(problem, rule, state, etas, rhos):
    """Steps of the given lengths and weights in the average; returns the Sums."""
    rows, c, x, s = problem.rows, problem.c, state.arrays, state.sums
    V, b, order = x.V, x.b, x.order
    scale, sqnorm, held, mass, terms, losses = s.scale, s.sqnorm, s.held, s.mass, s.terms, s.losses
    n, K, k = c.shape[0], V.shape[1], rule.k
    dots, worst, step = np.empty((k, K)), np.empty(k, np.int64), np.zeros(K)
    for m in range(etas.shape[0]):
        eta = etas[m]
        first = draw(order, x.rng, rule, state.cursor + m * k, n)
        size = min(k, n - first)
        if rule.sampling != 0 and first + size + _AHEAD < n:
            row_prefetch(rows, order[first + size + _AHEAD])
        for r in range(size):
            i = order[first + r]
            row_products(rows, i, V, dots[r])
            for p in range(K):
                dots[r, p] = scale * dots[r, p] + state.base[i, p] + b[p]
            worst[r], cost = _worst(dots[r], problem.y[i])
            losses += c[i] * cost
            if x.scores.shape[0] > 0:
                x.scores[i] = dots[r]
            else:
                terms += c[i] * cost - _paid(dots[r], problem.y[i], c[i], scale, x.pulls[i])
        scale *= 1.0 - eta * rule.lam
        if not 1e-100 < abs(scale) < 1e100 or abs(held) > 1e4 * mass * abs(scale):
            sqnorm *= _fold(x, scale, held)
            scale, held = 1.0, 0.0
        damped = 1.0 if rule.offset == 1 else min(1.0, 1.0 / (eta * np.sqrt(state.t + m + 1.0)))
        for r in range(size):
            i = order[first + r]
            y, rival = problem.y[i], worst[r]
            if rival == y:
                continue
            pull = eta * rule.ratio / rule.k * c[i]
            sqnorm += _pull(problem, x, (i, y, rival), (pull / scale, held), step)
            if rule.offset != 0:
                b[y] += damped * pull
                b[rival] -= damped * pull
        after = scale * scale * max(0.0, sqnorm)
        if after > rule.radius**2:
            scale *= rule.radius / np.sqrt(after)
        held += rhos[m] * scale
        mass += rhos[m]
        for p in range(K):
            x.b_sum[p] += rhos[m] * b[p]
    return scale, sqnorm, held, mass, terms, losses


@helper
def _worst(scores, y):
    """The class of the largest m_k (y itself if none is above 0), and m_k."""
    found, most = y, 0.0
    for k in range(scores.shape[0]):
        if k != y and 1.0 + scores[k] - scores[y] > most:
            found, most = k, 1.0 + scores[k] - scores[y]
    return found, most


@helper
def _paid(scores, y, c, scale, pulls):
    """sum_k pi_k m_k with the shares that the pulls of a row leave."""
    total, held = 0.0, 0.0
    for k in range(scores.shape[0]):
        if k != y:
            share = max(0.0, -scale * pulls[k])
            held += share
            total += share * (1.0 + scores[k] - scores[y])
    return total * min(1.0, c / max(held, c))


@helper
def _pull(problem, x, row, by, step):
    """V and the pulls of a row after a step that pulls y and pushes its rival; what it adds to
    ||V||^2."""
    i, y, rival = row
    gain, held = by
    row_products(problem.rows, i, x.V, step)
    more = 2.0 * gain * (step[y] - step[rival]) + 2.0 * gain * gain * problem.q[i]
    step[:] = 0.0
    step[y], step[rival] = gain, -gain
    row_spread(problem.rows, i, step, x.V)
    if x.pulls.shape[0] > 0:
        x.pulls[i, y] += gain
        x.pulls[i, rival] -= gain
        x.pulls_past[i, y] -= held * gain
        x.pulls_past[i, rival] += held * gain
    elif held != 0.0:
        step[y], step[rival] = -held * gain, held * gain
        row_spread(problem.rows, i, step, x.past)
    return more


@helper
def _fold(x, scale, held):
    """Multiply the scale into V and the pulls, what is held into the average; scale^2."""
    if x.past.shape[0] > 0:
        x.past[:] += held * x.V
    x.V[:] *= scale
    x.pulls_past[:] += held * x.pulls
    x.pulls[:] *= scale
    return scale * scale
