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
with bend = 0, a lower bound of it: the dual never falls. Where rows have much in common, K threads
that add up go K times too far, in each round further than in the last. Where theta says so, the
moves are undone, one thread does the rest of the epoch, and half as many share the next. With four
meetings of all columns in an epoch and eight of the others to each, two threads need hardly more
epochs than one alone on text of some ten thousand rows, a tenth to a third more on a million
synthetic ones. See decision 012.

Jaggi et al., NIPS 2014 (CoCoA) have the scheme with one meeting an epoch, of all columns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pegasos.core.barrier import close, gate, meet
from pegasos.core.dispatch import helper
from pegasos.core.jit import hot
from pegasos.core.matrix import combine
from pegasos.core.rows import n_columns, n_rows, often, row_work
from pegasos.core.threads import allowed, together
from pegasos.objective.losses import conjugate
from pegasos.objective.problem import Problem
from pegasos.solvers.steps import Place, Tally, steps

_OFTEN = 512  # columns that meet after each round: more of them cost more than they tell
_ROWS = 512  # of a thread's round; of twice as many the others know too little
_WHOLE = 8.0  # work between two meetings of all columns in ns, for each of them
_MEETINGS = 4  # of all columns in an epoch, at least
_ROUND, _ROUNDS = 4e4, 16  # work of a round, and their number at least, where all columns meet
_COLUMNS = 1024  # of a block that stays in cache
_FULL = 0.95  # a theta above is as good as 1
_LITTLE = 0.7  # a theta below: rows have so much in common that threads work against each other
_WORTH = 1e7  # work of an epoch: below, two threads gain nothing for sure
_PAYS = 32.0  # the same for each column


class Team(NamedTuple):
    """What the threads share: w of the last meeting of all columns, their copies of it, the columns
    that meet often, what each knows of them and has told in this round and the last, alpha as it
    was at the last meeting of all, sums of each."""

    w: np.ndarray
    copies: np.ndarray
    often: np.ndarray
    known: np.ndarray
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
    columns = place.often if pace.whole > 1 else place.often[:0]
    team = Team(
        w=place.w,
        copies=np.empty((threads, len(place.w))),
        often=columns,
        known=np.tile(place.w[columns], (threads, 1)),
        told=np.empty((2, threads, len(columns))),
        move=np.empty(len(place.w)),
        before=np.empty((threads, pace.whole * pace.length)),
        sums=np.zeros((threads, 8)),
        gate=gate(),
    )
    bounds = np.linspace(*span, threads + 1).astype(np.int64)

    def work(k: int) -> Tally:
        return Tally(*_part(problem, place, team, (k, bounds), pace))

    try:
        tallies = together(work, threads, lambda: close(team.gate))
    except BaseException:  # copies may have gone on without w
        place.w[:] = problem.center + combine(problem.rows, problem.y * place.alpha)
        raise
    return Tally(*(sum(values) for values in zip(*tallies, strict=True)))


@hot
def _part(problem, place, team, part, pace):
    """The share of thread k: rows order[bounds[k]:bounds[k + 1]], and a piece of the columns."""
    k, bounds = part
    length, whole = pace
    K, width = team.copies.shape
    rounds = _longest(bounds, length)
    own, before, known = team.copies[k], team.before[k], team.known[k]
    left, right = k * width // K, (k + 1) * width // K
    w, move, pieces = team.w[left:right], team.move[left:right], team.copies[:, left:right]
    s, start = bounds[k], bounds[k]
    total, sums = 0.0, (0.0, 0.0, 0.0, 0)
    terms, losses, aside, moves = sums
    for j in range(width):
        own[j] = team.w[j]
    for r in range(rounds):
        first, s = s, min(s + length, bounds[k + 1])
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
            _count_once(team, known, left, right)
        chosen = place.order[start:s]
        team.sums[k, 0], team.sums[k, 1] = _change(problem, place, before, chosen)
        team.sums[k, 2], team.sums[k, 3] = _merge(w, pieces, move)
        meet(team.gate, K)
        theta, gain = _share(team.sums)
        if not theta >= _LITTLE:
            _undo(place, before, chosen)
            meet(team.gate, K)
            if k > 0:
                return (*_ordered(sums, total), 0)
            done = r // whole * whole * length  # rows of each thread before
            return (*_alone(problem, place, bounds, done, _ordered(sums, total)), 1)
        _spread(w, pieces, move, theta)
        _shorten(place.alpha, before, chosen, theta)
        meet(team.gate, K)
        for t in range(known.shape[0]):
            known[t] = own[team.often[t]]
        total += gain if k == 0 else 0.0  # what all gained together
        start, sums = s, (terms, losses, aside, moves)
    return (*_ordered(sums, total), 0)


@helper
def _longest(bounds, length):
    """Rounds of so many rows for the largest share."""
    most = 0
    for p in range(bounds.shape[0] - 1):
        most = max(most, bounds[p + 1] - bounds[p])
    return (most + length - 1) // length


@helper
def _ordered(sums, gain):
    """The fields of a Tally."""
    return sums[0], sums[1], sums[2], gain, sums[3]


@helper
def _alone(problem, place, bounds, done, sums):
    """The rows that the threads have left, by this one."""
    terms, losses, aside, gain, moves = sums
    for p in range(bounds.shape[0] - 1):
        first = min(bounds[p] + done, bounds[p + 1])
        a, b, c, more, d = steps(problem, place, place.w, first, bounds[p + 1])
        terms, losses, aside, moves = terms + a, losses + b, aside + c, moves + d
        gain += more
    return terms, losses, aside, gain, moves


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
