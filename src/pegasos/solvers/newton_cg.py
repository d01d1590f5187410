"""Truncated Newton method for losses with curvature, on tall and on wide data.

Problem:  min_w 1/2 ||w - w0||_R^2 + sum_i c_i l(z_i),  R = I, but 0 for a free intercept
Response: a_i = -c_i l'(z_i), v = sum_i a_i y_i x_i; the gradient is g = R (w - w0) - v
Update:   H d = -g, H = R + X' diag(h) X, h_i = c_i l''(z_i), by conjugate gradients until the
          residual is a tenth of g in the norm of a preconditioner M; then w <- w + t d with t
          from the derivative along d, for which the scores suffice
M:        H itself, factored, where that is less work than a few products with H, and then no
          iterations are needed; else an H of an earlier step or of the sample, renewed when the
          last step took longer than a new one; the diagonal of H if there are too many columns.
Start:    the same method on a sample of the rows, their weights scaled up, until its steps gain
          less than the error of the sample, which is then all that is left to do.
Stopping: `estimate` = P(w) - D(a) = 1/2 ||g||^2, and what the imbalance of a free intercept costs;
          or P(w) - D of the response that the step foretold, a - t diag(h) X d (y left out),
          whose v is the new w - w0 but for what conjugate gradients left and for its clipping:
          near the optimum it is better than the response at w by the condition of H, and then g
          is not computed before the next step.

Lin, Weng, Keerthi, JMLR 2008 (trust region Newton); Byrd, Chin, Neveitt, Nocedal, SIAM J. Optim.
2011 (sampled Hessians).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pegasos.core.gram import gram_columns, gram_work
from pegasos.core.matrix import bent, combine, products, squares
from pegasos.core.rows import by_row, n_columns, n_rows, row_work
from pegasos.objective.certificate import Evaluation
from pegasos.objective.losses import is_piecewise_linear
from pegasos.objective.problem import Problem
from pegasos.solvers.linalg import diagonal_of, factored, solved
from pegasos.solvers.newton import followed, penalties
from pegasos.solvers.newton_cg_small import small_step
from pegasos.solvers.newton_cg_state import Direction, NewtonCGState, Preconditioner, Response
from pegasos.solvers.newton_start import is_short, started
from pegasos.solvers.responses import FLAT, Responses, foretold, next_length, responses_along
from pegasos.solvers.sample import sampled, stride
from pegasos.solvers.small import is_small

MAX_COLUMNS = 2000  # beyond, a d x d matrix costs more than it gives
_RESIDUAL = 0.1  # of the gradient, where conjugate gradients stop
_MOST = 60  # of their iterations in one step
_NEAR = 0.01  # of the objective: with such a gap the a that was foretold is the one to take
_ALONE = 5e5  # nanoseconds of a matrix: two threads make a larger one sooner
_USUAL = 4.0  # of their iterations with an M that is about right


@dataclass(frozen=True)
class NewtonCG:
    """Truncated Newton method; `sampling`: whether to begin with a sample of the rows."""

    sampling: bool = True

    def init(self, problem: Problem, seed: int, alpha: np.ndarray | None = None) -> NewtonCGState:
        if is_piecewise_linear(problem.loss):
            raise ValueError(
                "solver='newton_cg' needs a loss with curvature (squared hinge, logistic); "
                "for hinge and pinball take 'dual', 'newton' or 'interior'"
            )
        w, at = problem.center.copy(), None
        if alpha is not None:
            w += penalties(problem) * combine(problem.rows, problem.y * alpha)
            at = _respond(problem, w, products(problem.rows, w))
        return NewtonCGState(w, at, None, _USUAL, 0.0, 0, False)

    def step(self, problem: Problem, state: NewtonCGState) -> NewtonCGState:
        """A Newton step on all rows, the first after those on a sample."""
        if state.at is None:
            if self.sampling:
                state = _from_sample(problem, state)
            at = _respond(problem, state.w, products(problem.rows, state.w))
            state = state._replace(at=at)
        if _is_small(problem):
            return small_step(problem, state, _NEAR)
        return _newton_step(problem, state)

    def candidate(self, problem: Problem, state: NewtonCGState) -> tuple[np.ndarray, np.ndarray]:
        at = state.at
        if at is None:
            at = _respond(problem, state.w, products(problem.rows, state.w))
        return at.alpha, state.w

    def refresh(self, problem: Problem, state: NewtonCGState, seen: Evaluation) -> NewtonCGState:
        return state


def _too_wide(problem: Problem) -> bool:
    return n_columns(problem.rows) > MAX_COLUMNS and by_row(problem.rows)


def _from_sample(problem: Problem, state: NewtonCGState) -> NewtonCGState:
    """The state at the w of a sample, with its M; as it was where a sample would be too large."""
    n, d = n_rows(problem.rows), n_columns(problem.rows)
    every = stride(problem)
    if _too_wide(problem) or every < 2:
        return state
    part = sampled(problem, every)
    columns = gram_columns(problem.rows)  # of all rows
    used = Preconditioner(columns, penalties(problem), None)
    noise = max(3e-3, 0.5 * d * every / n)  # the error of the sample, as a share
    if is_short(part):
        w, at = started(part, state.w, used.diagonal, noise), None
    else:
        w, at, used = _stepped(part, state._replace(M=used), noise)
    if not gram_work(problem.rows) <= _USUAL * _product_work(problem):  # then M will be used
        used = _preconditioner(part, at or _respond(part, w, products(part.rows, w)), used)
    return state._replace(w=w, M=used._replace(curvature=None))  # that of other rows


def _stepped(part: Problem, state: NewtonCGState, noise: float):
    """w, the response there and M after steps, until one gains less than `noise` of P."""
    at = _respond(part, state.w, products(part.rows, state.w))
    state, before = state._replace(at=at), np.inf
    while before - at.objective > noise * at.objective and state.epoch < 30:
        before = at.objective
        state = _newton_step(part, state, proving=False)
        assert state.at is not None
        at = state.at
    return at.w, at, state.M


def _product_work(problem: Problem) -> float:
    """The time of H x in nanoseconds, about; what Python adds to it included."""
    return 1e5 + 2.0 * n_rows(problem.rows) * (row_work(problem.rows) + 5.0)


def _newton_step(problem: Problem, state: NewtonCGState, proving: bool = True) -> NewtonCGState:
    assert state.at is not None
    at, M = _with_gradient(problem, state.at), state.M
    assert at.gradient is not None
    try:
        if M is None or _due(problem, state):
            M = _preconditioner(problem, at, M)
        if M is state.M or M.factor is None:
            towards = _conjugate_gradients(problem, at, M)
        else:
            towards = Direction(-_solved(M, at.gradient), np.zeros_like(at.gradient), 0)
    except np.linalg.LinAlgError:
        return state._replace(epoch=state.epoch + 1, exhausted=True)
    moved, t = _moved(problem, at, towards.d)
    if proving and t > 0.0:
        moved = _foretold(problem, at, moved, (1.0 - t) * at.gradient + t * towards.rest)
    if proving and not moved.gap < _NEAR * moved.objective:
        moved = _with_gradient(problem, moved)
    better = moved.objective < at.objective or moved.gap < at.gap
    return state._replace(
        w=moved.w,
        at=moved,
        M=M,
        last=max(_USUAL, towards.products),
        passes=state.passes + towards.products + 3.0,
        epoch=state.epoch + 1,
        exhausted=not better,
    )


def _is_small(problem: Problem) -> bool:
    """Whether a step is one compiled loop, with a matrix of its own."""
    work = gram_work(problem.rows)
    worth = work <= _USUAL * _product_work(problem) and work <= _ALONE
    return worth and not _too_wide(problem) and is_small(problem)


def _due(problem: Problem, state: NewtonCGState) -> bool:
    """Whether to make M anew: there is none, or it costs less than the last step's iterations."""
    if state.M is None or state.M.factor is None:
        return True
    return gram_work(problem.rows) <= state.last * _product_work(problem)


