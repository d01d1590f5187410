"""`solver="auto"`: choose by counting work, switch when the choice does not deliver, say why.

Coordinate descent pays for C ||x||^2: it needs about 4 + 12 mean(c_i q_i) passes to a relative
gap of 1e-3 (measured over a9a, ijcnn1, magic04, spambase, mnist, C from 0.01 to 10; within a
factor of two), and as many again for each further digit. Newton's method needs some twenty steps
whatever C, each with a d x d Gram matrix, or six after those on a sample; if the loss is smooth,
about four after those on a sample, each with that matrix or a few products (`newton_cg`). Both are
counted in nanoseconds of row work and compared. Descent goes on beyond its budget while
another one brings the gap down tenfold. Only counts and gaps decide, never the clock, so a run
repeats.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pegasos.core.gram import gram_work
from pegasos.core.rows import by_row, n_columns, n_entries, n_rows, row_work
from pegasos.objective.certificate import Evaluation
from pegasos.objective.losses import Pinball, is_piecewise_linear, slope
from pegasos.objective.problem import Problem
from pegasos.solvers.curved_moves import is_curved
from pegasos.solvers.dual import Dual
from pegasos.solvers.intercept import FreeIntercept
from pegasos.solvers.interior import Interior
from pegasos.solvers.newton import Newton, begins_on_sample
from pegasos.solvers.newton_cg import MAX_COLUMNS, NewtonCG
from pegasos.solvers.small import is_small

MANY_EPOCHS = {"newton": 60, "newton_cg": 300, "interior": 300}  # before this one may follow
TOGETHER = 4.0  # problems that descent solves in the time of one, where they share the rows
_USUAL_GAP, _LEAST_GAP = 1e-3, 1e-12  # relative
_COMPILED = 0.75  # of the price of a step: it is one loop
FEW_EPOCHS = 12.0  # of descent on wide data, where nothing makes epochs shorter or fewer


class Choice(NamedTuple):
    """The solver that gave the answer, and why it was used."""

    name: str
    reason: str


class AutoState(NamedTuple):
    """The solver at work and its state.

    When it has made `limit` passes, or many epochs over few rows, since `reviewed`, the next one
    takes over, unless the gap is a tenth of `mark`: then it has another `budget`.
    """

    solver: Any
    inner: Any
    budget: float
    limit: float
    mark: float
    reviewed: int
    spent: int
    choice: Choice
    successor: str | None

    def after(self, epochs: int, told: str) -> AutoState:
        """The state of a run that began elsewhere, as is `told`, and had so many epochs there."""
        solver, limit = self.solver, self.limit
        if self.choice.name == "dual":
            solver, limit = solver.after(epochs), max(0.0, limit - epochs)
        choice = self.choice._replace(reason=f"{self.choice.reason}; {told}")
        return self._replace(solver=solver, spent=epochs, limit=limit, choice=choice)

    @property
    def epoch(self) -> int:
        return self.spent + self.inner.epoch

    @property
    def estimate(self) -> float:
        return self.inner.estimate

    @property
    def objective(self) -> float:
        return self.inner.objective

    @property
    def exhausted(self) -> bool:
        return self.inner.exhausted and self.successor is None


def solver_named(name: str, problem: Problem) -> Any:
    """The solver a user asks for by name."""
    if name == "dual":
        return FreeIntercept(Dual()) if problem.free else Dual()
    return {"auto": Auto, "newton": Newton, "newton_cg": NewtonCG, "interior": Interior}[name]()


@dataclass(frozen=True)
class Auto:
    """Descent, Newton and the interior point, in the order that the counts suggest for a relative
    gap of `goal`, which the driver tells."""

    goal: float = _USUAL_GAP

    def init(
        self,
        problem: Problem,
        seed: int,
        alpha: np.ndarray | None = None,
        w: np.ndarray | None = None,
    ) -> AutoState:
        """From alpha; Newton's method also from w."""
        name, budget, reason = _plan(problem, self.goal)
        solver = solver_named(name, problem)
        inner = solver.init(problem, seed, alpha, *([w] if name == "newton" else []))
        return _begun(problem, solver, inner, budget, 0, Choice(name, reason))

    def step(self, problem: Problem, state: AutoState) -> AutoState:
        if state.successor and _due(state, state.successor):
            state = _review(problem, state, state.successor)
        return state._replace(inner=state.solver.step(problem, state.inner))

    def gap_now(self, problem: Problem, state: AutoState) -> float:
        told = isinstance(state.solver, Dual)
        return state.solver.gap_now(problem, state.inner) if told else np.inf

    def candidate(self, problem: Problem, state: AutoState) -> Any:
        return state.solver.candidate(problem, state.inner)

    def refresh(self, problem: Problem, state: AutoState, seen: Evaluation) -> AutoState:
        return state._replace(inner=state.solver.refresh(problem, state.inner, seen))


def _begun(problem, solver, inner, budget: float, spent: int, choice: Choice) -> AutoState:
    successor = _successor(choice.name, problem)
    mark = np.inf if choice.name == "dual" else 0.0
    return AutoState(solver, inner, budget, budget, mark, 0, spent, choice, successor)


