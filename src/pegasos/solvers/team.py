"""Dual coordinate descent by several threads on one problem.

Each epoch deals the shuffled rows to K threads. A thread takes the steps of `solvers.dual` on its
rows with a copy of w of its own; after a round of so many rows all meet and add their moves up:

    w <- w + theta dw,  alpha <- alpha + theta dalpha,    dw = sum_k (w_k - w)
    theta = min(1, (gain + bend / 2) / (||dw||^2 + bend)),  bend = sum_i r dalpha_i^2 / c_i
    gain = -w.dw - sum_i [c_i l*(-(alpha_i + dalpha_i)/c_i) - c_i l*(-alpha_i/c_i)]

theta maximises the dual on the segment where it is quadratic (`objective.losses.parabola`), else,
with bend = 0, a lower bound of it: the dual never falls. Rounds are as short as the cost of a
meeting, about d additions, allows: with 64 of them in an epoch the threads need no more epochs than
one alone, with 4 five times as many.

Jaggi et al., NIPS 2014 (CoCoA) have the scheme with one round an epoch.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pegasos.core.barrier import close, gate, meet
from pegasos.core.dispatch import helper
from pegasos.core.jit import hot
from pegasos.core.rows import n_columns, row_work
from pegasos.core.threads import together
from pegasos.objective.losses import conjugate
from pegasos.objective.problem import Problem
from pegasos.solvers.steps import Place, Tally, steps

_ROUNDS = 16  # fewer in an epoch, and it takes more of them
_COLUMNS = 1024  # of a block that stays in cache
_FULL = 0.95  # a theta above is as good as 1
_SHARE = 4.0  # work of a thread's round for each column (ns): a meeting costs a tenth of it
_LEAST = 1 << 15  # work of a round in any case
_WORTH = 4e6  # of an epoch, or threads take longer to start


class Team(NamedTuple):
    """What the threads share: w, their copies of it, alpha before a round, sums of each."""

    w: np.ndarray
    copies: np.ndarray
    move: np.ndarray
    before: np.ndarray
    sums: np.ndarray
    gate: np.ndarray


def round_length(problem: Problem, active: int, threads: int) -> int:
    """Rows of a thread between two meetings; 0 where meetings cost more than threads bring."""
    work = max(1.0, row_work(problem.rows))
    length = int(max(_SHARE * n_columns(problem.rows), _LEAST) / work) + 1
    worth = threads > 1 and active * work >= _WORTH and active >= _ROUNDS * threads * length
    return length if worth else 0


def team_steps(
    problem: Problem, place: Place, span: tuple[int, int], length: int, threads: int
) -> Tally:
    """Steps on the rows order[first:last] of a span."""
    team = Team(
        w=place.w,
        copies=np.repeat(place.w[None], threads, axis=0),
        move=np.empty(len(place.w)),
        before=np.empty((threads, length)),
        sums=np.zeros((threads, 16)),
        gate=gate(),
    )
    bounds = np.linspace(*span, threads + 1).astype(np.int64)
    rounds = -(-int(np.diff(bounds).max()) // length)

    def work(k: int) -> Tally:
        part = k, bounds[k], bounds[k + 1]
        return Tally(*_part(problem, place, team, part, (rounds, length)))

    tallies = together(work, threads, lambda: close(team.gate))
    return Tally(*(sum(values) for values in zip(*tallies, strict=True)))


@hot
def _part(problem, place, team, part, pace):
    """The share of thread k: rows order[s:end] in rounds, and a piece of the columns."""
    k, s, end = part
    rounds, length = pace
    K, width = team.copies.shape
    own, sums = team.copies[k], team.sums
    left, right = k * width // K, (k + 1) * width // K
    w, move, pieces = team.w[left:right], team.move[left:right], team.copies[:, left:right]
    terms, losses, aside, total, moves = 0.0, 0.0, 0.0, 0.0, 0
    for r in range(rounds):
        at = 8 * (r % 2)  # others may still read the sums of the last round
        first, s = s, min(s + length, end)
        chosen, before = place.order[first:s], team.before[k]
        for t in range(s - first):
            before[t] = place.alpha[chosen[t]]
        a, b, c, _, d = steps(problem, place, own, first, s)
        terms, losses, aside, moves = terms + a, losses + b, aside + c, moves + d
        sums[k, at], sums[k, at + 3] = _change(problem, place, before, chosen)
        meet(team.gate, K)
        sums[k, at + 1], sums[k, at + 2] = _merge(w, pieces, move)
        meet(team.gate, K)
        tilt, bend = 0.0, 0.0
        for p in range(K):
            tilt += sums[p, at] + sums[p, at + 1] + 0.5 * sums[p, at + 3]
            bend += sums[p, at + 2] + sums[p, at + 3]
        theta = 1.0
        if tilt < _FULL * bend:
            theta = max(0.0, tilt / bend)
            _spread(w, pieces, move, theta - 1.0)
            _shorten(place.alpha, before, chosen, theta)
            meet(team.gate, K)
        if k == 0:  # what all gained together
            total += theta * (tilt - 0.5 * theta * bend)
    return terms, losses, aside, total, moves


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
