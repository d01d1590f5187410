"""The steps of dual coordinate descent on a range of rows: the one loop of `dual` and `team`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pegasos.core.dispatch import helper
from pegasos.core.jit import hot
from pegasos.core.prefetch import prefetch
from pegasos.core.rows import (
    n_columns,
    n_entries,
    n_rows,
    row_announce,
    row_axpy,
    row_dot,
    row_prefetch,
)
from pegasos.objective.losses import slope, value, visit

_AHEAD = 3  # rows between a prefetch and the use of the row
_FAR = 8  # the same for the numbers that belong to a row
_CACHED, _LARGE = 1 << 18, 1 << 20  # entries that are near the processor in any order of rows
_NEAR, _NEAR_ALIKE = 16, 4  # rows that follow each other in memory
_EMPTY = 20.0  # one entry in so many is filled: text, or the like


class Tally(NamedTuple):
    """What steps on rows sum; `quarrels`: how often threads were in each other's way."""

    terms: float
    losses: float
    aside: float
    gain: float
    moves: int
    quarrels: int = 0


class Place(NamedTuple):
    """What the steps go by: the point, the order of rows, which of them stay, the radius of
    shrinking, k and r where the dual is quadratic (see `objective.losses.parabola`), the mean
    of c_i ||x_i||^2, and the noise of `foreseen`."""

    alpha: np.ndarray
    w: np.ndarray
    order: np.ndarray
    stays: np.ndarray
    radius: float
    k: float
    r: float
    weight: float
    noise: float = 1.0


@helper
def foreseen(z, share, noise):
    """What the margin z of a row that has not moved will be when all rows have, as far as w at this
    share of the first epoch tells: rows come in any order, so E w = share w(1), and what rows of
    their own put into w is noise, so many times the variance of the rest.

    A negative margin may be noise alone: it is left as it is, and so no step goes too far.
    """
    return z / (share + (1.0 - share) * noise) if z > 0.0 else z


@helper
def near_rows(rows):
    """How many neighbours are visited close to each other.

    Neighbours of a table may be alike, those of a series are: of them only a few, and only where
    memory is slow.
    """
    entries = n_entries(rows)
    if _EMPTY * entries < 1.0 * n_rows(rows) * n_columns(rows):
        return _NEAR if entries > _CACHED else 1
    return _NEAR_ALIKE if entries > _LARGE else 1


@helper
def settled(loss, a, z, slack):
    """Whether a = alpha / c is at the bound that every margin within slack of z asks for."""
    lowest, highest = slope(loss, -np.inf), slope(loss, np.inf)
    return (a == -highest and slope(loss, z - slack) == highest) or (
        a == -lowest and slope(loss, z + slack) == lowest
    )


@helper
def reach(caution, gap):
    """How far margins may move at such a gap, in units of ||x_i||, for shrinking."""
    return caution * np.sqrt(2.0 * max(gap, 0.0))


@helper
def up_to_date(terms, before, share=1.0):
    """The gap after such a share of an epoch has summed these terms, and the epoch before `before`.

    The rows to come have what those at hand had before their steps; of rows that were visited the
    terms are half an epoch old: so is the root of their fall.
    """
    level = terms / share
    if not before > 0.0:
        return level
    return level * (1.0 - share + share * np.sqrt(min(1.0, max(0.0, level / before))))


@helper
def steps(problem, place, w, span, others):
    """Steps on the rows order[first:last]; a row that is settled stays out of the next epoch.

    `others`: how many of the rows before have moves that w lacks, and how many times it moves, for
    other threads that do the like (see `solvers.team`). Returns the fields of a Tally.
    """
    (first, last), (unknown, grown) = span, others
    alpha, order, radius = place.alpha, place.order, place.radius
    loss, rows = problem.loss, problem.rows
    terms, losses, aside, gain, moves = 0.0, 0.0, 0.0, 0.0, 0
    for s in range(first, last):
        if s + _FAR < last:
            far = order[s + _FAR]
            row_announce(rows, far)
            prefetch(alpha, far)
            prefetch(problem.q, far)
            prefetch(problem.c, far)
            prefetch(problem.y, far)
        if s + _AHEAD < last:
            row_prefetch(rows, order[s + _AHEAD])
        i = order[s]
        c, y, q, old = problem.c[i], problem.y[i], problem.q[i], alpha[i]
        z = y * row_dot(rows, i, w)
        if radius < np.inf and settled(loss, old / c, z, radius * np.sqrt(q)):
            place.stays[i] = False
            aside += c * value(loss, z)
            continue
        known = z
        if place.noise < 1.0:
            known = foreseen(z, (s + 1.0 - unknown) / order.shape[0], place.noise)
        cost, share, new = visit(loss, old, known, q, c)
        losses += cost
        terms += share
        if new != old:
            alpha[i] = new
            row_axpy(rows, i, grown * (new - old) * y, w)
            gain += (new - old) * (place.k - z - 0.5 * q * (new - old))
            if place.r != 0.0:
                gain -= 0.5 * place.r * (new - old) * (new + old) / c
            moves += abs(new - old) > 1e-15 * abs(new)
    return terms, losses, aside, gain, moves


@hot
def sqdist(w, center):
    """||w - w0||^2 of flat arrays, in four sums: one would wait for each addition."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    n = w.shape[0]
    for k in range(0, n - 3, 4):
        a += (w[k] - center[k]) ** 2
        b += (w[k + 1] - center[k + 1]) ** 2
        c += (w[k + 2] - center[k + 2]) ** 2
        d += (w[k + 3] - center[k + 3]) ** 2
    for k in range(n - n % 4, n):
        a += (w[k] - center[k]) ** 2
    return (a + b) + (c + d)
