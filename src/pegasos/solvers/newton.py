"""Newton's method for tall data (rows >> columns): d x d normal equations.

Problem:  min_w 1/2 ||w - w0||_R^2 + sum_i c_i l(z_i),  R = I, but 0 for a free intercept
Response: a_i(z) = -c_i l'(z)                           (smooth loss)
          a_i(z) = dual_step(l, alpha_i, z, q, c_i)     (piecewise linear loss, q > 0)
Update:   (R + X' diag(h) X) dw = -(R (w - w0) - X' diag(y) a),  h_i = -a_i'(z_i),
          then a line search on the derivative along dw.
Outer:    a loss without curvature is smoothed by the proximal term q/2 (a - alpha)^2 of the
          augmented Lagrangian: when the inner problem is solved well enough, alpha <- a and
          q <- q / 3, or q / 9 and q / 5 after one and two inner steps. The smooth case is q = 0 and
          needs no outer loop: the same code.
Start:    w = w0; or, without curvature and with many rows, the w of an eighth of the rows, which
          spares the first two outer steps.
Stopping: `estimate` = P(w) - D(a).

Mangasarian 2002 and Keerthi & DeCoste 2005 (squared hinge); Li, Sun, Toh 2018 (SsNAL).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from pegasos.core.gram import gram, gram_columns
from pegasos.core.jit import hot
from pegasos.core.matrix import combine, products
from pegasos.core.rows import is_single, n_columns, n_rows
from pegasos.core.tile import tiled
from pegasos.objective.certificate import Evaluation
from pegasos.objective.losses import domain, is_piecewise_linear
from pegasos.objective.problem import Problem
from pegasos.solvers.linalg import diagonal_of, factor
from pegasos.solvers.newton_small import Reached, is_there, next_try, reached, weighed
from pegasos.solvers.responses import proximal_pull, proximal_responses
from pegasos.solvers.sample import SHARE, sampled, stride
from pegasos.solvers.small import Room, begun, is_precise, is_small, most_changed, room_for

_MANY = 8192  # rows, from which a sample saves time
_BEGUN = -1  # inner steps, where a sample is to come first
_SOLVED = 0.2  # of the gap: with a residual below the inner problem is solved well enough
_FASTER = {1: 2.0, 2: 1.5}  # the power of `growth` after so many inner steps


class Curvature(NamedTuple):
    """G = X' diag(u) X, kept between steps: few of the u change from one step to the next.

    `mass` is the largest sum u_i ||x_i||^2 behind G, the measure of its rounding errors. Of a small
    table G is the lower triangle over all columns, in whole tiles.
    """

    u: np.ndarray
    G: np.ndarray
    mass: float
    dtype: type


class NewtonState(NamedTuple):
    """w and its scores X w; proximal centre alpha and weight q; at w the response a, h, X'ya, and
    what these leave of the gradient, as a part of the gap."""

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
    residual: float
    epoch: int
    exhausted: bool
    room: Room | None = None  # to work in, for one thread at a time: nothing is remembered

    @property
    def passes(self) -> float:
        """The work done: each step is one over all rows."""
        return float(self.epoch)


@dataclass(frozen=True)
class Newton:
    """Newton's method; `growth` divides q after an outer step (its square after one inner step, its
    power 1.5 after two), `patience` bounds inner steps.

    `sampling`: whether to begin with a sample of the rows, if the loss has no curvature.
    """

    growth: float = 3.0
    patience: int = 30
    sampling: bool = True

    def init(
        self,
        problem: Problem,
        seed: int,
        alpha: np.ndarray | None = None,
        w: np.ndarray | None = None,
    ) -> NewtonState:
        """From alpha and w; without a w from that of alpha."""
        q = 2.0 if alpha is None else 1.0
        cold = alpha is None and w is None
        if alpha is None:
            alpha, v = np.zeros(n_rows(problem.rows)), np.zeros_like(problem.center)
        else:
            v = combine(problem.rows, problem.y * alpha)
        if w is None:
            w = problem.center + penalties(problem) * v
        q = q / float(np.median(problem.c)) if is_piecewise_linear(problem.loss) else 0.0
        scores = products(problem.rows, w) if w.any() else np.zeros(n_rows(problem.rows))
        used = gram_columns(problem.rows)
        state = NewtonState(
            w, scores, alpha, q, alpha, alpha, v, used, None, 0, np.inf, np.inf, np.inf, 0, False
        )
        if cold and self.sampling and q > 0.0 and begins_on_sample(problem):
            return state._replace(inner=_BEGUN)
        return _respond(problem, state)

    def step(self, problem: Problem, state: NewtonState) -> NewtonState:
        """An inner step, after an outer one if the inner problem is solved well enough."""
        if state.inner == _BEGUN:
            state = self._from_sample(problem, state)
        if state.q > 0.0 and self._inner_done(state):
            q = state.q / self._divisor(state.inner)
            state = state._replace(alpha=state.response, q=q, inner=0)
            state = _respond(problem, _from_scratch(state))
        try:
            moved, still = (_gone_small if is_small(problem) else _gone)(problem, state)
        except np.linalg.LinAlgError:
            return state._replace(epoch=state.epoch + 1, exhausted=True)
        stuck = still and (state.q == 0.0 or np.array_equal(state.response, state.alpha))
        inner = self.patience if still else state.inner + 1
        return moved._replace(inner=inner, epoch=state.epoch + 1, exhausted=stuck)

    def _from_sample(self, problem: Problem, state: NewtonState) -> NewtonState:
        """The state at the w of a sample, with q for the error of that.

        The proximal centre is the middle of the box: rows beside the kink have their bounds as
        response then, and those about it the curvature that w asks for. All of it is one step:
        on an eighth of the rows it takes as long as a few.
        """
        part, solver = sampled(problem, SHARE), replace(self, sampling=False)
        inner = solver.init(part, 0)
        while inner.estimate > 0.1 * inner.objective and inner.epoch < 30 and not inner.exhausted:
            inner = solver.step(part, inner)
        error = n_columns(problem.rows) * SHARE / n_rows(problem.rows)
        q = min(max(2.0 / 9.0, 40.0 * error), 2.0 / 3.0) / float(np.median(problem.c))
        low, high = domain(problem.loss)
        middle, scores = 0.5 * (low + high) * problem.c, products(problem.rows, inner.w)
        begun = state._replace(w=inner.w, scores=scores, alpha=middle, q=q, inner=0)
        return _respond(problem, begun)

    def _inner_done(self, state: NewtonState) -> bool:
        enough = state.residual <= _SOLVED * state.estimate or state.inner >= self.patience
        return state.inner > 0 and enough

    def _divisor(self, inner: int) -> float:
        """Of q, after so many inner steps: more where a few have done."""
        return 1.0 if inner >= self.patience else self.growth ** _FASTER.get(inner, 1.0)

    def candidate(self, problem: Problem, state: NewtonState) -> tuple[np.ndarray, np.ndarray]:
        return state.response, state.w

    def refresh(self, problem: Problem, state: NewtonState, seen: Evaluation) -> NewtonState:
        return state


def begins_on_sample(problem: Problem) -> bool:
    """Whether rows are many, and a sample of them many for each column; if there is no curvature.

    Smooth losses have `newton_cg` for that.
    """
    n, bounded = n_rows(problem.rows), np.isfinite(domain(problem.loss)).all()
    return bool(bounded) and n >= _MANY and stride(problem) == SHARE


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
    other = last is not None and last.G.shape != (columns.size,) * 2  # of a small table
    if last is not None and (other or _most_changed(last.u, u)):
        last = None
    if last is not None:
        mass = max(mass, last.mass)
    single = is_single(problem.rows) and not problem.free
    dtype = np.float64 if is_precise(single, mass, unit) else np.float32
    if last is None or last.dtype != dtype:
        G = gram(problem.rows, u, dtype, columns)
        return Curvature(u, G, float(u @ problem.q), dtype)
    G = gram(problem.rows, u - last.u, dtype, columns)
    G += last.G
    return Curvature(u, G, mass, dtype)


@hot
def _most_changed(before, now):
    changed, used = 0, 0
    for i in range(now.shape[0]):
        changed += now[i] != before[i]
        used += now[i] != 0.0
    return most_changed(changed, used)


def _direction(problem: Problem, state: NewtonState, H, gradient: np.ndarray) -> np.ndarray:
    """Newton's; in an empty column 0, so that w stays at w0."""
    columns, d = state.columns, np.zeros_like(gradient)
    diagonal_of(H)[:] += penalties(problem)[columns]
    d[columns] = -factor(H)(gradient[columns])
    return d


