"""What `solvers.dual` asks of a problem: a kind of problem registers these verbs.

Those of one class against another are here, those of several classes in `solvers.crammer_singer`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pegasos.core.dispatch import generic
from pegasos.core.jit import hot
from pegasos.core.matrix import combine, products, row_block
from pegasos.core.rows import n_entries, n_rows, row_dot, row_prefetch
from pegasos.core.threads import run_blocks
from pegasos.data.check import frozen
from pegasos.objective.losses import conjugate, domain, is_piecewise_linear, parabola, value
from pegasos.objective.problem import Problem
from pegasos.objective.stretch import ENOUGH, multiple
from pegasos.solvers.curved_moves import is_curved
from pegasos.solvers.steps import Place, Tally, settled, steps
from pegasos.solvers.team import is_worth, team_steps

_AHEAD = 4  # rows between a prefetch and the use of the row
_NOISE, _CURVED_NOISE, _GROWTH = 0.3, 0.1, 0.4  # measured on text (decision 032)
_MOST_NOISE = 0.16  # above, what is foreseen is wrong as often as right
_ONE_IN, _SAMPLE = 63, 256  # rows of a sample: one in so many, and so many at least
_ERRORS = 1.5  # standard errors that are added: a certificate that comes too early costs more
SLICE = 1 << 24  # entries between two returns to Python: below 0.1 s


@generic
def start(problem: Any, alpha: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """A feasible alpha, near the one that is given if any, and w(alpha)"""


@generic
def bend(problem: Any) -> tuple[float, float]:
    """k and r of `solvers.moves` if the dual is quadratic, else NaN"""


@generic
def weight_of(problem: Any) -> float:
    """The mean of c_i ||x_i||^2"""
    return 0.0


@generic
def noise_ahead(problem: Any, alpha: np.ndarray | None) -> float:
    """The noise of margins in a first epoch from alpha (see `solvers.steps.foreseen`); 1: they are
    taken as they are"""
    return 1.0


@generic
def sampled(problem: Any, place: Place, active: int) -> tuple[float, float]:
    """The gap at w and a little more, and the loss, as a few of the rows order[:active] tell them;
    all others are taken to be rightly aside"""
    return np.inf, np.inf


@generic
def advance(problem: Any, place: Place, span: tuple[int, int], threads: int) -> tuple[int, Tally]:
    """Steps on rows order[first:last] of the span, or on some of them; how many, and their sums"""


@generic
def is_shared(problem: Any, place: Place, active: int, threads: int) -> bool:
    """Whether threads share an epoch of so many rows"""
    return False


@generic
def part(problem: Any, place: Place, margins: np.ndarray) -> float:
    """Set rows aside whose exact margins say so; their loss"""


@generic
def recall(problem: Any, place: Place) -> float:
    """Bring back rows that are aside and that their margins at w do not set aside; others may go
    aside as well. The loss of those that are"""


@generic
def gap_at(problem: Any, place: Place, left_out: float = 0.0) -> float:
    """The gap at w, or at a better multiple of it, as the rows that stay tell it; inf: not known.
    `left_out`: ||w||^2 on columns that are not of the problem"""
    return np.inf


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


@weight_of.register(Problem)
def _(problem):
    return float(problem.c @ problem.q) / max(1, n_rows(problem.rows))


@noise_ahead.register(Problem)
def _(problem, alpha):
    """More with more weight on each row, where w is more of single rows."""
    begun = alpha is not None or problem.center.any()
    if begun or domain(problem.loss)[0] != 0.0 or is_piecewise_linear(problem.loss):
        return 1.0
    noise = (_CURVED_NOISE if is_curved(problem) else _NOISE) * weight_of(problem) ** _GROWTH
    return noise if noise < _MOST_NOISE else 1.0


@sampled.register(Problem)
def _(problem, place, active):
    step = max(1, min(_ONE_IN, active // _SAMPLE) - 1) | 1  # odd: rows come in groups of 16
    chosen = place.order[:active:step].copy()
    terms, _, squares, losses = _surveyed(problem, place, chosen, *np.empty((2, chosen.size)))
    m = max(1, chosen.size)
    error = math.sqrt(max(0.0, squares - terms * terms / m) * (1.0 - m / max(m, active)))
    return (terms + _ERRORS * error) * active / m, losses * active / m


@advance.register(Problem)
def _(problem, place, span, threads):
    """By one thread or by all."""
    first, end = span
    length = max(1, SLICE * n_rows(problem.rows) // max(1, n_entries(problem.rows)))
    if threads > 1:
        last = min(end, first + threads * length)
        return last - first, team_steps(problem, place, (first, last), threads)
    last = min(end, first + length)
    return last - first, Tally(*_sweep(problem, place, first, last))


@is_shared.register(Problem)
def _(problem, place, active, threads):
    return is_worth(problem, place, active, threads)


@part.register(Problem)
def _(problem, place, margins):
    return _part(problem, place, margins)


@recall.register(Problem)
def _(problem, place):
    """Products with all rows in their order take no longer than with those aside here and there."""
    return _recall(problem, place, problem.y * products(problem.rows, place.w))


@gap_at.register(Problem)
def _(problem, place, left_out=0.0):
    """Of a row aside the term of the gap is 0, and its loss is c l(z) - (s - 1) alpha z at s w."""
    chosen = np.flatnonzero(place.stays)
    z, c = np.empty((2, chosen.size))
    terms, pulls, _, _ = _surveyed(problem, place, chosen, z, c)
    size = float(place.w @ place.w) + left_out
    line = size, pulls - size
    c = frozen(c)  # as that of a certificate: one compiled loop for both
    s = multiple(problem.loss, c, z, line, ENOUGH * terms)
    return terms - _lowered(problem.loss, c, z, line, s)


def _surveyed(problem: Any, place: Place, chosen: Any, z: Any, c: Any) -> tuple[float, ...]:
    """`_survey` by threads."""

    def piece(s: int, e: int) -> tuple[float, float, float, float]:
        return _survey(problem, place, chosen[s:e], z[s:e], c[s:e])

    found = run_blocks(piece, chosen.size, row_block(problem.rows))
    if len(found) == 1:
        return found[0]
    return tuple(sum(each[k] for each in found) for k in range(4))


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
def _recall(problem, place, margins):
    alpha, c = place.alpha, problem.c
    aside = 0.0
    for i in range(alpha.shape[0]):
        if place.stays[i]:
            continue
        slack = place.radius * np.sqrt(problem.q[i])
        if settled(problem.loss, alpha[i] / c[i], margins[i], slack):
            aside += c[i] * value(problem.loss, margins[i])
        else:
            place.stays[i] = True
    return aside


@hot
def _survey(problem, place, chosen, margins, weights):
    """Margins and weights of the chosen rows; the sums of their terms of the gap, of alpha z, of
    the squares of the terms, and of their losses."""
    n, terms, pulls, squares, losses = chosen.shape[0], 0.0, 0.0, 0.0, 0.0
    for t in range(n):
        if t + _AHEAD < n:
            row_prefetch(problem.rows, chosen[t + _AHEAD])
        i = chosen[t]
        c, alpha = problem.c[i], place.alpha[i]
        z = problem.y[i] * row_dot(problem.rows, i, place.w)
        cost = c * value(problem.loss, z)
        term = cost + c * conjugate(problem.loss, alpha / c) + alpha * z
        losses += cost
        terms += term
        squares += term * term
        pulls += alpha * z
        margins[t], weights[t] = z, c
    return terms, pulls, squares, losses


@hot
def _lowered(loss, c, z, line, s):
    """P(w) - P(s w)"""
    a, b = line
    lower = (1.0 - s) * (0.5 * a * (1.0 + s) + b)
    for i in range(z.shape[0]):
        lower += c[i] * (value(loss, z[i]) - value(loss, s * z[i]))
    return max(0.0, lower)


@hot
def _sweep(problem, place, first, last):
    return steps(problem, place, place.w, (first, last), (0, 1.0))