def _preconditioner(problem: Problem, at: Response, last: Preconditioner | None) -> Preconditioner:
    """M at w."""
    R = penalties(problem)
    if _too_wide(problem):
        diagonal = R + squares(problem.rows, at.h)
        return Preconditioner(np.arange(0), np.where(diagonal > 0.0, diagonal, 1.0), None)
    known = last is not None and last.columns.size > 0
    columns = last.columns if last is not None and known else gram_columns(problem.rows)
    before = None if last is None else last.curvature
    bend = followed(problem, before, at.h, 1.0, columns)
    H = bend.G.copy()
    diagonal_of(H)[:] += R[columns]
    return Preconditioner(columns, R, factored(H), bend)


def _solved(M: Preconditioner, r: np.ndarray) -> np.ndarray:
    """M^-1 r; in an empty column 0, so that w stays at w0."""
    if M.factor is None:
        return r / M.diagonal
    x = np.zeros_like(r)
    x[M.columns] = solved(M.factor, r[M.columns])
    return x


def _conjugate_gradients(problem: Problem, at: Response, M: Preconditioner) -> Direction:
    """d with H d = -g, nearly."""
    assert at.gradient is not None
    R = penalties(problem)
    d, r = np.zeros_like(at.w), -at.gradient
    s = _solved(M, r)
    p, size = s, float(r @ s)
    enough, k = _RESIDUAL**2 * size, 0
    while size > enough and k < _MOST:
        Hp = R * p + bent(problem.rows, at.h, p)
        t = size / float(p @ Hp)
        d += t * p
        r -= t * Hp
        s = _solved(M, r)
        last, size = size, float(r @ s)
        p = s + (size / last) * p
        k += 1
    return Direction(d, -r, k)


