"""Dual coordinate descent.

Problem:   min_w 1/2 ||w - w0||^2 + sum_i c_i l(y_i x_i.w)
Dual:      max_alpha D(alpha), alpha_i / c_i in the domain of l*(-a), w = w0 + sum_i alpha_i y_i x_i
Update:    alpha_i <- dual_step(l, alpha_i, z_i, ||x_i||^2, c_i), w follows at the cost of a row
Order:     a fresh random permutation of the active rows in each epoch; of groups of neighbours, a
           few of which are mixed, where rows in any order would come from memory one by one
Shrinking: a variable at its bound leaves the epoch when its margin is further inside than
           `caution` ||x_i|| sqrt(2 gap); with caution = 1 and the true gap that is a proof that
           it stays there, since ||w - w*|| <= sqrt(2 gap). Far less caution pays, with a look at
           the margins of the rows aside whenever the estimate has fallen tenfold: those left
           out wrongly come back. So they do at each certificate.
Foresight: in a first epoch from 0 a step goes by the margin that is foreseen for the end of it
           (see `solvers.steps.foreseen`) where the loss is smooth and c_i ||x_i||^2 small; a sample
           of the rows then tells the gap
Excerpt:   in late epochs the rows that stay, if they are few, are a problem of their own (see
           `solvers.excerpt`)
Moves:     after some epochs each begins at the best point in the span of the last moves (see
           `solvers.moves`, and `solvers.curved_moves` for a dual that is not quadratic)
Stopping:  `estimate`, the sum over the epoch of c_i l(z_i) + c_i l*(-alpha_i/c_i) + alpha_i z_i:
           each term is >= 0 and their sum at one w is the duality gap. The terms are of margins
           before each step, so the sum is about half an epoch old; by the fall since the last
           one it is brought up to date; so it is within an epoch, where the gap falls fast. The
           driver certifies, and near its goal it asks for the gap, which the rows that stay tell.

The loop is the same for the problem of several classes; what it does with a row are the verbs of
`solvers.dual_verbs`.

Hsieh, Chang, Lin, Keerthi, Sundararajan, ICML 2008, Algorithm 3; Shalev-Shwartz, Zhang, JMLR 2013.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pegasos.core.rng import arrange, stream
from pegasos.core.rows import n_entries, n_rows, row_work
from pegasos.core.threads import allowed
from pegasos.objective.certificate import Evaluation
from pegasos.objective.stretch import ROUNDING
from pegasos.solvers import curved_moves, moves
from pegasos.solvers.dual_state import DualState, falls_fast, is_vague, place_of
from pegasos.solvers.dual_verbs import (
    advance,
    bend,
    gap_at,
    is_shared,
    noise_ahead,
    part,
    recall,
    sampled,
    start,
    weight_of,
)
from pegasos.solvers.excerpt import (
    all_alpha,
    at_hand,
    chosen_rows,
    excerpt_size,
    has_excerpts,
    moved_to,
    of_all,
    recalled,
    resumed,
    taken,
)
from pegasos.solvers.moves import no_moves, worthwhile
from pegasos.solvers.steps import near_rows, reach, sqdist, up_to_date

_PART = 2.5e5  # ns of work: fewer are not worth a return to Python
_TELLING = 0.2  # of an epoch: fewer rows say little of all
_QUARTERS, _HALVES = 4, 2  # parts of an epoch, of one by several threads
_ALONE = 16  # of an epoch one part, before threads share the others
_FEW = 0.5  # of all rows
_FIRST_LOOK, _NEXT_LOOK = 0.03, 0.1  # of the objective, of the estimate at the last look
_AT_WORK = 1 / 3  # of all rows, at most, in an excerpt
_SMALL, _LARGE, _OF_ALL = 1 << 17, 1 << 20, 1 / 16  # its entries; a larger one is no larger part
_SAFELY = 2.0  # times as many rows of usual length: they need not be counted


@dataclass(frozen=True)
class Dual:
    """Dual coordinate descent; `caution` <= 1 scales the safe shrinking radius.

    `memory`: how many moves it remembers (0: none); `patience`: epochs before it does, at most,
    those that a run has had `elsewhere` included.
    """

    caution: float = 0.002
    shrinking: bool = True
    memory: int = 3
    patience: int = moves.PATIENCE
    elsewhere: int = 0

    def init(self, problem: Any, seed: int, alpha: np.ndarray | None = None) -> DualState:
        n = n_rows(problem.rows)
        noise = noise_ahead(problem, alpha)
        alpha, w = start(problem, alpha)
        k, r = bend(problem)
        return DualState(
            alpha=alpha,
            w=w,
            order=np.arange(n),
            listed=np.arange(n),
            stays=np.ones(n, dtype=np.bool_),
            rng=stream(seed),
            active=n,
            cursor=0,
            radius=np.inf,
            terms=0.0,
            losses=0.0,
            aside=0.0,
            mark=np.inf,
            gain=0.0,
            moves=0,
            quarrels=0,
            visits=0,
            summed=0.0,
            estimate=np.inf,
            objective=np.inf,
            epoch=0,
            still=False,
            exhausted=False,
            past=None,
            k=k,
            r=r,
            weight=weight_of(problem),
            noise=noise,
        )

    def after(self, epochs: int) -> Dual:
        """For a run that has had so many epochs elsewhere."""
        return replace(self, elsewhere=self.elsewhere + epochs)

    def step(self, problem: Any, state: DualState) -> DualState:
        """One epoch over the active rows, or a slice of a long one."""
        state = resumed(problem, state)
        if state.cursor == 0:
            state = self._begun(problem, state)
        problem = at_hand(problem, state)
        span, threads = _next(problem, state)
        state = state.plus(*advance(problem, place_of(state), span, threads))
        state = state._replace(shared=threads > 1)
        if state.cursor < state.active:
            return _underway(problem, state)
        return self._closed(problem, state)

    def _begun(self, problem: Any, state: DualState) -> DualState:
        """The beginning of an epoch."""
        state = self._focus(problem, self._look(problem, state))
        problem = at_hand(problem, state)
        state = self._combine(problem, state)
        left = state.listed, state.active, state.stays, state.order
        pace = near_rows(problem.rows), state.rng, _hands(problem, state)
        return state._replace(active=arrange(*left, pace))

    def _closed(self, problem: Any, state: DualState) -> DualState:
        """The end of an epoch."""
        estimate, losses = up_to_date(state.terms, state.summed), state.losses
        if is_vague(state):
            estimate, losses = sampled(problem, place_of(state), state.active)
        objective = _penalty(problem, state) + losses + state.aside
        return state._replace(
            cursor=0,
            terms=0.0,
            losses=0.0,
            moves=0,
            summed=state.terms,
            estimate=estimate,
            objective=objective,
            mark=min(state.mark, _FIRST_LOOK * objective),
            radius=self.radius(state.terms),
            epoch=state.epoch + 1,
            still=state.still and state.moves == 0,
            exhausted=state.moves == 0,
        )

    def _look(self, problem: Any, state: DualState) -> DualState:
        """Bring back who is aside and would move, if the estimate says that it is time."""
        early = state.noise < 1.0 and state.epoch <= 2
        told = not (early or is_vague(state))  # by a sample, which errs to both sides
        nobody = state.excerpt is None and state.stays.all()
        if state.estimate >= state.mark or nobody or not told:
            return state
        alpha, w, stays = of_all(state)
        radius = min(state.radius, self.radius(state.estimate))
        place = place_of(state)._replace(alpha=alpha, w=w, stays=stays, radius=radius)
        state = state._replace(radius=radius, aside=recall(problem, place))
        return self._listed(recalled(state, stays), state.estimate)

    def _focus(self, problem: Any, state: DualState) -> DualState:
        """Take the rows that stay as an excerpt, where they are few and will be needed often: from
        the time on when moves are remembered, but not from one certificate to the next."""
        begun = state.epoch + self.elsewhere >= min(self.patience, moves.PATIENCE)
        if state.excerpt is not None or not begun or state.still or falls_fast(state):
            return state
        staying, entries = np.count_nonzero(state.stays), n_entries(problem.rows)
        most, share = max(_LARGE, _OF_ALL * entries), staying / state.n
        if share > _AT_WORK or not _SMALL < share * entries <= _SAFELY * most:
            return state
        threads = max(1, allowed() >> state.quarrels)
        if not has_excerpts(problem) or is_shared(problem, place_of(state), staying, threads):
            return state
        rows = chosen_rows(state)
        return taken(problem, state, rows) if excerpt_size(problem, rows) <= most else state

    def _combine(self, problem: Any, state: DualState) -> DualState:
        """Go to the best point in the span of the last moves, once descent has had its epochs."""
        kind = _kind_of_moves(problem, state)
        if not (self.memory and kind):
            return state
        if state.epoch + self.elsewhere < min(self.patience, kind.patience(state)):
            return state
        place, visits = place_of(state), state.visits
        if state.past is None:
            return state._replace(past=no_moves(problem, place, visits, self.memory), gain=0.0)
        if not (kind.is_far(state) and worthwhile(problem, place, visits - state.past.visits)):
            return state
        past = kind.combined(problem, place, state.past, state.gain, visits)
        return state._replace(past=past, gain=0.0, still=False)

    def radius(self, gap: float) -> float:
        """Of the reach of margins; infinite: nothing is set aside."""
        return float(reach(self.caution, gap)) if self.shrinking else np.inf

    def gap_now(self, problem: Any, state: DualState) -> float:
        """From the rows that stay, if they are few; not where an estimate tells soon enough."""
        fine = state.estimate <= ROUNDING * abs(state.objective)
        if fine or falls_fast(state) or state.active > _FEW * state.n:
            return np.inf
        if state.excerpt is None:
            return gap_at(problem, place_of(state))
        return gap_at(at_hand(problem, state), place_of(state), state.left_out[0])

    def candidate(self, problem: Any, state: DualState) -> tuple[np.ndarray, None]:
        return all_alpha(state), None

    def refresh(self, problem: Any, state: DualState, seen: Evaluation) -> DualState:
        """Go on from the exact w; a row whose exact margin says so stays or goes aside."""
        state = moved_to(state, seen.w)._replace(cursor=0, terms=0.0, losses=0.0, moves=0)
        state = self._parted(problem, state, seen.margins, seen.certificate.gap)
        estimate, done = max(state.estimate, seen.certificate.gap), state.exhausted and state.still
        noise = state.noise if state.epoch else 1.0  # the first epoch would begin again
        return state._replace(still=True, exhausted=done, estimate=estimate, noise=noise)

    def _parted(self, problem: Any, state: DualState, margins: Any, gap: float) -> DualState:
        """All rows are of the next epoch but those that their margins set aside."""
        alpha, w, stays = of_all(state)
        stays[:] = True
        radius, aside = min(state.radius, self.radius(gap)), 0.0
        if radius < np.inf:
            place = place_of(state)._replace(alpha=alpha, w=w, stays=stays, radius=radius)
            aside = part(problem, place, margins)
        return self._listed(recalled(state._replace(radius=radius, aside=aside), stays), gap)

    def _listed(self, state: DualState, gap: float) -> DualState:
        """With a list of all rows, of which the next epoch takes those that stay."""
        state.listed[:] = np.arange(len(state.listed))
        mark = min(state.mark, _NEXT_LOOK * gap)
        return state._replace(active=len(state.listed), mark=mark)


def _kind_of_moves(problem: Any, state: DualState) -> Any:
    """The module that knows their dual; None: it has no second-order steps."""
    if not np.isnan(state.k):
        return moves
    return curved_moves if curved_moves.is_curved(problem) else None


def _next(problem: Any, state: DualState) -> tuple[tuple[int, int], int]:
    """The rows to go over next, and by how many threads.

    After a second-order step all rows have the same to correct, and threads would each do it: from
    the time on when moves are remembered one begins an epoch alone.
    """
    threads = _threads(problem, state, state.active)
    alone = max(1, state.active // _ALONE)
    if threads > 1 and state.past is not None and state.cursor < alone:
        return (state.cursor, alone), 1
    return (state.cursor, _pause(problem, state, _HALVES if threads > 1 else _QUARTERS)), threads


def _threads(problem: Any, state: DualState, active: int) -> int:
    """How many share an epoch of so many rows."""
    threads = 1 if state.excerpt is not None else max(1, allowed() >> state.quarrels)
    return threads if is_shared(problem, place_of(state), active, threads) else 1


def _hands(problem: Any, state: DualState) -> tuple[int, int]:
    """For how many threads to deal the rows of an epoch, and in how many parts."""
    staying = int(np.count_nonzero(state.stays))
    return _threads(problem, state, staying), _HALVES if falls_fast(state) else 1


def _pause(problem: Any, state: DualState, parts: int) -> int:
    """The end of the epoch, or of one of its parts: where the gap falls fast, a part of an epoch
    may be all that is left to do."""
    if not falls_fast(state):
        return state.active
    part = max(state.active // parts, int(_PART / max(1.0, row_work(problem.rows))))
    end = state.cursor - state.cursor % part + part
    return end if end + part // 2 < state.active else state.active


def _penalty(problem: Any, state: DualState) -> float:
    away = sqdist(state.w.reshape(-1), problem.center.reshape(-1)) + state.left_out[1]
    return 0.5 * away


def _underway(problem: Any, state: DualState) -> DualState:
    """With an estimate within an epoch, from the share of it that is done."""
    share = state.cursor / state.active
    if state.epoch > 0 and is_vague(state):
        estimate, losses = sampled(problem, place_of(state), state.active)
        objective = _penalty(problem, state) + losses + state.aside
        return state._replace(estimate=estimate, objective=objective)
    if share < _TELLING or not falls_fast(state):
        return state
    return state._replace(estimate=float(up_to_date(state.terms, state.summed, share)))
