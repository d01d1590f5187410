"""Tables so small that a Newton step is one compiled loop: room to work in, and the matrix.

What `solvers.newton` and `solvers.newton_cg` do piece by piece, so that threads can take part,
would be mostly Python where the rows are one block for one thread.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pegasos.core.dispatch import helper
from pegasos.core.gram import add_tiles, few, room_for_tiles
from pegasos.core.many import makes_arrays
from pegasos.core.matrix import is_one_block
from pegasos.core.rows import by_row, n_columns, n_rows, row_outer, row_write
from pegasos.core.tile import tiled
from pegasos.objective.problem import Problem

_COLUMNS = 128  # beyond, LAPACK is faster
_ROUNDING = 0.03  # that float32 may leave in G, where R adds 1
_ROUGHLY = 6e-8  # of what is summed: the rounding of float32


class Room(NamedTuple):
    """To work in: the factor of a matrix, vectors over columns and over rows, a matrix to take
    away, rows written out in float32 and in float64, to add and to take away, which are empty where
    rows have few entries; numbers of rows."""

    L: np.ndarray
    of_columns: np.ndarray
    of_rows: np.ndarray
    less: np.ndarray
    rough: tuple[np.ndarray, np.ndarray]
    fine: tuple[np.ndarray, np.ndarray]
    chosen: np.ndarray


def is_small(problem: Problem) -> bool:
    """Whether to take this loop."""
    rows = problem.rows
    stored = by_row(rows) and not makes_arrays(rows)
    return stored and n_columns(rows) < _COLUMNS and is_one_block(rows)


def begun(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """u and G before the first step."""
    size = tiled(n_columns(problem.rows) + 1)
    return np.zeros(len(problem.y)), np.zeros((size, size))


def room_for(problem: Problem) -> Room:
    n, width = n_rows(problem.rows), n_columns(problem.rows) + 1
    room = np.empty((width, width)), np.empty((5, width)), np.empty((2, n))
    chosen = np.empty(n, dtype=np.int64)
    if few(problem.rows):
        nothing = np.empty((0, 0), np.float32), np.empty((0, 0))
        return Room(*room, nothing[1], (nothing[0],) * 2, (nothing[1],) * 2, chosen)
    rough, fine = (
        (room_for_tiles(problem.rows, dtype), room_for_tiles(problem.rows, dtype))
        for dtype in (np.float32, np.float64)
    )
    return Room(*room, np.empty((tiled(width), tiled(width))), rough, fine, chosen)


@helper
def most_changed(changed, used):
    """Whether so many numbers changed, of those that are not 0, that a new matrix costs less."""
    return 2 * changed > used


@helper
def is_precise(single, mass, unit):
    """Whether float32 would leave more in G than is far below the unit that R adds."""
    return not single or mass * _ROUGHLY > _ROUNDING * unit


@helper
def follow(problem, at, to, given, room):
    """G of u = unit h in `to`: that `at` the last point corrected where u changed, or a new one if
    cheaper. Given: the unit; mass and whether products were precise, as they are returned (see
    `newton.Curvature`); whether float32 will do."""
    unit, before, was_precise, single = given
    changed, used = 0, 0
    for i in range(at.h.shape[0]):
        u = unit * at.h[i]
        to.u[i] = u
        room.chosen[changed] = i
        changed += u != at.u[i]
        used += u != 0.0
    anew, mass = most_changed(changed, used), np.dot(to.u, problem.q)
    most = mass if anew else max(mass, before)
    precise = is_precise(single, most, unit)
    anew |= precise != was_precise
    if anew:
        changed = _used(to.u, room.chosen)
    for k in range(to.G.shape[0]):
        for j in range(to.G.shape[0]):
            to.G[k, j] = 0.0 if anew else at.G[k, j]
    _add_changed(problem, (at, to), (anew, changed, precise), room)
    return mass if anew else most, precise


@helper
def _used(u, chosen):
    """Note where u is not 0, and how often."""
    used = 0
    for i in range(u.shape[0]):
        chosen[used] = i
        used += u[i] != 0.0
    return used


@helper
def _add_changed(problem, points, given, room):
    """G += X' diag(change of u) X"""
    (at, to), (anew, changed, precise) = points, given
    for s in range(changed):
        i = room.chosen[s]
        room.of_rows[0, s] = to.u[i] if anew else to.u[i] - at.u[i]
    few = room.less.shape[0] == 0
    for s in range(changed if few else 0):
        row_outer(problem.rows, room.chosen[s], room.of_rows[0, s], to.G)
    if not few and precise:
        _add_written(problem.rows, room, changed, room.fine, to.G)
    elif not few:
        _add_written(problem.rows, room, changed, room.rough, to.G)


@helper
def _add_written(rows, room, changed, written, G):
    """The same from rows that are written out, some at a time, those to take away aside."""
    (more, fewer), less = written, room.less
    added, taken = 0, 0
    for k in range(less.shape[0]):
        for j in range(k + 1):
            less[k, j] = 0.0
    for s in range(changed):
        i, change = room.chosen[s], room.of_rows[0, s]
        if change > 0.0:
            row_write(rows, i, np.sqrt(change), more[added])
            added += 1
        else:
            row_write(rows, i, np.sqrt(-change), fewer[taken])
            taken += 1
        if added == more.shape[0]:
            add_tiles(more, added, G)
            added = 0
        if taken == fewer.shape[0]:
            add_tiles(fewer, taken, less)
            taken = 0
    add_tiles(more, added, G)
    add_tiles(fewer, taken, less)
    for k in range(less.shape[0]):
        for j in range(k + 1):
            G[k, j] -= less[k, j]