def _moved(problem: Problem, at: Response, d: np.ndarray) -> tuple[Response, float]:
    """The response at w + t d and t, lower and where the derivative along d has nearly vanished.

    t = 1 first; beyond it while the derivative falls, since far from the optimum the steps of the
    logistic loss are short.
    """
    along, shrink = products(problem.rows, d), penalties(problem) * d
    d0, d1 = float((at.w - problem.center) @ shrink), float(d @ shrink)
    start = float(at.gradient @ d)
    t, bracket = 1.0, (0.0, np.inf, start, np.inf)
    for k in range(60 if start < 0.0 else 0):
        found = responses_along(problem, at.scores, along, t)
        tilt = d0 + t * d1 - found.pull
        beyond = tilt > 0.0  # then the value decides
        if abs(tilt) <= -FLAT * start or (t >= 8.0 and not beyond):
            moved = _arrived(problem, at.w + t * d, found)
            if not beyond or moved.objective <= at.objective + 1e-14 * abs(at.objective):
                return moved, t
        t, bracket = next_length(k, t, tilt, bracket)
    return at, 0.0


def _respond(problem: Problem, w: np.ndarray, scores: np.ndarray) -> Response:
    return _arrived(problem, w, responses_along(problem, scores, scores, 0.0))


def _arrived(problem: Problem, w: np.ndarray, found: Responses) -> Response:
    """The response from what was found at the scores of w."""
    away = penalties(problem) * (w - problem.center)
    objective = 0.5 * float(away @ away) + found.losses
    return Response(w, found.scores, found.a, found.h, objective, np.inf, found.a)


def _with_gradient(problem: Problem, at: Response) -> Response:
    """With the gradient, and the gap of a if that is the better dual point."""
    if at.gradient is not None:
        return at
    away = penalties(problem) * (at.w - problem.center)
    gradient = away - combine(problem.rows, problem.y * at.a)
    gap = 0.5 * float(gradient @ gradient)
    if problem.free:  # an unbalanced a costs about what it must give up
        gap += abs(float(gradient[-1]) / problem.rows.bias) - 0.5 * float(gradient[-1]) ** 2
    at = at._replace(gradient=gradient)
    return at._replace(gap=gap, alpha=at.a) if gap < at.gap else at


def _foretold(problem: Problem, at: Response, to: Response, rest: np.ndarray) -> Response:
    """`to` with the a that was foretold at `at`, made feasible.

    `rest` is its gradient before it is made feasible.
    """
    told = foretold(problem, at.a, at.h, at.scores, to.scores)
    if told.shift.any():
        rest = rest - combine(problem.rows, told.shift)
    v = penalties(problem) * (to.w - problem.center - rest)
    bound = -0.5 * float(v @ v) - float(problem.center @ v) - told.conjugates
    gap = abs(to.objective - bound)
    return to._replace(gap=gap, alpha=told.alpha) if gap < to.gap else to
