"""`solver="auto"`: choose by counting work, switch when the choice does not deliver, say why.

Coordinate descent pays for C ||x||^2: it needs about 4 + 12 mean(c_i q_i) epochs to a relative
gap of 1e-3 (measured over a9a, ijcnn1, magic04, spambase, mnist, C from 0.01 to 10; within a
factor of two). Newton's method needs some twenty steps whatever C, each with a d x d Gram matrix.
Both are counted in nanoseconds of row work and compared. Only counts and gaps decide, never the
clock, so a run repeats.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pegasos.core.rows import n_columns, n_entries, n_rows, row_work
from pegasos.objective.certificate import Evaluation
from pegasos.objective.losses import Pinball, is_piecewise_linear
from pegasos.objective.problem import Problem
from pegasos.solvers.dual import Dual
from pegasos.solvers.intercept import FreeIntercept
from pegasos.solvers.interior import Interior
from pegasos.solvers.newton import Newton

MAX_COLUMNS = 2000  # beyond, a d x d matrix costs more than it gives


class Choice(NamedTuple):
    """The solver that gave the answer, and why it was used."""

    name: str
    reason: str


class AutoState(NamedTuple):
    """The solver at work and its state; `budget`: its epochs before the next one takes over."""

    solver: Any
    inner: Any
    budget: float
    spent: int
    choice: Choice
    successor: str | None

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
    return {"auto": Auto, "newton": Newton, "interior": Interior}[name]()


@dataclass(frozen=True)
class Auto:
    """Descent, Newton and the interior point, in the order that the counts suggest."""

    def init(self, problem: Problem, seed: int, alpha: np.ndarray | None = None) -> AutoState:
        name, budget, reason = _plan(problem)
        solver = solver_named(name, problem)
        inner = solver.init(problem, seed, alpha)
        return AutoState(solver, inner, budget, 0, Choice(name, reason), _successor(name, problem))

    def step(self, problem: Problem, state: AutoState) -> AutoState:
        if state.successor and (state.inner.epoch >= state.budget or state.inner.exhausted):
            state = _hand_over(problem, state, state.successor)
        return state._replace(inner=state.solver.step(problem, state.inner))

    def candidate(self, problem: Problem, state: AutoState) -> Any:
        return state.solver.candidate(problem, state.inner)

    def refresh(self, problem: Problem, state: AutoState, seen: Evaluation) -> AutoState:
        return state._replace(inner=state.solver.refresh(problem, state.inner, seen))


def _hand_over(problem: Problem, state: AutoState, name: str) -> AutoState:
    """The next solver, started from the dual point of the last one."""
    spent = f"not done after {state.inner.epoch} epochs"
    why = "could go no further" if state.inner.exhausted else spent
    reason = f"{state.choice.reason}; {state.choice.name} {why}, {name} took over"
    solver = solver_named(name, problem)
    alpha, _ = state.solver.candidate(problem, state.inner)
    inner = solver.init(problem, 0, alpha)
    budget = 300.0 if name == "newton" else np.inf
    return AutoState(
        solver, inner, budget, state.epoch, Choice(name, reason), _successor(name, problem)
    )


def _successor(name: str, problem: Problem) -> str | None:
    """Who takes over from the named solver, if anyone can."""
    if _too_wide(problem):
        return None
    if name == "dual":
        return "newton"
    return "interior" if name == "newton" and isinstance(problem.loss, Pinball) else None


def _too_wide(problem: Problem) -> bool:
    return n_columns(problem.rows) > min(MAX_COLUMNS, 4 * n_rows(problem.rows))


def _plan(problem: Problem) -> tuple[str, float, str]:
    """Solver name, its budget of epochs, and the reason in words."""
    n, d = n_rows(problem.rows), n_columns(problem.rows)
    if _too_wide(problem):
        return "dual", np.inf, f"{d} columns: too many for a d x d matrix"
    if not is_piecewise_linear(problem.loss):
        return "newton", np.inf, f"smooth loss, {n} rows of {d} columns"
    epochs = 4.0 + 12.0 * float(problem.c @ problem.q) / n
    worth = _newton_in_epochs(problem)
    reason = f"descent would take about {epochs:.0f} epochs, Newton as long as {worth:.0f}"
    if epochs < worth:
        return "dual", min(1.5 * worth, 2.0 * epochs + 10.0), reason
    if worth > 300.0:  # steps are dear: descend first, for a small part of their price
        return "dual", worth / 30.0, reason
    return "newton", 300.0, reason


def _newton_in_epochs(problem: Problem) -> float:
    """The cost of a Newton run in epochs of descent, by the work on one row (in ns)."""
    d, per_row = n_columns(problem.rows), n_entries(problem.rows) / n_rows(problem.rows)
    row = row_work(problem.rows)
    outer = min(0.033 * d * d, 0.5 * per_row**2)
    miss = 100.0 if n_entries(problem.rows) > 1 << 22 else 0.0  # rows in random order, not in cache
    return 2.0 * (6.0 * outer + 100.0 * (row + 10.0)) / (30.0 + 2.5 * row + miss)
