"""Dual coordinate descent by several threads on one problem; the loops are in `solvers.rounds`.

Each epoch deals the shuffled rows to K threads, so that of neighbouring groups of rows each has one
(`core.rng.deal`). A thread takes the steps of `solvers.dual` on its rows with a copy w_k of w of
its own, in which its moves count `grown` = 1 + 0.6 (K - 1) times: it takes the others to do the
like of what it does. In columns that many rows hold they do; where nobody else moves the steps to
come are a little too short, which the next epoch makes good. In a first epoch that foresees its end
(`solvers.steps.foreseen`) that is what holds the moves of the others, and they are not counted
again. At equal distances, a few times in an epoch of text, threads meet and add up their moves:

    w <- w + theta dw,  alpha <- alpha + theta dalpha,    dw = sum_k (w_k - w) / grown
    theta = min(1, (gain + bend / 2) / (||dw||^2 + bend)),  bend = sum_i r dalpha_i^2 / c_i
    gain = -w.dw - sum_i [c_i l*(-(alpha_i + dalpha_i)/c_i) - c_i l*(-alpha_i/c_i)]

theta maximises the dual on the segment where it is quadratic (`objective.losses.parabola`); else it
is that of a lower bound, which theta = 1 is known to beat nearly: the dual never falls. Where theta
is small threads work against each other all the same: the moves are undone, one thread does the
rest of the epoch, and half as many share the next. See decisions 012 and 034.

Jaggi et al., NIPS 2014 (CoCoA) have meetings once an epoch; Ma et al., ICML 2015 (CoCoA+) count
moves several times, those of the row at hand as well.
"""

from __future__ import annotations

import numpy as np

from pegasos.core.barrier import close, gate
from pegasos.core.matrix import combine
from pegasos.core.rows import n_columns, row_work
from pegasos.core.threads import in_company
from pegasos.objective.problem import Problem
from pegasos.solvers.rounds import ROWS, Team, rounds
from pegasos.solvers.steps import Place, Tally

_LENGTH = 4e4  # ns of work of a thread between two meetings, at least
_COLUMN = 12.0  # the same for each column: what a meeting adds up
_WORTH = 1.2e6  # ns of work of an epoch: below, two threads gain nothing for sure
_PAYS = 16.0  # the same for each column
_HEAVY, _MEETINGS = 3.0, 4  # mean c_i ||x_i||^2, above which an epoch needs so many meetings
_ALIKE = 0.6  # of its own moves a thread takes those of each other to be


def is_worth(problem: Problem, place: Place, active: int, threads: int) -> bool:
    """Whether an epoch of so many rows is shared: meetings cost less than threads bring."""
    work = active * max(1.0, row_work(problem.rows))
    if threads == 1 or work < max(_WORTH, _PAYS * n_columns(problem.rows)):
        return False
    return place.weight <= _HEAVY or active // threads >= _MEETINGS * _between(problem)


def _between(problem: Problem) -> int:
    """Rows of a thread between two meetings, about."""
    ns = max(_LENGTH, _COLUMN * n_columns(problem.rows))
    return int(ns / max(1.0, row_work(problem.rows))) + 1


def team_steps(problem: Problem, place: Place, span: tuple[int, int], threads: int) -> Tally:
    """Steps on the rows order[first:last] of a span; the same bits, whoever does them."""
    share = -(-(span[1] - span[0]) // threads)
    length = -(-share // max(1, round(share / _between(problem))))
    foreseen = place.noise < 1.0  # what is foreseen holds the moves of others
    place = place._replace(noise=place.noise / threads if foreseen else 1.0)
    team = Team(
        w=place.w,
        copies=np.empty((threads, len(place.w))),
        move=np.empty(len(place.w)),
        before=np.empty((threads, length)),
        sums=np.zeros((threads, 8)),
        room=np.empty((threads, 3, ROWS)),
        tallies=np.zeros((2, threads, 4)),
        gate=gate(),
        grown=1.0 if foreseen else 1.0 + _ALIKE * (threads - 1),
        length=length,
    )
    bounds = np.linspace(*span, threads + 1).astype(np.int64)
    due = (span[1] - span[0]) * max(1.0, row_work(problem.rows))

    def work(first: int, last: int) -> tuple[float, int]:
        meeting = threads if last - first == 1 else 1
        return rounds(problem, place, team, ((first, last), meeting, bounds))

    try:
        found = in_company(work, threads, lambda: close(team.gate), due)
    except BaseException:  # copies may have gone on without w
        place.w[:] = problem.center + combine(problem.rows, problem.y * place.alpha)
        raise
    terms, losses, aside, moves = team.tallies[1].sum(axis=0)
    gain, quarrels = (sum(values) for values in zip(*found, strict=True))
    return Tally(terms, losses, aside, gain, int(moves), quarrels)
