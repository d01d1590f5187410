"""Dual coordinate descent by several threads on one problem; the loops are in `solvers.rounds`.

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

from pegasos.core.barrier import close, gate
from pegasos.core.matrix import combine
from pegasos.core.rows import n_columns, n_rows, often, row_work
from pegasos.core.threads import allowed, in_company
from pegasos.objective.problem import Problem
from pegasos.solvers.rounds import Team, rounds
from pegasos.solvers.steps import Place, Tally

_OFTEN = 512  # columns that meet after each round: more of them cost more than they tell
_ROWS = 512  # of a thread's round; of twice as many the others know too little
_WHOLE = 8.0  # work between two meetings of all columns in ns, for each of them
_MEETINGS = 4  # of all columns in an epoch, at least
_ROUND, _ROUNDS = 4e4, 16  # work of a round, and their number at least, where all columns meet
_WORTH = 4e6  # work of an epoch: below, two threads gain nothing for sure
_PAYS = 32.0  # the same for each column


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
    if threads == 1:
        return False
    work = active * max(1.0, row_work(problem.rows))
    return work >= _WORTH and work >= _PAYS * n_columns(problem.rows)


def pace_of(problem: Problem, place: Place, active: int, threads: int) -> Pace | None:
    """None where meetings cost more than threads bring."""
    if not _is_worth(problem, active, threads):
        return None
    work, whole = max(1.0, row_work(problem.rows)), _WHOLE * n_columns(problem.rows)
    if not place.often.size:
        length = int(max(_ROUND, whole) / work) + 1
        return Pace(length, 1) if active >= _ROUNDS * threads * length else None
    most = active // (threads * _ROWS) // _MEETINGS
    return Pace(_ROWS, max(1, min(int(whole / (_ROWS * work)), most)))


def team_steps(
    problem: Problem, place: Place, span: tuple[int, int], pace: Pace, threads: int
) -> Tally:
    """Steps on the rows order[first:last] of a span; the same bits, whoever does them."""
    place = place._replace(noise=1.0)  # of a run that began with one thread
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
        tallies=np.zeros((2, threads, 4)),
        gate=gate(),
    )
    bounds = np.linspace(*span, threads + 1).astype(np.int64)
    due = (span[1] - span[0]) * max(1.0, row_work(problem.rows))

    def work(first: int, last: int) -> tuple[float, int]:
        meeting = threads if last - first == 1 else 1
        return rounds(problem, place, team, ((first, last), meeting, bounds), pace)

    try:
        found = in_company(work, threads, lambda: close(team.gate), due)
    except BaseException:  # copies may have gone on without w
        place.w[:] = problem.center + combine(problem.rows, problem.y * place.alpha)
        raise
    terms, losses, aside, moves = team.tallies[1].sum(axis=0)
    gain, quarrels = (sum(values) for values in zip(*found, strict=True))
    return Tally(terms, losses, aside, gain, int(moves), quarrels)