def _due(state: AutoState, successor: str) -> bool:
    inner = state.inner
    often = inner.epoch - state.reviewed >= MANY_EPOCHS[successor]
    return inner.exhausted or inner.passes >= state.limit or often


def _review(problem: Problem, state: AutoState, successor: str) -> AutoState:
    """Go on with a solver that delivers, else hand over."""
    inner = state.inner
    mark = min(state.mark, 0.1 * inner.objective)
    if inner.exhausted or not inner.estimate < 0.1 * mark:
        return _hand_over(problem, state, successor)
    limit = inner.passes + state.budget
    return state._replace(limit=limit, mark=inner.estimate, reviewed=inner.epoch)


def _hand_over(problem: Problem, state: AutoState, name: str) -> AutoState:
    """The next solver, started from the dual point of the last one."""
    spent = f"not done after {state.epoch} epochs"
    why = "could go no further" if state.inner.exhausted else spent
    reason = f"{state.choice.reason}; {state.choice.name} {why}, {name} took over"
    solver = solver_named(name, problem)
    alpha, _ = state.solver.candidate(problem, state.inner)
    inner = solver.init(problem, 0, alpha)
    budget = 300.0 if name == "newton" else np.inf
    return _begun(problem, solver, inner, budget, state.epoch, Choice(name, reason))


def _successor(name: str, problem: Problem) -> str | None:
    """Who takes over from the named solver, if anyone can."""
    if name == "dual" and not is_piecewise_linear(problem.loss):
        return "newton_cg"
    if _too_wide(problem):
        return None
    if name in ("dual", "newton_cg"):
        return "newton"
    return "interior" if name == "newton" and isinstance(problem.loss, Pinball) else None


def _too_wide(problem: Problem) -> bool:
    return n_columns(problem.rows) > min(MAX_COLUMNS, 4 * n_rows(problem.rows))


def _settles(loss: Any) -> bool:
    """Whether rows far on the right side leave the epochs of descent, which then cost less."""
    return bool(slope(loss, 30.0) == slope(loss, np.inf))


def descent_budget(problem: Problem, goal: float) -> float:
    """The passes of descent to begin with where many problems share them; 0: another method."""
    name, budget, _ = _plan(problem, goal, TOGETHER)
    return budget if name == "dual" else 0.0


def begins_with_newton(problem: Problem, goal: float) -> bool:
    """Whether the answer of a neighbouring C is a good start."""
    return _plan(problem, goal)[0] == "newton"


def _plan(problem: Problem, goal: float, together: float = 1.0) -> tuple[str, float, str]:
    """Solver name, its budget of epochs, and the reason in words, for so many problems a pass."""
    n, d = n_rows(problem.rows), n_columns(problem.rows)
    smooth = not is_piecewise_linear(problem.loss)
    if not by_row(problem.rows):
        reason = "rows are computed block by block, and none by itself"
        return ("newton_cg", np.inf, reason) if smooth else ("newton", 300.0, reason)
    if _too_wide(problem):
        quick = _settles(problem.loss) or is_curved(problem)
        budget = np.inf if quick else FEW_EPOCHS
        return "dual", budget, f"{d} columns: too many for a d x d matrix"
    passes = _times(goal) * (4.0 + 12.0 * float(problem.c @ problem.q) / n)
    worth = _newton_in_passes(problem, smooth) * (1.0 if smooth else together)
    reason = f"descent would take about {passes:.0f} passes, Newton as long as {worth:.0f}"
    if passes < worth:
        return "dual", min(1.5 * worth, 2.0 * passes + 10.0), reason
    if worth > 300.0 and not smooth:  # steps are dear: descend first, for a part of their price
        return "dual", worth / 30.0, reason
    return ("newton_cg", np.inf, reason) if smooth else ("newton", 300.0, reason)


def _times(goal: float) -> float:
    """How often descent has to do what it does to the usual gap: once more for each digit."""
    return 1.0 + math.log10(_USUAL_GAP / min(max(goal, _LEAST_GAP), _USUAL_GAP))


def _newton_in_passes(problem: Problem, smooth: bool) -> float:
    """The cost of a Newton run in passes of descent, by the work on one row (in ns)."""
    d, per_row = n_columns(problem.rows), n_entries(problem.rows) / n_rows(problem.rows)
    row = row_work(problem.rows)
    miss = 100.0 if n_entries(problem.rows) > 1 << 22 else 0.0  # rows in random order, not in cache
    step = 30.0 if _settles(problem.loss) else 130.0  # which takes exponentials
    descent = step + 2.5 * row + miss
    if smooth:
        matrix = min(gram_work(problem.rows) / n_rows(problem.rows), 8.0 * row + 40.0)
        return 4.0 * (matrix + 2.0 * row + 15.0) / descent
    outer = min(0.033 * d * d, 0.5 * per_row**2)
    times = 0.5 if begins_on_sample(problem) else 1.5
    times *= _COMPILED if is_small(problem) else 1.0
    return times * (6.0 * outer + 100.0 * (row + 10.0)) / descent
