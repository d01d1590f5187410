"""The rounds of threads that share an epoch of `solvers.team`: steps, a meeting, sums.

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
ROWS = 128  # of a block of conjugates, which then are vector instructions
_FULL = 0.95  # a theta above is as good as 1
_LITTLE = 0.7  # a theta below: rows have so much in common that threads work against each other


class Team(NamedTuple):
    """What the threads share: w of the last meeting, their copies of it, by how much all have moved
    it; alpha as it was at that meeting, sums of each, room for conjugates, and its tallies: now and
    at that meeting. How many times its own moves a thread takes those of all to be; its rows in
    each round."""

    w: np.ndarray
    copies: np.ndarray
    move: np.ndarray
    before: np.ndarray
    sums: np.ndarray
    room: np.ndarray
    tallies: np.ndarray
    gate: np.ndarray
    grown: float
    length: int


@hot
def rounds(problem, place, team, part):
    """The shares of some threads, one after the other: of thread k the rows
    order[bounds[k]:bounds[k + 1]], and a piece of the columns. Returns what all gained and whether
    they were in each other's way, both 0 for those without the first share."""
    (first, last), n, bounds = part
    total, length = 0.0, team.length
    for k in range(first, last):
        for j in range(team.w.shape[0]):
            team.copies[k, j] = team.w[j]
    for r in range(_longest(bounds, length)):
        for k in range(first, last):
            _round(problem, place, team, (k, bounds), r)
        meet(team.gate, n)
        for k in range(first, last):
            _add_up(problem, place, team, (k, bounds), r)
        meet(team.gate, n)
        theta, gain = _share(team.sums)
        kept = theta >= _LITTLE
        if np.isnan(place.k):  # the bound is exact at 1, and of a dual that is not quadratic it
            theta, gain = 1.0, np.nan  # knows no better; nobody asks for the gain
        for k in range(first, last):
            _keep(place, team, (k, bounds), r, theta if kept else 0.0)
        meet(team.gate, n)
        if not kept:
            done = r * length, total
            return _alone(problem, place, team, bounds, done) if first == 0 else (0.0, 0)
        for k in range(first, last):
            for t in range(4):
                team.tallies[1, k, t] = team.tallies[0, k, t]
        total += gain if first == 0 else 0.0
    return total, 0


@helper
def _round(problem, place, team, part, r):
    """Steps of thread k on its next rows."""
    k, bounds = part
    own, before, tally = team.copies[k], team.before[k], team.tallies[0, k]
    first, last = _rows_of(part, r, team.length)
    for s in range(first, last):
        before[s - first] = place.alpha[place.order[s]]
    unknown = first - bounds[0] - team.copies.shape[0] * r * team.length  # of the rows before
    others = unknown, team.grown
    terms, losses, aside, _, moves = steps(problem, place, own, (first, last), others)
    tally[0], tally[1] = tally[0] + terms, tally[1] + losses
    tally[2], tally[3] = tally[2] + aside, tally[3] + moves


@helper
def _rows_of(part, r, length):
    """Where the rows of thread k in round r are in the order."""
    k, bounds = part
    end = bounds[k + 1]
    return min(bounds[k] + r * length, end), min(bounds[k] + (r + 1) * length, end)


@helper
def _piece(team, k):
    """The columns that thread k adds up."""
    K, width = team.copies.shape
    return k * width // K, (k + 1) * width // K


@helper
def _add_up(problem, place, team, part, r):
    """The sums of thread k: of its rows, and of all moves in its columns."""
    k = part[0]
    left, right = _piece(team, k)
    first, last = _rows_of(part, r, team.length)
    w, move, pieces = team.w[left:right], team.move[left:right], team.copies[:, left:right]
    sums, chosen = team.sums[k], place.order[first:last]
    sums[0], sums[1] = _change(problem, place, team.before[k], chosen, team.room[k])
    sums[2], sums[3] = _merge(w, pieces, move, team.grown)


@helper
def _keep(place, team, part, r, theta):
    """So much of the moves, in the rows and the columns of thread k; 0: none."""
    k = part[0]
    left, right = _piece(team, k)
    first, last = _rows_of(part, r, team.length)
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
    (done, total), K = before, bounds.shape[0] - 1
    tally = team.tallies[1, 0]
    for p in range(K):
        first = min(bounds[p] + done, bounds[p + 1])
        span, known = (first, bounds[p + 1]), (K - 1 - p) * done  # of the shares to come
        terms, losses, aside, gain, moves = steps(problem, place, place.w, span, (-known, 1.0))
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
def _change(problem, place, before, chosen, room):
    """By how much the steps on these rows lowered sum c_i l*(-alpha_i/c_i), and its curvature."""
    r = place.r if place.r > 0.0 else 0.0
    total, bend = 0.0, 0.0
    for start in range(0, chosen.shape[0], ROWS):
        n = min(ROWS, chosen.shape[0] - start)
        old, new, fell = room[0, :n], room[1, :n], room[2, :n]
        for t in range(n):
            i = chosen[start + t]
            old[t], new[t], fell[t] = before[start + t], place.alpha[i], problem.c[i]
            bend += r * (new[t] - old[t]) * ((new[t] - old[t]) / fell[t])
        for t in range(n):
            c = fell[t]
            told = conjugate(problem.loss, old[t] / c) - conjugate(problem.loss, new[t] / c)
            fell[t] = c * told
        for t in range(n):
            total += fell[t]
    return total, bend


@helper
def _merge(w, pieces, move, grown):
    """move = sum_k (w_k - w) / grown; returns -w.move and ||move||^2.

    Block by block, so that each is read from memory once.
    """
    slope, square, part = 0.0, 0.0, 1.0 / grown
    for start in range(0, w.shape[0], _COLUMNS):
        w_, move_ = w[start : start + _COLUMNS], move[start : start + _COLUMNS]
        move_[:] = 0.0
        for k in range(pieces.shape[0]):
            copy = pieces[k, start : start + _COLUMNS]
            for j in range(w_.shape[0]):
                move_[j] += part * (copy[j] - w_[j])
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
