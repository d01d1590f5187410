"""The compiled loop of `solvers.lanes`: epochs of LANES problems on the same rows, or of two times
LANES: a state for each line of them, with views of arrays in which they lie side by side.

Where the verbs of the loss are a few operations, what a row does to its lanes is arithmetic on
lines of numbers without a branch, and becomes vector instructions; lanes that do not want the row
take part in vain. Where they are long, as for the logistic loss, such lanes are passed over.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pegasos.core.dispatch import generic, helper
from pegasos.core.jit import hot, hot_allocating
from pegasos.core.lanes import LANES, add_line, add_product, lines, put_line, whole_lines
from pegasos.core.many import makes_arrays, row_axpys, row_dots
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
CAUTION = 0.01  # of shrinking, without looks at the rows aside, in the first _EARLY epochs
_EARLY = 10
_MEASURED, _SELDOM = 10, 8  # epochs after each of which ||w - w0|| is measured, then every so many
_LEAST, _BY_ROOT = 0.002, 0.05  # to what it falls: at least, and over the root of the columns
_PLACES = range(0, 10 * LANES, LANES)  # of what the first lane has at a row, lines of an array
_RADIUS, _TERMS, _LOSSES, _ASIDE, _TARGET, _OLD, _C, _SCORE, _NEW, _STEP = _PLACES


class Turns(NamedTuple):
    """Rows that a lane wants, their order in an epoch, and for each row who wants it, as a number
    that is not 0."""

    listed: np.ndarray
    order: np.ndarray
    wanted: np.ndarray


class LaneState(NamedTuple):
    """alpha, W and `wanted` (a bit per lane) as steps change them, w0 as a free intercept does, c.

    Of each lane: its class, whether it runs, radius, sums of the epoch; at its end the terms of
    the last, ||w - w0||^2, the estimates of gap and objective. Room for the numbers of a row.
    """

    alpha: np.ndarray
    W: np.ndarray
    centers: np.ndarray
    c: np.ndarray
    wanted: np.ndarray
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
    work: np.ndarray
    line: np.ndarray


@generic
def straight(loss: Any) -> bool:
    """Whether the verbs of the loss are a few operations without a loop"""
    return False


@straight.register(Pinball)
@straight.register(SquaredHinge)
@straight.register(Perceptron)
def _(loss):
    return True


def lanes_at(centers: np.ndarray, c: np.ndarray, targets, running) -> LaneState:
    """The state at w0 of lanes, which want the rows with c_i > 0: a byte for each line."""
    each = len(running) // LANES
    W, alpha = lines(len(centers), each=each), lines(len(c), each=each)
    W[:] = centers
    wanted = np.packbits(c > 0.0, bitorder="little").reshape(len(c), each)
    radius = np.full(len(running), np.finfo(float).max)  # not inf: 0 times it is 0
    rest = [np.zeros(len(running)) for _ in range(7)]
    rest += [lines(len(_PLACES) * each, np.float64).reshape(-1), lines(1, each=each)]
    return LaneState(alpha, W, centers, c, wanted, targets, running, radius, *rest)


def turns_of(state: LaneState) -> Turns:
    """The rows that the lanes want now."""
    wanted = state.wanted.view(f"u{state.wanted.shape[1]}")[:, 0]
    listed = np.flatnonzero(wanted != 0)
    return Turns(listed, np.empty_like(listed), wanted)


def by_line(state: LaneState) -> tuple[LaneState, ...]:
    """A state for each line: views of its lanes."""

    def line(b: int) -> LaneState:
        own = slice(b * LANES, (b + 1) * LANES)
        views = {name: array[..., own] for name, array in state._asdict().items()}
        room = len(_PLACES) * LANES
        views["work"] = state.work[b * room : (b + 1) * room]
        return LaneState(**views | {"wanted": state.wanted[:, b]})

    return tuple(line(b) for b in range(state.wanted.shape[1]))


def epochs(problem: Any, *rest: Any) -> tuple[int, int, int, int]:
    """Where `_epochs` ends; a loop that counts references to arrays takes long for a step."""
    return (_counted if makes_arrays(problem.rows) else _bare)(problem, *rest)


@hot
def _bare(problem, turns, states, place, goal, rng):
    return _epochs(problem, turns, states, place, goal, rng)


@hot_allocating
def _counted(problem, turns, states, place, goal, rng):
    return _epochs(problem, turns, states, place, goal, rng)


@helper
def _epochs(problem, turns, states, place, goal, rng):
    """Epochs until a lane is near its goal, a number of them is reached or the visits are made.

    states: of one line of lanes or of two; place: cursor, active rows, visits left, epoch; goal:
    share of the objective, last epoch, visits that may be left at the end of an epoch.
    """
    cursor, active, visits, epoch = place
    share, last, least = goal
    near = near_rows(problem.rows)
    while visits > 0:
        if cursor == 0:
            active = deal(turns.listed, active, turns.wanted, turns.order, (near, rng, (1, 1)))
        cursor, visits = _sweep(problem, turns.order, states, (cursor, active, visits))
        if cursor >= active:
            arrived = _close(problem, states[0], share, epoch)
            if len(states) == 2:
                arrived |= _close(problem, states[-1], share, epoch)
            cursor, epoch = 0, epoch + 1
            if arrived or active == 0 or epoch >= last or visits <= least:
                break
    return cursor, active, visits, epoch


@helper
def _close(problem, state, share, epoch):
    """The end of an epoch; whether a lane is near its goal."""
    near, end = False, state.W.shape[0] - 1
    caution = caution_after(epoch + 1, state.W.shape[0])
    if epoch < _MEASURED or epoch % _SELDOM == 0:  # it changes little, and costs a pass over W
        _measure(state)
    for p in range(LANES):
        terms, excess = state.terms[p], 0.0
        if problem.free and state.running[p]:
            pull = state.W[end, p] - state.centers[end, p]
            excess = abs(pull) / problem.rows.bias
            state.centers[end, p] += pull
            state.W[end, p] += pull
        state.objective[p] = 0.5 * state.sqdist[p] + state.losses[p] + state.aside[p]
        state.radius[p] = reach(caution, terms + excess)
        state.gap[p] = up_to_date(terms, state.summed[p]) + excess
        state.summed[p], state.terms[p], state.losses[p] = terms, 0.0, 0.0
        near |= state.running[p] and state.gap[p] <= share * state.objective[p]
    return near


@helper
def caution_after(done, columns):
    """Of shrinking, after so many epochs. A margin moves by ||x_i|| ||w - w*|| where the two are
    parallel, in the mean by the root of `columns` less; and who is not done soon pays for caution
    in every epoch.
    """
    least = min(CAUTION, max(_LEAST, _BY_ROOT / np.sqrt(columns)))
    return max(least, CAUTION * min(1.0, _EARLY / done))


@helper
def _measure(state):
    """||w - w0||^2 of each lane"""
    state.sqdist[:] = 0.0
    for j in range(state.W.shape[0]):
        put_line(state.W, j, 1.0, state.line, 0)
        add_line(state.centers, j, -1.0, state.line, 0)
        add_product(state.line, 0, state.line, 0, state.sqdist, 0)


@helper
def _sweep(problem, order, states, place):
    """Steps on up to `visits` rows from place s on; returns place and visits left."""
    rows, first, second, width = problem.rows, states[0], states[-1], LANES * len(states)
    s, active, visits = place
    _begin(first)
    _begin(second)
    while s < active and visits > 0:
        visits -= 1
        if s + _FAR < active:
            far = order[s + _FAR]
            row_announce(rows, far)
            prefetch(first.alpha, far * width)
            prefetch(first.c, far * width)
            prefetch(problem.q, far)
            prefetch(problem.y, far)
            prefetch(first.wanted, far * len(states))
        if s + _AHEAD < active:
            row_prefetch(rows, order[s + _AHEAD])
        if first.wanted[order[s]] != 0:
            _visit(problem, first, order[s])
        if len(states) == 2 and second.wanted[order[s]] != 0:
            _visit(problem, second, order[s])
        s += 1
    _end(first)
    _end(second)
    return s, visits


@helper
def _begin(state):
    """What lanes keep becomes lines of one array: so the compiler sees that they are apart."""
    for p in range(LANES):
        state.work[_RADIUS + p], state.work[_TARGET + p] = state.radius[p], state.targets[p]
        state.work[_TERMS + p], state.work[_LOSSES + p] = state.terms[p], state.losses[p]
        state.work[_ASIDE + p] = state.aside[p]


@helper
def _end(state):
    for p in range(LANES):
        state.terms[p], state.losses[p] = state.work[_TERMS + p], state.work[_LOSSES + p]
        state.aside[p] = state.work[_ASIDE + p]


@helper
def _visit(problem, state, i):
    """The steps of all lanes that want row i."""
    work, line = state.work, state.line
    row_dots(problem.rows, i, state.W, line)
    put_line(line, 0, 1.0, work, _SCORE // LANES)
    put_line(state.alpha, i, 1.0, work, _OLD // LANES)
    put_line(state.c, i, 1.0, work, _C // LANES)
    left, moved = _steps(problem, i, state.wanted[i], work)
    state.wanted[i] = left
    if moved:
        put_line(work, _NEW // LANES, 1.0, state.alpha, i)
        put_line(work, _STEP // LANES, 1.0, line, 0)
        row_axpys(problem.rows, i, line, state.W)


@helper
def _steps(problem, i, want, work):
    """The steps of all lanes on row i; which of them still want it, and whether any moved."""
    whole_lines()
    loss, label, q, root = problem.loss, problem.y[i], problem.q[i], np.sqrt(problem.q[i])
    left, moved = np.int64(0), np.int64(0)
    for p in range(LANES):
        y = 1.0 if label == work[_TARGET + p] else -1.0
        c, old, at = work[_C + p], work[_OLD + p], y * work[_SCORE + p]
        wants, leaves, new, cost, term = (want >> p) & 1 != 0, False, old, 0.0, 0.0
        if straight(loss) or wants:
            share, cost = old / c, c * value(loss, at)
            term = cost + c * conjugate(loss, share) + old * at
            new = np.float64(np.float32(dual_step(loss, old, at, q, c)))
            leaves = wants & settled(loss, share, at, work[_RADIUS + p] * root)
        stays = wants & (not leaves)
        work[_LOSSES + p] += cost if stays else 0.0
        work[_TERMS + p] += term if stays else 0.0
        work[_ASIDE + p] += cost if leaves else 0.0
        new = new if stays else old
        work[_NEW + p], work[_STEP + p] = new, (new - old) * y
        left |= np.int64(stays) << p
        moved |= np.int64(new != old)
    return left, moved
