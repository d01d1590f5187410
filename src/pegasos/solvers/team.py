"""Dual coordinate descent by several threads on one problem.

Each epoch deals the shuffled rows to K threads. A thread takes the steps of `solvers.dual` on its
rows with a copy w_k of w of its own. They meet in two ways:

- after each round of a few hundred rows in the columns that most entries are in: each tells its
  moves there and adds those of the others to its own copy. Two rows at random share hardly any
  other, so the steps of the next round know nearly all that the others did in the last one;
- after several rounds in all columns, which takes some d additions. Then all the moves since the
  last such meeting are added up:

    w <- w + theta dw,  alpha <- alpha + theta dalpha,    dw = sum_k (moves of w_k)
    theta = min(1, (gain + bend / 2) / (||dw||^2 + bend)),  bend = sum_i r dalpha_i^2 / c_i
    gain = -w.dw - sum_i [c_i l*(-(alpha_i + dalpha_i)/c_i) - c_i l*(-alpha_i/c_i)]

theta maximises the dual on the segment where it is quadratic (`objective.losses.parabola`), else,
with bend = 0, a lower bound of it: the dual never falls. With four meetings of all columns in an
epoch and eight of the others to each, the threads need hardly more epochs than one alone on text of
some ten thousand rows, a tenth to a third more on a million synthetic ones; without the others five
times as many, or they do not get there. See decision 012.

Jaggi et al., NIPS 2014 (CoCoA) have the scheme with one meeting an epoch, of all columns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pegasos.core.barrier import close, gate, meet
from pegasos.core.dispatch import helper
from pegasos.core.jit import hot
from pegasos.core.rows import n_columns, n_rows, often, row_work
from pegasos.core.threads import allowed, together
from pegasos.objective.losses import conjugate
from pegasos.objective.problem import Problem
from pegasos.solvers.steps import Place, Tally, steps

_OFTEN = 2048  # columns that meet after each round: what a thread tells fits its nearest cache
_ROWS = 256  # of a thread's round; of twice as many the others know too little
_WHOLE = 8.0  # work between two meetings of all columns in ns, for each of them
_MEETINGS = 4  # of all columns in an epoch, at least
_ROUND, _ROUNDS = 4e4, 16  # work of a round, and their number at least, where all columns meet
_COLUMNS = 1024  # of a block that stays in cache
_FULL = 0.95  # a theta above is as good as 1
_WORTH = 4e6  # work of an epoch: below, two cores of a virtual machine gain nothing for sure
_PAYS = 32.0  # the same for each column


class Team(NamedTuple):
    """What the threads share: w, their copies of it, the columns that meet often with their w at
    the last meeting of all, what each has told of them in this round and the last, alpha as it was
    at the last meeting of all, sums of each."""

    w: np.ndarray
    copies: np.ndarray
    often: np.ndarray
    held: np.ndarray
    told: np.ndarray
    move: np.ndarray
    before: np.ndarray
    sums: np.ndarray
    gate: np.ndarray


class Pace(NamedTuple):
    """Rows of a thread in a round, rounds between two meetings of all columns."""

    length: int
    whole: int


def frequent_columns(problem: Problem) -> np.ndarray:
    """The columns in which threads are to meet after each round; none where all of them do."""
    shared = _is_worth(problem, n_rows(problem.rows), allowed())
    if not shared or n_columns(problem.rows) <= 2 * _OFTEN:
        return np.empty(0, dtype=np.int64)
    return often(problem.rows, _OFTEN)


def _is_worth(problem: Problem, active: int, threads: int) -> bool:
    work = active * max(1.0, row_work(problem.rows))
    return threads > 1 and work >= max(_WORTH, _PAYS * n_columns(problem.rows))


def pace_of(problem: Problem, place: Place, active: int, threads: int) -> Pace | None:
    """None where meetings cost more than threads bring."""
    if not _is_worth(problem, active, threads):
        return None
    work, whole = max(1.0, row_work(problem.rows)), _WHOLE * n_columns(problem.rows)
    if not place.often.size:
        length = int(max(_ROUND, whole) / work) + 1
        return Pace(length, 1) if active >= _ROUNDS * threads * length else None
    rounds = active // (threads * _ROWS)
    return Pace(_ROWS, max(1, min(int(whole / (_ROWS * work)), rounds // _MEETINGS)))


def team_steps(
    problem: Problem, place: Place, span: tuple[int, int], pace: Pace, threads: int
) -> Tally:
    """Steps on the rows order[first:last] of a span."""
    chosen = place.often if pace.whole > 1 else place.often[:0]
    team = Team(
        w=place.w,
        copies=np.empty((threads, len(place.w))),
        often=chosen,
        held=place.w[chosen],
        told=np.empty((2, threads, len(chosen))),
        move=np.empty(len(place.w)),
        before=np.empty((threads, pace.whole * pace.length)),
        sums=np.zeros((threads, 16)),
        gate=gate(),
    )
    bounds = np.linspace(*span, threads + 1).astype(np.int64)
    rounds = -(-int(np.diff(bounds).max()) // pace.length)

    def work(k: int) -> Tally:
        part = k, bounds[k], bounds[k + 1]
        return Tally(*_part(problem, place, team, part, (rounds, *pace)))

    tallies = together(work, threads, lambda: close(team.gate))
    return Tally(*(sum(values) for values in zip(*tallies, strict=True)))


@hot
def _part(problem, place, team, part, pace):
    """The share of thread k: rows order[s:end] in rounds, and a piece of the columns."""
    k, s, end = part
    rounds, length, whole = pace
    K, width = team.copies.shape
    own, sums, before, start = team.copies[k], team.sums, team.before[k], s
    left, right = k * width // K, (k + 1) * width // K
    w, move, pieces = team.w[left:right], team.move[left:right], team.copies[:, left:right]
    known = place.w[team.often]
    terms, losses, aside, total, moves = 0.0, 0.0, 0.0, 0.0, 0
    own[:] = team.w
    for r in range(rounds):
        first, s = s, min(s + length, end)
        for t in range(first, s):
            before[t - start] = place.alpha[place.order[t]]
        a, b, c, _, d = steps(problem, place, own, first, s)
        terms, losses, aside, moves = terms + a, losses + b, aside + c, moves + d
        told = team.told[r % 2]  # others may still read that of the last round
        _tell(own, team.often, known, told[k])
        meet(team.gate, K)
        _hear(own, team.often, known, told)
        if (r + 1) % whole != 0 and r + 1 < rounds:
            continue
        if known.shape[0] > 0:
            meet(team.gate, K)
        at = 8 * (r // whole % 2)  # others may still read the sums of the last meeting
        chosen, start = place.order[start:s], s
        sums[k, at], sums[k, at + 3] = _change(problem, place, before, chosen)
        _agree(team, known, left, right)
        sums[k, at + 1], sums[k, at + 2] = _merge(w, pieces, move)
        sums[k, at + 4], sums[k, at + 5] = _often_moved(team, left, right)
        meet(team.gate, K)
        tilt, bend = 0.0, 0.0
        for p in range(K):
            tilt += sums[p, at] + sums[p, at + 1] + sums[p, at + 4] + 0.5 * sums[p, at + 3]
            bend += sums[p, at + 2] + sums[p, at + 5] + sums[p, at + 3]
        theta = 1.0
        if tilt < _FULL * bend:
            theta = max(0.0, tilt / bend)
            _spread(w, pieces, move, theta - 1.0)
            _shorten(place.alpha, before, chosen, theta)
            meet(team.gate, K)
            for t in range(known.shape[0]):
                known[t] = own[team.often[t]]
        _hold(team, left, right)
        if k == 0:  # what all gained together
            total += theta * (tilt - 0.5 * theta * bend)
    return terms, losses, aside, total, moves


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
def _agree(team, known, left, right):
    """Write down what all know of w, for the columns of this piece."""
    for t in range(known.shape[0]):
        if left <= team.often[t] < right:
            team.w[team.often[t]] = known[t]


@helper
def _often_moved(team, left, right):
    """The moves of the columns that met often, of this piece; -w.move and ||move||^2 of them."""
    slope, square = 0.0, 0.0
    for h in range(team.often.shape[0]):
        j, old = team.often[h], team.held[h]
        if left <= j < right:
            team.move[j] = team.w[j] - old
            slope -= old * team.move[j]
            square += team.move[j] * team.move[j]
    return slope, square


@helper
def _hold(team, left, right):
    """Note where the columns that meet often are."""
    for h in range(team.often.shape[0]):
        if left <= team.often[h] < right:
            team.held[h] = team.w[team.often[h]]


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
    """move = sum_k (w_k - w), w += move, w_k = w; returns -w.move and ||move||^2.

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
        _spread(w_, pieces[:, start : start + _COLUMNS], move_, 1.0)
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
    for t in range(chosen.shape[0]):
        i = chosen[t]
        alpha[i] = before[t] + theta * (alpha[i] - before[t])
