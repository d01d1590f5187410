"""Dual coordinate descent.

Problem:   min_w 1/2 ||w - w0||^2 + sum_i c_i l(y_i x_i.w)
Dual:      max_alpha D(alpha), alpha_i / c_i in the domain of l*(-a), w = w0 + sum_i alpha_i y_i x_i
Update:    alpha_i <- dual_step(l, alpha_i, z_i, ||x_i||^2, c_i), w follows at the cost of a row
Order:     a fresh random permutation of the active rows in each epoch
Shrinking: a variable at its bound leaves the epoch when its margin is further inside than
           `caution` ||x_i|| sqrt(2 gap); with caution = 1 and the true gap that is a proof that
           it stays there, since ||w - w*|| <= sqrt(2 gap). At each certificate the exact margins
           say anew who is aside.
Stopping:  `estimate`, the sum over the epoch of c_i l(z_i) + c_i l*(-alpha_i/c_i) + alpha_i z_i:
           each term is >= 0 and their sum at one w is the duality gap. The driver certifies.

Hsieh, Chang, Lin, Keerthi, Sundararajan, ICML 2008, Algorithm 3; Shalev-Shwartz, Zhang, JMLR 2013.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pegasos.core.dispatch import helper
from pegasos.core.jit import hot
from pegasos.core.matrix import combine
from pegasos.core.prefetch import prefetch
from pegasos.core.rng import shuffle, stream
from pegasos.core.rows import n_entries, n_rows, row_axpy, row_dot, row_prefetch
from pegasos.objective.certificate import Evaluation
from pegasos.objective.losses import conjugate, domain, dual_step, slope, value
from pegasos.objective.problem import Problem

_SLICE = 1 << 24  # entries between two returns to Python: below 0.1 s
_SUMS = ("terms", "losses", "aside", "moves", "visits")
_AHEAD = 3  # rows between a prefetch and the use of the row


class DualState(NamedTuple):
    """alpha and w, the active rows order[:active], the place in the epoch, what it has summed.

    `aside` is the loss of the rows that are not active, as it was when they left; `still` says
    that nothing has moved since the last exact evaluation; `visits` counts steps on rows.
    """

    alpha: np.ndarray
    w: np.ndarray
    order: np.ndarray
    rng: np.ndarray
    active: int
    cursor: int
    radius: float
    terms: float
    losses: float
    aside: float
    moves: int
    visits: int
    estimate: float
    objective: float
    epoch: int
    still: bool
    exhausted: bool

    @property
    def passes(self) -> float:
        """The work done, in passes over all rows."""
        return self.visits / len(self.order)


@dataclass(frozen=True)
class Dual:
    """Dual coordinate descent; `caution` <= 1 scales the safe shrinking radius."""

    caution: float = 0.01
    shrinking: bool = True

    def init(self, problem: Problem, seed: int, alpha: np.ndarray | None = None) -> DualState:
        n = n_rows(problem.rows)
        w = problem.center.copy()
        if alpha is not None:
            low, high = domain(problem.loss)
            alpha = np.clip(alpha, low * problem.c, high * problem.c)
            w += combine(problem.rows, problem.y * alpha)
        return DualState(
            alpha=np.zeros(n) if alpha is None else alpha,
            w=w,
            order=np.arange(n),
            rng=stream(seed),
            active=n,
            cursor=0,
            radius=np.inf,
            terms=0.0,
            losses=0.0,
            aside=0.0,
            moves=0,
            visits=0,
            estimate=np.inf,
            objective=np.inf,
            epoch=0,
            still=False,
            exhausted=False,
        )

    def step(self, problem: Problem, state: DualState) -> DualState:
        """One epoch over the active rows, or a slice of a long one."""
        if state.cursor == 0:
            shuffle(state.order, state.active, state.rng)
        n = n_rows(problem.rows)
        length = max(1, _SLICE * n // max(1, n_entries(problem.rows)))
        cursor, active, *sums = _sweep(problem, state, length)
        state = state._replace(cursor=cursor, active=active, **dict(zip(_SUMS, sums, strict=True)))
        if state.cursor < state.active:
            return state
        away = state.w - problem.center
        return state._replace(
            cursor=0,
            terms=0.0,
            losses=0.0,
            moves=0,
            estimate=state.terms,
            objective=0.5 * float(away @ away) + state.losses + state.aside,
            radius=self._radius(state.terms),
            epoch=state.epoch + 1,
            still=state.still and state.moves == 0,
            exhausted=state.moves == 0,
        )

    def _radius(self, gap: float) -> float:
        return self.caution * np.sqrt(2.0 * max(0.0, gap)) if self.shrinking else np.inf

    def candidate(self, problem: Problem, state: DualState) -> tuple[np.ndarray, None]:
        return state.alpha, None

    def refresh(self, problem: Problem, state: DualState, seen: Evaluation) -> DualState:
        """Go on from the exact w; a row whose exact margin says so stays or goes aside."""
        state.w[:] = seen.w
        state = state._replace(cursor=0, terms=0.0, losses=0.0, moves=0)
        n = n_rows(problem.rows)
        active, aside = n, 0.0
        if state.radius < np.inf:
            radius = min(state.radius, self._radius(seen.certificate.gap))
            state = state._replace(radius=radius)
            active, aside = _part(problem, state, seen.margins)
        exhausted = state.exhausted and state.still
        return state._replace(active=active, aside=aside, still=True, exhausted=exhausted)


@helper
def _settled(loss, a, z, slack):
    """Whether a = alpha / c is at the bound that every margin within slack of z asks for."""
    lowest, highest = slope(loss, -np.inf), slope(loss, np.inf)
    return (a == -highest and slope(loss, z - slack) == highest) or (
        a == -lowest and slope(loss, z + slack) == lowest
    )


@hot
def _part(problem, state, margins):
    """Order the active rows before those aside; returns their number and the loss of the rest."""
    order, alpha, c = state.order, state.alpha, problem.c
    active, aside = order.shape[0], 0.0
    s = 0
    while s < active:
        i = order[s]
        slack = state.radius * np.sqrt(problem.q[i])
        if _settled(problem.loss, alpha[i] / c[i], margins[i], slack):
            active -= 1
            order[s], order[active] = order[active], i
            aside += c[i] * value(problem.loss, margins[i])
        else:
            s += 1
    return active, aside


@hot
def _sweep(problem, state, length):
    """Steps on up to `length` rows from the cursor on; returns it, active and the sums."""
    alpha, w, order, radius = state.alpha, state.w, state.order, state.radius
    loss, rows = problem.loss, problem.rows
    s, active, moves = state.cursor, state.active, state.moves
    terms, losses, aside = state.terms, state.losses, state.aside
    visits, last = state.visits, state.visits + length
    while s < active and visits < last:
        visits += 1
        if s + _AHEAD < active:
            ahead = order[s + _AHEAD]
            row_prefetch(rows, ahead)
            prefetch(alpha, ahead)
            prefetch(problem.q, ahead)
            prefetch(problem.c, ahead)
            prefetch(problem.y, ahead)
        i = order[s]
        c, y, q, old = problem.c[i], problem.y[i], problem.q[i], alpha[i]
        z = y * row_dot(rows, i, w)
        cost = c * value(loss, z)
        if radius < np.inf and _settled(loss, old / c, z, radius * np.sqrt(q)):
            active -= 1
            order[s], order[active] = order[active], i
            aside += cost
            continue
        losses += cost
        terms += cost + c * conjugate(loss, old / c) + old * z
        new = dual_step(loss, old, z, q, c)
        if new != old:
            alpha[i] = new
            row_axpy(rows, i, (new - old) * y, w)
            moves += abs(new - old) > 1e-15 * abs(new)
        s += 1
    return s, active, terms, losses, aside, moves, visits
