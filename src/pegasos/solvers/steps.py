"""The steps of dual coordinate descent on a range of rows: the one loop of `dual` and `team`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pegasos.core.dispatch import helper
from pegasos.core.prefetch import prefetch
from pegasos.core.rows import row_announce, row_axpy, row_dot, row_prefetch
from pegasos.objective.losses import conjugate, dual_step, slope, value

_AHEAD = 3  # rows between a prefetch and the use of the row
_FAR = 8  # the same for the numbers that belong to a row


class Tally(NamedTuple):
    """Where the steps ended, how many rows are active, and what they summed."""

    cursor: int
    active: int
    terms: float
    losses: float
    aside: float
    gain: float
    moves: int
    visits: int


class Place(NamedTuple):
    """What the steps go by: the point, the active rows order[:active], where they begin, the
    radius of shrinking, the kink of a loss of two lines."""

    alpha: np.ndarray
    w: np.ndarray
    order: np.ndarray
    active: int
    cursor: int
    radius: float
    kink: float


@helper
def settled(loss, a, z, slack):
    """Whether a = alpha / c is at the bound that every margin within slack of z asks for."""
    lowest, highest = slope(loss, -np.inf), slope(loss, np.inf)
    return (a == -highest and slope(loss, z - slack) == highest) or (
        a == -lowest and slope(loss, z + slack) == lowest
    )


@helper
def steps(problem, place, w, s, active, length):
    """Steps on up to `length` rows order[s:active]; a row that is settled goes to the end.

    Returns the fields of a Tally.
    """
    alpha, order, radius = place.alpha, place.order, place.radius
    loss, rows = problem.loss, problem.rows
    terms, losses, aside, gain, moves, visits = 0.0, 0.0, 0.0, 0.0, 0, 0
    while s < active and visits < length:
        visits += 1
        if s + _FAR < active:
            far = order[s + _FAR]
            row_announce(rows, far)
            prefetch(alpha, far)
            prefetch(problem.q, far)
            prefetch(problem.c, far)
            prefetch(problem.y, far)
        if s + _AHEAD < active:
            row_prefetch(rows, order[s + _AHEAD])
        i = order[s]
        c, y, q, old = problem.c[i], problem.y[i], problem.q[i], alpha[i]
        z = y * row_dot(rows, i, w)
        cost = c * value(loss, z)
        if radius < np.inf and settled(loss, old / c, z, radius * np.sqrt(q)):
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
            gain += (new - old) * (place.kink - z - 0.5 * q * (new - old))
            moves += abs(new - old) > 1e-15 * abs(new)
        s += 1
    return s, active, terms, losses, aside, gain, moves, visits
