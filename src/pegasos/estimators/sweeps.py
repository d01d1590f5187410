"""Which problems are swept together, in which order, and what becomes of their answers."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pegasos.core.lanes import LANES, LINES
from pegasos.core.rows import n_columns
from pegasos.core.zeros import without_zeros
from pegasos.objective.problem import Problem, make_problem
from pegasos.solvers.auto import Choice, descent_budget
from pegasos.solvers.driver import Progress, Run
from pegasos.solvers.lane_moves import has_moves
from pegasos.solvers.lanes import Found, Goal, Lane, Many, descend

if TYPE_CHECKING:
    from pegasos.estimators.one_vs_all import Task

log = logging.getLogger("pegasos")

SEVERAL = 3  # problems: fewer are faster one by one
SPAN = 100.0  # between values of C in a group: they share the scale of a free intercept
LEAST_TOL = 1e-4  # beyond it float32 does not lead
SHARED = 4  # passes of eight lanes for one that a problem would be given alone
STEADY = 40  # the same with second-order steps
MOST_EPOCHS = 500  # together; what is slower goes on alone, and may change its solver
WIDE = 1 << 15  # columns, of which a line of weights each is a megabyte
FEW = 3  # lanes that take longer together than alone, where that is descent as well


class Swept(NamedTuple):
    """What a state tells at the end of a run, kept in its place."""

    epoch: int
    choice: Choice | None


Answers = dict[tuple[int, int], Found]  # of (fit, problem)


def shared_problem(task: Task) -> Problem | None:
    """What all problems share, if they may be swept together; weights as for C = 1."""
    settled = task.solver != "auto" or task.stop.rules or task.watch or task.starts is not None
    if settled or task.stop.max_epochs < 2:
        return None
    y = np.ones(len(task.label))
    return make_problem(task.rows, y, task.c, task.loss, None, task.free)


def goal_of(task: Task, deadline: float, budget: float, few: int = 0) -> Goal:
    """The goal of lanes of which the slowest has a budget of passes alone; if that has no end, no
    other method follows, and the last few of a group go on alone."""
    shared = STEADY if has_moves(task.loss) else SHARED
    limit = min(MOST_EPOCHS, task.stop.max_epochs - 1, shared * budget)
    few = few if np.isinf(budget) else 0
    return Goal(max(task.stop.tol, LEAST_TOL), int(limit), deadline, few)


def sweep_path(task: Task, Cs: list[float], deadline: float) -> tuple[Answers, bool]:
    """Answers for (value, problem) where descent is the method; whether Ctrl-C came."""
    shared = task.shared()
    if shared is None:
        return {}, False
    budgets = [descent_budget(shared._replace(c=C * task.c), task.stop.tol) for C in Cs]
    chosen = [j for j, budget in enumerate(budgets) if budget]
    places = [(j, k) for j in chosen for k in range(len(task.targets))]
    lanes = [Lane(task.targets[k], Cs[j], task.centers[k], task.c) for j, k in places]
    goal = goal_of(task, deadline, max(budgets), FEW)
    return sweep(Many(shared, task.label, lanes), places, goal, task.seed)


def sweep(many: Many, places: list[tuple[int, int]], goal: Goal, seed: int) -> tuple[Answers, bool]:
    """Answers of lanes by their places: the largest values of C, which take longest, come first.

    Values apart by little want the same rows, so they are swept together.
    """
    if len(places) < SEVERAL:
        return {}, False
    shared = many.shared
    groups = _groups([lane.C for lane in many.lanes], n_columns(shared.rows))
    many = many._replace(shared=shared._replace(rows=without_zeros(shared.rows)))
    found, interrupted = descend(many, groups, goal, seed)
    answers = {place: answer for place, answer in zip(places, found, strict=True) if answer}
    return answers, interrupted


def _groups(Cs: list[float], columns: int) -> list[list[int]]:
    """Places of falling values, in groups of about one size that do not reach beyond SPAN.

    Groups of one value take about as long as each other, so their number is even, for two threads,
    and if no cache holds their weights, two lines of these share a line of it.
    On a path the first, for which all others wait, has no more than its part.
    """
    order = sorted(range(len(Cs)), key=lambda p: -Cs[p])
    count = -(-len(order) // LANES)
    if len(set(Cs)) == 1:
        count = -(-count // (LINES if columns > WIDE else 1))
        count += count % 2
        parts = np.array_split(order, count if len(order) > LANES else 1)
        return [part.tolist() for part in parts]
    size = -(-len(order) // count)
    first = len(order) // count if len(set(Cs)) == len(Cs) else size
    groups: list[list[int]] = []
    for p in order:
        full = first if len(groups) == 1 else size
        if not groups or len(groups[-1]) == full or Cs[p] * SPAN < Cs[groups[-1][0]]:
            groups.append([])
        groups[-1].append(p)
    return groups


def run_of(answer: Found, began: float) -> Run:
    """The run that a lane has been."""
    proof = answer.best.certificate
    seconds = time.perf_counter() - began
    log.info("%d epochs  %.2f s  gap %.1e", answer.epochs, seconds, proof.relative_gap)
    choice = Choice("dual", f"{answer.epochs} epochs together with other problems")
    history = [Progress(answer.epochs, seconds, proof.gap, proof, "gap")]
    return Run(answer.best, history, "gap", Swept(answer.epochs, choice))
