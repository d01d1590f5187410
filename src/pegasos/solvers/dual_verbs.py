"""What `solvers.dual` asks of a problem: a kind of problem registers these verbs.

Those of one class against another are here, those of several classes in `solvers.crammer_singer`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pegasos.core.dispatch import generic
from pegasos.core.jit import hot
from pegasos.core.matrix import combine, products
from pegasos.core.rows import n_entries, n_rows
from pegasos.objective.losses import domain, parabola, value
from pegasos.objective.problem import Problem
from pegasos.solvers.steps import Place, Tally, settled, steps
from pegasos.solvers.team import frequent_columns, pace_of, team_steps

SLICE = 1 << 24  # entries between two returns to Python: below 0.1 s


@generic
def start(problem: Any, alpha: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """A feasible alpha, near the one that is given if any, and w(alpha)"""


@generic
def bend(problem: Any) -> tuple[float, float]:
    """k and r of `solvers.moves` if the dual is quadratic, else NaN"""


@generic
def meeting_columns(problem: Any) -> np.ndarray:
    """The columns in which threads meet often"""
    return np.empty(0, dtype=np.int64)


@generic
def advance(problem: Any, place: Place, span: tuple[int, int], threads: int) -> tuple[int, Tally]:
    """Steps on rows order[first:last] of the span, or on some of them; how many, and their sums"""


@generic
def is_shared(problem: Any, place: Place, active: int, threads: int) -> bool:
    """Whether threads share an epoch of so many rows"""
    return False


@generic
def scores(problem: Any, w: np.ndarray) -> np.ndarray:
    """What `part` goes by, of all rows at w"""


@generic
def part(problem: Any, place: Place, margins: np.ndarray) -> float:
    """Set rows aside whose exact margins say so; their loss"""


@start.register(Problem)
def _(problem, alpha):
    if alpha is None:
        return np.zeros(n_rows(problem.rows)), problem.center.copy()
    low, high = domain(problem.loss)
    alpha = np.clip(alpha, low * problem.c, high * problem.c)
    return alpha, problem.center + combine(problem.rows, problem.y * alpha)


@bend.register(Problem)
def _(problem):
    return parabola(problem.loss)


@meeting_columns.register(Problem)
def _(problem):
    return frequent_columns(problem)


@advance.register(Problem)
def _(problem, place, span, threads):
    """By one thread or by all."""
    first, end = span
    length = max(1, SLICE * n_rows(problem.rows) // max(1, n_entries(problem.rows)))
    pace = pace_of(problem, place, end, threads)
    if pace:
        last = min(end, first + threads * length)
        return last - first, team_steps(problem, place, (first, last), pace, threads)
    last = min(end, first + length)
    return last - first, Tally(*_sweep(problem, place, first, last))


@is_shared.register(Problem)
def _(problem, place, active, threads):
    return pace_of(problem, place, active, threads) is not None


@scores.register(Problem)
def _(problem, w):
    return problem.y * products(problem.rows, w)


@part.register(Problem)
def _(problem, place, margins):
    return _part(problem, place, margins)


@hot
def _part(problem, place, margins):
    """Set rows aside; returns their loss."""
    alpha, c = place.alpha, problem.c
    aside = 0.0
    for i in range(alpha.shape[0]):
        slack = place.radius * np.sqrt(problem.q[i])
        if settled(problem.loss, alpha[i] / c[i], margins[i], slack):
            place.stays[i] = False
            aside += c[i] * value(problem.loss, margins[i])
    return aside


@hot
def _sweep(problem, place, first, last):
    return steps(problem, place, place.w, first, last)