def _line(problem: Problem, state: NewtonState, gradient, d) -> tuple[float, float, float]:
    """The derivative of the objective at w + t d is d0 + t d1 less a pull, and `start` at t = 0."""
    shrink = penalties(problem) * d
    return float((state.w - problem.center) @ shrink), float(shrink @ shrink), float(gradient @ d)


def _gone(problem: Problem, state: NewtonState) -> tuple[NewtonState, bool]:
    """The state after a step, and whether no score has moved."""
    gradient = penalties(problem) * (state.w - problem.center) - state.v
    unit = state.q if state.q > 0.0 else 1.0
    bend = followed(problem, state.curvature, state.slopes * unit, unit, state.columns)
    d = _direction(problem, state, bend.G / unit, gradient)
    along = products(problem.rows, d)
    t = _line_search(problem, state, along, _line(problem, state, gradient, d))
    moved = state._replace(w=state.w + t * d, scores=state.scores + t * along, curvature=bend)
    return _respond(problem, moved), not np.any(t * along)


def _gone_small(problem: Problem, state: NewtonState) -> tuple[NewtonState, bool]:
    """The same in one compiled loop."""
    bend, room = state.curvature, state.room or room_for(problem)
    if bend is None or bend.G.shape != (tiled(len(state.w)),) * 2:
        bend = Curvature(*begun(problem), 0.0, np.float64)
    at = Reached(state.w, state.scores, state.response, state.slopes, state.v, bend.u, bend.G)
    last = bend.mass, bend.dtype == np.float64
    to, sums = reached(problem, at, (state.alpha, state.q), last, room)
    if not sums.made:
        raise np.linalg.LinAlgError("not positive definite, whatever is added to the diagonal")
    bend = Curvature(to.u, to.G, sums.mass, np.float64 if sums.precise else np.float32)
    moved = state._replace(
        w=to.w, scores=to.scores, response=to.a, slopes=to.h, v=to.v, curvature=bend, room=room
    )
    return _told(moved, sums.weights), not sums.moved


