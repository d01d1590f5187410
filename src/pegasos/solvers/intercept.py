"""The free intercept around any solver that needs a penalty on every weight.

Problem:  min_{w,b} 1/2 ||w - w0||^2 + sum_i c_i l(y_i (x_i.w + b)), no penalty on b
Inner:    the same with (b - b_k)^2 / (2 rho) added: the virtual column takes the value
          s = sqrt(rho), its weight is b / s and its centre b_k / s
Update:   b_k <- b after each epoch of the inner solver: the method of multipliers on
          sum_i alpha_i y_i = 0 with b_k as multiplier and b - b_k = rho sum_i alpha_i y_i
Several:  of several classes b, b_k and the sums are vectors

Stopping: the inner estimate plus what the imbalance of alpha costs.

Rockafellar 1976 (proximal point, method of multipliers).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from pegasos.core.dispatch import generic
from pegasos.objective.certificate import Evaluation
from pegasos.objective.problem import Problem
from pegasos.solvers.driver import Stop, run
from pegasos.solvers.dual import Dual
from pegasos.solvers.dual_state import place_of
from pegasos.solvers.dual_verbs import gap_at, recall
from pegasos.solvers.excerpt import excerpted, has_excerpts, whole

WEIGHT = 0.1  # of rho, in units of the mean ||x_i||^2


def proximal_scale(norms: np.ndarray, total: float, weight: float = WEIGHT) -> float:
    """s = sqrt(rho) for rows of these ||x_i||^2 and this sum of the c_i."""
    reach = 10.0 / total  # at tiny C the multiplier must still move by 1
    return float(np.sqrt(max(weight * norms.mean(), reach)))


class InterceptState(NamedTuple):
    """The inner problem with its centre at b_k, the state of its solver, the whole estimate."""

    problem: Any
    inner: Any
    estimate: float

    @property
    def objective(self) -> float:
        return self.inner.objective

    @property
    def epoch(self) -> int:
        return self.inner.epoch

    @property
    def passes(self) -> float:
        return self.inner.passes

    @property
    def exhausted(self) -> bool:
        return self.inner.exhausted


@dataclass(frozen=True)
class FreeIntercept:
    """Proximal loop around `solver`; `weight` is rho in units of the mean ||x_i||^2."""

    solver: Dual = field(default_factory=Dual)
    weight: float = WEIGHT

    def init(self, problem: Any, seed: int, alpha: np.ndarray | None = None) -> InterceptState:
        bias = problem.rows.bias
        norms = problem.q - bias**2
        s = proximal_scale(norms, float(problem.c.sum()), self.weight)
        center = problem.center.copy()
        center[-1] *= bias / s
        inner = problem._replace(
            rows=problem.rows._replace(bias=s), q=norms + s**2, center=center, free=False
        )
        return InterceptState(inner, self.solver.init(inner, seed, alpha), np.inf)

    def after(self, epochs: int) -> FreeIntercept:
        return replace(self, solver=self.solver.after(epochs))

    def step(self, problem: Any, state: InterceptState) -> InterceptState:
        inner = self.solver.step(state.problem, state.inner)
        alpha, _ = self.solver.candidate(state.problem, inner)
        pull = float(np.abs(imbalance(problem, alpha)).sum())
        if inner.epoch == state.inner.epoch:
            return state._replace(inner=inner, estimate=inner.estimate + pull)
        balanced = pull <= 1e-15 * float(np.abs(alpha).sum())
        inner = inner._replace(exhausted=inner.exhausted and balanced)
        inner = self._recentered(state.problem, inner, np.copy(inner.w[-1]))
        return InterceptState(state.problem, inner, inner.estimate + pull)

    def _recentered(self, inner_problem: Any, inner: Any, b: np.ndarray) -> Any:
        """Move the centre of the virtual weight to b; w = w0 + v moves with it.

        The move at hand is then worth less or more, by what it has done to v.
        """
        v, shift = inner.w[-1] - inner_problem.center[-1], b - inner_problem.center[-1]
        inner.w[-1] += shift
        inner_problem.center[-1] = b
        if inner.past is None:
            return inner
        return inner._replace(gain=inner.gain - float(np.vdot(shift, v - inner.past.v[-1])))

    def candidate(self, problem: Any, state: InterceptState) -> tuple[np.ndarray, Any]:
        alpha, _ = self.solver.candidate(state.problem, state.inner)
        return alpha, proposed(problem, state.inner.w, state.problem.rows.bias)

    def refresh(self, problem: Any, state: InterceptState, seen: Evaluation) -> InterceptState:
        """Go on from what an exact evaluation found."""
        inner_problem, inner = state.problem, whole(state.inner)
        w = corrected(problem, inner_problem, inner.alpha, seen)
        if w is None:
            return state._replace(
                inner=self.solver.refresh(inner_problem, inner, seen._replace(w=inner.w))
            )
        inner = self.solver.refresh(inner_problem, inner, seen._replace(w=w))
        return state._replace(inner=inner._replace(past=None))


def rehearse(problem: Any) -> None:
    """Run every loop of descent, so that all are compiled: a small problem may end before the first
    second-order step, the first look at rows aside, and near its goal."""
    hasty = Dual(patience=1)
    solver: Any = FreeIntercept(hasty) if problem.free else hasty
    run(solver, problem, Stop(0.0, max_epochs=30))
    inner = solver.init(problem, 0).problem if problem.free else problem
    place = place_of(hasty.step(inner, hasty.init(inner, 0)))
    place.stays[0] = False
    recall(inner, place)
    gap_at(inner, place)
    if has_excerpts(inner):
        excerpted(inner, np.arange(2))


@generic
def corrected(problem: Any, inner: Any, alpha: np.ndarray, seen: Evaluation) -> np.ndarray | None:
    """Take over the balanced alpha and the best intercept; the exact w that belongs to them. None:
    descent goes on as it was"""


@corrected.register(Problem)
def _(problem, inner, alpha, seen):
    """What the balance changes is no move of descent: its past begins anew."""
    s = inner.rows.bias
    alpha[:] = seen.alpha
    b = seen.w[-1] * problem.rows.bias / s
    inner.center[-1] = b
    w = seen.w.copy()
    w[-1] = b + s * imbalance(problem, seen.alpha)
    return w


@generic
def imbalance(problem: Any, alpha: np.ndarray) -> Any:
    """What a free intercept wants to be zero: the sum of the pulls of all rows"""


@generic
def proposed(problem: Any, w: np.ndarray, bias: float) -> np.ndarray | None:
    """The point to certify, from a w for rows of this bias, where alpha does not tell all of it"""


@imbalance.register(Problem)
def _(problem, alpha):
    return float(alpha @ problem.y)


@proposed.register(Problem)
def _(problem, w, bias):
    return None
