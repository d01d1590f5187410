"""The rounds of threads that share an epoch of `solvers.team`: steps, meetings, sums.

A thread does one share of the work, or all of them one after the other; the answer is the same, bit
for bit, since nobody looks at what others do but at the meetings.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pegasos.core.barrier import meet
from pegasos.core.dispatch import helper
from pegasos.core.jit import hot
from pegasos.objective.losses import conjugate
from pegasos.solvers.steps import steps

_COLUMNS = 1024  # of a block that stays in cache
_FULL = 0.95  # a theta above is as good as 1
_LITTLE = 0.7  # a theta below: rows have so much in common that threads work against each other


class Team(NamedTuple):
    """What the threads share: w of the last meeting of all columns, their copies of it, the columns
    that meet often, what each knows of them and has told in this round and the last, alpha as it
    was at the last meeting of all, sums of each, and its tallies: now and at that meeting."""

    w: np.ndarray
    copies: np.ndarray
    often: np.ndarray
    known: np.ndarray
    told: np.ndarray
    move: np.ndarray
    before: np.ndarray
    sums: np.ndarray
    tallies: np.ndarray
    gate: np.ndarray


@hot
def rounds(problem, place, team, part, pace):
    """The shares of some threads, one after the other: of thread k the rows
    order[bounds[k]:bounds[k + 1]], and a piece of the columns. Returns what all gained and whether
    they were in each other's way, both 0 for those without the first share."""
    (first, last), n, bounds = part
    length, whole = pace
    count, total, start = _longest(bounds, length), 0.0, 0
    for k in range(first, last):
        for j in range(team.w.shape[0]):
            team.copies[k, j] = team.w[j]
    for r in range(count):
        for k in range(first, last):
            _round(problem, place, team, (k, bounds), (r * length, start, length, r % 2))
        meet(team.gate, n)
        for k in range(first, last):
            _hear(team.copies[k], team.often, team.known[k], team.told[r % 2])
        if (r + 1) % whole != 0 and r + 1 < count:
            continue
        if team.often.shape[0] > 0:
            meet(team.gate, n)
        span = start, (r + 1) * length
        for k in range(first, last):
            _add_up(problem, place, team, (k, bounds), span)
        meet(team.gate, n)
        theta, gain = _share(team.sums)
        kept = theta >= _LITTLE
        for k in range(first, last):
            _keep(place, team, (k, bounds), span, theta if kept else 0.0)
        meet(team.gate, n)
        if not kept:
            return _alone(problem, place, team, bounds, (start, total)) if first == 0 else (0.0, 0)
        for k in range(first, last):
            for t in range(team.often.shape[0]):
                team.known[k, t] = team.copies[k, team.often[t]]
            for t in range(4):
                team.tallies[1, k, t] = team.tallies[0, k, t]
        total += gain if first == 0 else 0.0
        start = span[1]
    return total, 0


@helper
def _round(problem, place, team, part, rows):
    """Steps of thread k on its next rows, told in line `line`; `start`: of the last meeting."""
    k, bounds = part
    done, start, length, line = rows
    own, before, known = team.copies[k], team.before[k], team.known[k]
    first, last = _rows_of(part, done, done + length)
    for s in range(first, last):
        before[s - bounds[k] - start] = place.alpha[place.order[s]]
    terms, losses, aside, _, moves = steps(problem, place, own, first, last)
    tally = team.tallies[0, k]
    tally[0], tally[1] = tally[0] + terms, tally[1] + losses
    tally[2], tally[3] = tally[2] + aside, tally[3] + moves
    _tell(own, team.often, known, team.told[line, k])  # others may still read the other line


@helper
def _rows_of(part, start, stop):
    """Where rows `start` to `stop` of thread k are in the order."""
    k, bounds = part
    end = bounds[k + 1]
    return min(bounds[k] + start, end), min(bounds[k] + stop, end)


@helper
def _piece(team, k):
    """The columns that thread k adds up."""
    K, width = team.copies.shape
    return k * width // K, (k + 1) * width // K


@helper
def _add_up(problem, place, team, part, span):
    """The sums of thread k: of its rows, and of all moves in its columns."""
    k = part[0]
    left, right = _piece(team, k)
    first, last = _rows_of(part, span[0], span[1])
    _count_once(team, team.known[k], left, right)
    w, move, pieces = team.w[left:right], team.move[left:right], team.copies[:, left:right]
    sums, chosen = team.sums[k], place.order[first:last]
    sums[0], sums[1] = _change(problem, place, team.before[k], chosen)
    sums[2], sums[3] = _merge(w, pieces, move)


