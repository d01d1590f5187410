"""The compiled loop of `solvers.lanes`: epochs of LANES problems on the same rows.

Where the verbs of the loss are a few operations, what a row does to its lanes is arithmetic on
lines of numbers without a branch, and becomes vector instructions; lanes that do not want the row
take part in vain. Where they are long, as for the logistic loss, such lanes are passed over.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pegasos.core.dispatch import generic, helper
from pegasos.core.jit import hot_allocating
from pegasos.core.lanes import LANES, lines, put_line
from pegasos.core.many import row_axpys, row_dots
from pegasos.core.prefetch import prefetch
from pegasos.core.rng import deal
from pegasos.core.rows import row_announce, row_prefetch
from pegasos.objective.losses import (
    Perceptron,
    Pinball,
    SquaredHinge,
    conjugate,
    dual_step,
    value,
)
from pegasos.solvers.steps import near_rows, reach, settled, up_to_date

_AHEAD = 3  # rows between a prefetch and the use of the row
_FAR = 8  # the same for the numbers that belong to a row
CAUTION = 0.01  # of shrinking, without looks at the rows aside
_NUMBERS = 10  # of a lane at a row, the lines of an array
_RADIUS, _TERMS, _LOSSES, _ASIDE, _TARGET, _OLD, _C, _SCORE, _NEW, _STEP = range(_NUMBERS)


class LaneState(NamedTuple):
    """alpha, W and `wanted` (a bit per lane) as steps change them, w0 as a free intercept does.

    Of each lane: its class, whether it runs, radius, sums of the epoch; at its end the terms of
    the last, ||w - w0||^2, the estimates of gap and objective.
    """

    alpha: np.ndarray
    W: np.ndarray
    centers: np.ndarray
    wanted: np.ndarray
    listed: np.ndarray
    order: np.ndarray
    targets: np.ndarray
    running: np.ndarray
    radius: np.ndarray
    terms: np.ndarray
    losses: np.ndarray
    aside: np.ndarray
    summed: np.ndarray
    sqdist: np.ndarray
    gap: np.ndarray
    objective: np.ndarray


@generic
def straight(loss: Any) -> bool:
    """Whether the verbs of the loss are a few operations without a loop"""
    return False


@straight.register(Pinball)
@straight.register(SquaredHinge)
@straight.register(Perceptron)
def _(loss):
    return True


def lanes_at(centers: np.ndarray, targets, members: np.ndarray, running) -> LaneState:
    """The state at w0; a bit of `members` for each lane that a row is in."""
    W, alpha = lines(len(centers)), lines(len(members))
    W[:] = centers
    listed = np.flatnonzero(members)
    order = np.empty_like(listed)
    radius = np.full(LANES, np.finfo(float).max)  # not inf: 0 times it is 0
    sums = (np.zeros(LANES) for _ in range(7))
    return LaneState(
        alpha, W, centers, members.copy(), listed, order, targets, running, radius, *sums
    )


@hot_allocating
def epochs(problem, state, place, goal, rng):
    """Epochs until a lane is near its goal, a number of them is reached or the visits are made.

    place: cursor, active rows, visits left, epoch; goal: share of the objective, last epoch,
    visits that may be left at the end of an epoch.
    """
    cursor, active, visits, epoch = place
    share, last, least = goal
    near = near_rows(problem.rows)
    while visits > 0:
        if cursor == 0:
            active = deal(state.listed, active, state.wanted, state.order, (near, rng))
        cursor, visits = _sweep(problem, state, (cursor, active, visits))
        if cursor >= active:
            if epoch < 10 or epoch % 8 == 0:  # it changes little, and costs a pass over W
                _measure(state)
            arrived = _close(problem, state, share)
            cursor, epoch = 0, epoch + 1
            if arrived or active == 0 or epoch >= last or visits <= least:
                break
    return cursor, active, visits, epoch


@helper
def _measure(state):
    """||w - w0||^2 of each lane"""
    state.sqdist[:] = 0.0
    for j in range(state.W.shape[0]):
        for p in range(LANES):
            away = state.W[j, p] - state.centers[j, p]
            state.sqdist[p] += away * away


@helper
def _close(problem, state, share):
    """The end of an epoch; whether a lane is near its goal."""
    near, end = False, state.W.shape[0] - 1
    for p in range(LANES):
        terms, excess = state.terms[p], 0.0
        if problem.free and state.running[p]:
            pull = state.W[end, p] - state.centers[end, p]
            excess = abs(pull) / problem.rows.bias
            state.centers[end, p] += pull
            state.W[end, p] += pull
        state.objective[p] = 0.5 * state.sqdist[p] + state.losses[p] + state.aside[p]
        state.radius[p] = reach(CAUTION, terms + excess)
        state.gap[p] = up_to_date(terms, state.summed[p]) + excess
        state.summed[p], state.terms[p], state.losses[p] = terms, 0.0, 0.0
        near |= state.running[p] and state.gap[p] <= share * state.objective[p]
    return near


@helper
def _sweep(problem, state, place):
    """Steps on up to `visits` rows from place s on; returns place and visits left."""
    rows, order, wanted = problem.rows, state.order, state.wanted
    s, active, visits = place
    line = np.empty((1, LANES), np.float32)
    work = np.empty((_NUMBERS, LANES))  # one array: the compiler sees that its lines are apart
    work[_RADIUS], work[_TERMS], work[_LOSSES] = state.radius, state.terms, state.losses
    work[_ASIDE], work[_TARGET] = state.aside, state.targets
    while s < active and visits > 0:
        visits -= 1
        if s + _FAR < active:
            far = order[s + _FAR]
            row_announce(rows, far)
            prefetch(state.alpha, far * LANES)
            prefetch(problem.c, far * LANES)
            prefetch(problem.q, far)
            prefetch(problem.y, far)
            prefetch(wanted, far)
        if s + _AHEAD < active:
            row_prefetch(rows, order[s + _AHEAD])
        i = order[s]
        row_dots(rows, i, state.W, line)
        put_line(line, 0, 1.0, work, _SCORE)
        put_line(state.alpha, i, 1.0, work, _OLD)
        put_line(problem.c, i, 1.0, work, _C)
        left, moved = _steps(problem, i, wanted[i], work)
        wanted[i] = left
        if moved:
            put_line(work, _NEW, 1.0, state.alpha, i)
            put_line(work, _STEP, 1.0, line, 0)
            row_axpys(rows, i, line, state.W)
        s += 1
    state.terms[:], state.losses[:], state.aside[:] = work[_TERMS], work[_LOSSES], work[_ASIDE]
    return s, visits


@helper
def _steps(problem, i, want, work):
    """The steps of all lanes on row i; which of them still want it, and whether any moved."""
    loss, label, q, root = problem.loss, problem.y[i], problem.q[i], np.sqrt(problem.q[i])
    left, moved = np.int64(0), np.int64(0)
    for p in range(LANES):
        y = 1.0 if label == work[_TARGET, p] else -1.0
        c, old, at = work[_C, p], work[_OLD, p], y * work[_SCORE, p]
        wants, leaves, new, cost, term = (want >> p) & 1 != 0, False, old, 0.0, 0.0
        if straight(loss) or wants:
            share, cost = old / c, c * value(loss, at)
            term = cost + c * conjugate(loss, share) + old * at
            new = np.float64(np.float32(dual_step(loss, old, at, q, c)))
            leaves = wants & settled(loss, share, at, work[_RADIUS, p] * root)
        stays = wants & (not leaves)
        work[_LOSSES, p] += cost if stays else 0.0
        work[_TERMS, p] += term if stays else 0.0
        work[_ASIDE, p] += cost if leaves else 0.0
        new = new if stays else old
        work[_NEW, p], work[_STEP, p] = new, (new - old) * y
        left |= np.int64(stays) << p
        moved |= np.int64(new != old)
    return left, moved