def _respond(problem: Problem, state: NewtonState) -> NewtonState:
    """The state with response, slopes, v and gap estimate of its w."""
    state = state if state.q > 0.0 else _from_scratch(state)
    found = proximal_responses(problem, state.alpha, state.q, state.scores, state.response)
    v = state.v + combine(problem.rows, found.shift)  # most rows stay at their bounds
    state = state._replace(response=found.a, slopes=found.h, v=v)
    return _told(state, weighed(problem, state.w, v, found.losses, found.conjugates))


def _from_scratch(state: NewtonState) -> NewtonState:
    """So that v is summed up anew: the rounding of what it was would stay in it for ever, and where
    the loss has curvature every row changes anyway."""
    return state._replace(response=np.zeros_like(state.response), v=np.zeros_like(state.v))


def _told(state: NewtonState, weights: tuple[float, float, float]) -> NewtonState:
    """With what `weighed` tells of its point."""
    objective, gap, residual = weights
    return state._replace(objective=objective, estimate=gap, residual=residual)


def _line_search(problem: Problem, state: NewtonState, along: np.ndarray, line) -> float:
    """A t > 0 where the derivative along the direction has nearly vanished.

    t = 1 first; beyond it where no row is near its kink and a free intercept has no curvature.
    """
    d0, d1, start = line

    def derivative(t: float) -> float:
        return d0 + t * d1 - proximal_pull(problem, state.alpha, state.q, state.scores, along, t)

    t, bracket = 1.0, (0.0, np.inf, start, np.inf)
    for k in range(60):
        at = derivative(t)
        half = derivative(0.5 * t) if 0.0 < at <= 0.1 * abs(start) else 0.0
        if is_there(at, half, start):
            return t
        t, bracket = next_try(k, t, at, bracket)
    return bracket[0]