@helper
def _keep(place, team, part, span, theta):
    """So much of the moves, in the rows and the columns of thread k; 0: none."""
    k = part[0]
    left, right = _piece(team, k)
    first, last = _rows_of(part, span[0], span[1])
    chosen = place.order[first:last]
    if theta == 0.0:
        _undo(place, team.before[k], chosen)
        return
    _spread(team.w[left:right], team.copies[:, left:right], team.move[left:right], theta)
    _shorten(place.alpha, team.before[k], chosen, theta)


@helper
def _longest(bounds, length):
    """Rounds of so many rows for the largest share."""
    most = 0
    for p in range(bounds.shape[0] - 1):
        most = max(most, bounds[p + 1] - bounds[p])
    return (most + length - 1) // length


@helper
def _alone(problem, place, team, bounds, before):
    """The rows that the threads have left, by this one; after so many each, and such a gain."""
    done, total = before
    tally = team.tallies[1, 0]
    for p in range(bounds.shape[0] - 1):
        first = min(bounds[p] + done, bounds[p + 1])
        terms, losses, aside, gain, moves = steps(problem, place, place.w, first, bounds[p + 1])
        tally[0], tally[1] = tally[0] + terms, tally[1] + losses
        tally[2], tally[3] = tally[2] + aside, tally[3] + moves
        total += gain
    return total, 1


@helper
def _share(sums):
    """theta, how much of all moves to keep, and what they gain."""
    tilt, bend = 0.0, 0.0
    for p in range(sums.shape[0]):
        tilt += sums[p, 0] + 0.5 * sums[p, 1] + sums[p, 2]
        bend += sums[p, 1] + sums[p, 3]
    theta = 1.0 if tilt >= _FULL * bend else tilt / bend
    return theta, theta * (tilt - 0.5 * theta * bend)


@helper
def _tell(own, columns, known, told):
    """By how much this thread has moved w in these columns since all of them knew it."""
    for t in range(columns.shape[0]):
        told[t] = own[columns[t]] - known[t]


@helper
def _hear(own, columns, known, told):
    """w in these columns after the moves of all, in the same order for each: the same bits."""
    for t in range(columns.shape[0]):
        for k in range(told.shape[0]):
            known[t] += told[k, t]
        own[columns[t]] = known[t]


@helper
def _count_once(team, known, left, right):
    """The moves that all have heard of are those of the first, for the columns of this piece."""
    for t in range(known.shape[0]):
        j = team.often[t]
        if left <= j < right:
            team.copies[:, j] = team.w[j]
            team.copies[0, j] = known[t]


@helper
def _change(problem, place, before, chosen):
    """By how much the steps on these rows lowered sum c_i l*(-alpha_i/c_i), and its curvature."""
    r = place.r if place.r > 0.0 else 0.0
    total, bend = 0.0, 0.0
    for t in range(chosen.shape[0]):
        i = chosen[t]
        c, new, old = problem.c[i], place.alpha[i], before[t]
        if new != old:
            total += c * conjugate(problem.loss, old / c) - c * conjugate(problem.loss, new / c)
            bend += r * (new - old) * ((new - old) / c)
    return total, bend


@helper
def _merge(w, pieces, move):
    """move = sum_k (w_k - w); returns -w.move and ||move||^2.

    Block by block, so that each is read from memory once.
    """
    slope, square = 0.0, 0.0
    for start in range(0, w.shape[0], _COLUMNS):
        w_, move_ = w[start : start + _COLUMNS], move[start : start + _COLUMNS]
        move_[:] = 0.0
        for k in range(pieces.shape[0]):
            copy = pieces[k, start : start + _COLUMNS]
            for j in range(w_.shape[0]):
                move_[j] += copy[j] - w_[j]
        slope -= np.dot(w_, move_)
        square += np.dot(move_, move_)
    return slope, square


@helper
def _spread(w, pieces, move, theta):
    """w += theta move, w_k = w"""
    for j in range(w.shape[0]):
        w[j] += theta * move[j]
    for k in range(pieces.shape[0]):
        copy = pieces[k]
        for j in range(w.shape[0]):
            copy[j] = w[j]


@helper
def _shorten(alpha, before, chosen, theta):
    """Only a part of the steps on these rows."""
    if theta < 1.0:
        for t in range(chosen.shape[0]):
            i = chosen[t]
            alpha[i] = before[t] + theta * (alpha[i] - before[t])


@helper
def _undo(place, before, chosen):
    """None of the steps on these rows."""
    for t in range(chosen.shape[0]):
        place.alpha[chosen[t]], place.stays[chosen[t]] = before[t], True
