"""Many problems in one sweep: dual coordinate descent with up to LANES problems on the same rows.

Problems:  min_w 1/2 ||w - w0||^2 + sum_i c_ip l(y_ip x_i.w), p = 1, 2, …: values of C, folds
           (c_ip = 0: row i is not in problem p), classes against the rest (y_ip)
Update:    as in solvers.dual, for all lanes that want the row; it is read once for all
Order:     one random permutation per epoch of the rows that some lane wants
Shrinking: as in solvers.dual, by a bit per row and lane, all set again after 10, 20, 40, … epochs;
           a lane is done when its own estimate of the gap says so, and then wants no row
Stopping:  when all lanes of a group are done they are certified together, in float64; who is not
           near enough goes on
Intercept: free by the proximal centre of solvers.intercept

W is float32: good for gaps of 1e-4, not less.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pegasos.core.dispatch import helper
from pegasos.core.jit import hot
from pegasos.core.lanes import LANES, lines, put
from pegasos.core.many import row_axpys, row_dots
from pegasos.core.prefetch import prefetch
from pegasos.core.rng import shuffle, stream
from pegasos.core.rows import n_columns, n_entries, n_rows, row_prefetch
from pegasos.core.threads import side_by_side
from pegasos.objective.certificate import Evaluation, evaluate_all
from pegasos.objective.losses import conjugate, dual_step, value
from pegasos.objective.problem import Problem
from pegasos.solvers.dual import Dual
from pegasos.solvers.intercept import proximal_scale
from pegasos.solvers.steps import settled

_AHEAD = 3
_TICK = 1 << 21  # entries that a thread visits between two looks at the clock
_SHARE = 1.0  # of the goal: what the estimate must show before a certificate is made
_TRIES = 3  # certificates of a lane before it is left to others


_NUMBERS = 10  # of a lane at a row, the lines of an array
_RADIUS, _TERMS, _LOSSES, _ASIDE, _TARGET, _OLD, _C, _SCORE, _NEW, _STEP = range(_NUMBERS)


class Lane(NamedTuple):
    """A problem: class `target` against the rest, weights C c_i; c_i = 0: row i is not in it.

    If `w_only` and near enough, it leaves w and a certificate, not alpha and margins.
    """

    target: int
    C: float
    center: np.ndarray
    c: np.ndarray
    w_only: bool = False


class Many(NamedTuple):
    """What problems share (not y, c, w0); the class of each row; the lanes."""

    shared: Problem
    label: np.ndarray
    lanes: list[Lane]

    def problem(self, p: int) -> Problem:
        """One of the problems on its own."""
        lane = self.lanes[p]
        y = np.where(self.label == lane.target, 1.0, -1.0)
        return self.shared._replace(y=y, c=lane.C * lane.c, center=lane.center)


class Goal(NamedTuple):
    """When to stop: relative gaps of tol, or a limit."""

    tol: float
    max_epochs: int
    deadline: float = np.inf


class Found(NamedTuple):
    """The answer of a lane and the epochs it took; `told` says where that was."""

    best: Evaluation
    epochs: int

    @property
    def told(self) -> str:
        return f"first {self.epochs} epochs together with other problems"


class LaneState(NamedTuple):
    """alpha, W and `wanted` (a bit per lane) as steps change them; radius; sums of the epoch."""

    alpha: np.ndarray
    W: np.ndarray
    wanted: np.ndarray
    order: np.ndarray
    radius: np.ndarray
    terms: np.ndarray
    losses: np.ndarray
    aside: np.ndarray


def descend(
    many: Many, groups: list[list[int]], goal: Goal, seed: int
) -> tuple[list[Found | None], bool]:
    """What was found for each lane, certified (None: it did not begin); whether Ctrl-C came.

    What is found depends on the groups, not on the number of threads.
    """
    visits = _TICK * n_rows(many.shared.rows) // max(1, n_entries(many.shared.rows)) + 1

    def work(part: list[int], halted: Callable[[], bool]) -> list[Found] | None:
        group = _Group(many, part, goal, seed)
        while not (group.found or halted() or time.perf_counter() >= goal.deadline):
            group.advance(visits)
        return group.found or (group.certified() if group.begun else None)

    answers, interrupted = side_by_side(work, groups)
    found: list[Found | None] = [None] * len(many.lanes)
    for part, group in zip(groups, answers, strict=True):
        for p, answer in zip(part, group or [], strict=group is not None):
            found[p] = answer
    return found, interrupted


class _Group:
    """Lanes that are swept together."""

    def __init__(self, many: Many, part: list[int], goal: Goal, seed: int):
        self.many, self.part, self.goal = many, part, goal
        self.problems: list[Problem] = []
        self.found: list[Found] = []
        self.near: dict[int, Found] = {}
        self.epoch, self.cursor, self.look_back, self.tries = 0, 0, 10, 0
        self.share, self.rng = _SHARE, stream(seed)
        self.running, self.epochs = np.arange(LANES) < len(part), np.zeros(LANES, dtype=int)

    @property
    def begun(self) -> bool:
        return bool(self.problems)

    def _begin(self) -> None:
        problems = [self.many.problem(p) for p in self.part]
        shared = self.many.shared
        c, self.targets = lines(n_rows(shared.rows)), np.full(LANES, -1)
        self.centers = lines(n_columns(shared.rows) + 1)
        for k, problem in enumerate(problems):
            c[:, k], self.targets[k] = problem.c, self.many.lanes[self.part[k]].target
            self.centers[:, k] = problem.center
        if shared.free:
            shared = self._with_proximal_scale(problems)
        self.problem = shared._replace(c=c, y=self.many.label)
        self.members = ((c > 0.0) @ (1 << np.arange(LANES))).astype(np.uint8)
        W, self.sqdist = lines(len(self.centers)), np.zeros(LANES)
        W[:] = self.centers
        sums = (np.zeros(LANES) for _ in range(3))
        order = np.flatnonzero(self.members)
        radius = np.full(LANES, np.finfo(float).max)  # not inf: 0 times it is 0
        self.state = LaneState(lines(len(c)), W, self.members.copy(), order, radius, *sums)
        self.active = len(order)
        self.problems = problems  # the last: from here on it has begun

    def _with_proximal_scale(self, problems: list[Problem]) -> Problem:
        shared = self.many.shared
        bias, norms = shared.rows.bias, shared.q - shared.rows.bias**2
        s = proximal_scale(norms, min(float(problem.c.sum()) for problem in problems))
        self.centers[-1] *= bias / s
        return shared._replace(rows=shared.rows._replace(bias=s), q=norms + s**2)

    def advance(self, visits: int) -> None:
        """Steps on so many rows, across the ends of epochs; at the end a certificate."""
        if not self.begun:
            self._begin()
        while visits > 0 and np.any(self.running):
            if self.cursor == 0:
                shuffle(self.state.order, self.active, self.rng)
            self.cursor, self.active, visits = _sweep(
                self.problem, self.state, self.targets, (self.cursor, self.active, visits)
            )
            if self.cursor >= self.active:
                self._end_of_epoch()
        if not np.any(self.running):
            self._certify()

    def _end_of_epoch(self) -> None:
        s, free = self.state, self.problem.free
        gap, pull = s.terms.copy(), (s.W[-1] - self.centers[-1]) * self.running
        if self.epoch < 10 or self.epoch % 8 == 0:  # it changes little, and costs a pass over W
            self.sqdist = _sqdist(s.W, self.centers)
        objective = 0.5 * self.sqdist + s.losses + s.aside
        if free:
            gap += np.abs(pull) / self.problem.rows.bias
            self.centers[-1] += pull
            s.W[-1] += pull
        s.radius[:] = Dual().radius(gap)
        s.terms[:], s.losses[:] = 0.0, 0.0
        self.epoch, self.cursor = self.epoch + 1, 0
        self.epochs[self.running] = self.epoch
        near = gap <= self.share * self.goal.tol * objective
        done = near | (self.epoch >= self.goal.max_epochs)
        again = self.epoch >= self.look_back
        if again or self.active == 0 or np.any(done & self.running):
            self._choose_rows(done | (self.active == 0), again)

    def _choose_rows(self, done: np.ndarray, again: bool) -> None:
        """Lanes that are done want no row any more, the others, `again`, all of theirs."""
        self.running &= ~done
        wanted = self.state.wanted
        if again:
            wanted[:], self.state.aside[:] = self.members, 0.0
            self.active, self.look_back = len(self.state.order), 2 * self.epoch
        wanted &= np.uint8(self.running @ (1 << np.arange(LANES)))
        order = self.state.order[: self.active]
        left = wanted[order] != 0
        order[:] = np.concatenate([order[left], order[~left]])
        self.active = int(left.sum())

    def certified(self) -> list[Found]:
        """All lanes, of which those that came near enough are not looked at again."""
        left = [k for k in range(len(self.part)) if k not in self.near]
        alphas = (self.state.alpha[:, k].astype(np.float64) for k in left)
        seen = evaluate_all([self.problems[k] for k in left], alphas)
        found = dict(self.near)
        for k, best in zip(left, seen, strict=True):
            found[k] = Found(best, int(self.epochs[k]))
            if best.certificate.relative_gap <= self.goal.tol:
                light = self.many.lanes[self.part[k]].w_only
                self.near[k] = _light(found[k]) if light else found[k]
        return [self.near.get(k, found[k]) for k in range(len(self.part))]

    def _certify(self) -> None:
        """The end, unless a lane has not come near enough and may go on."""
        found = self.certified()
        self.tries += 1
        short = [k for k in range(len(found)) if k not in self.near]
        if not short or self.tries == _TRIES or self.epoch >= self.goal.max_epochs:
            self.found, self.problems = found, []
            del self.state, self.members, self.centers
            return
        self.share *= 0.7
        limit = min(
            self.goal.max_epochs, self.epoch + max(10, self.epoch // 4)
        )  # or float32 stalls
        self.goal = self.goal._replace(max_epochs=limit)
        for k in short:
            w, proof = found[k].best.w, found[k].best.certificate
            self.state.W[:-1, k], self.running[k] = w[:-1], True
            self.state.radius[k] = Dual().radius(proof.gap)
            if not self.problem.free:
                self.state.W[-1, k] = w[-1]
        self.look_back = self.epoch
        self._choose_rows(np.zeros(LANES, dtype=bool), True)


def _light(answer: Found) -> Found:
    nothing = np.zeros(0)
    return answer._replace(best=answer.best._replace(alpha=nothing, margins=nothing))


@hot
def _sqdist(W, centers):
    """||w_p - w0_p||^2 of each lane"""
    total = np.zeros(LANES)
    for j in range(W.shape[0]):
        for p in range(LANES):
            away = W[j, p] - centers[j, p]
            total[p] += away * away
    return total


@hot
def _sweep(problem, state, targets, place):
    """Steps on up to `visits` rows from place s on; returns place, active rows, visits left."""
    rows, order, wanted = problem.rows, state.order, state.wanted
    s, active, visits = place
    line = np.empty((1, LANES), np.float32)
    work = np.empty((_NUMBERS, LANES))  # one array: the compiler sees that its lines are apart
    work[_RADIUS], work[_TERMS], work[_LOSSES] = state.radius, state.terms, state.losses
    work[_ASIDE], work[_TARGET] = state.aside, targets
    while s < active and visits > 0:
        visits -= 1
        if s + _AHEAD < active:
            ahead = order[s + _AHEAD]
            row_prefetch(rows, ahead)
            prefetch(state.alpha, ahead * LANES)
            prefetch(problem.c, ahead * LANES)
            prefetch(problem.q, ahead)
            prefetch(problem.y, ahead)
            prefetch(wanted, ahead)
        i = order[s]
        row_dots(rows, i, state.W, line)
        put(line, 0, 1.0, work, _SCORE)
        put(state.alpha, i, 1.0, work, _OLD)
        put(problem.c, i, 1.0, work, _C)
        left, moved = _steps(problem, i, wanted[i], work)
        wanted[i] = left
        if left == 0:
            active -= 1
            order[s], order[active] = order[active], i
            continue
        if moved:
            put(work, _NEW, 1.0, state.alpha, i)
            put(work, _STEP, 1.0, line, 0)
            row_axpys(rows, i, line, state.W)
        s += 1
    state.terms[:], state.losses[:], state.aside[:] = work[_TERMS], work[_LOSSES], work[_ASIDE]
    return s, active, visits


@helper
def _steps(problem, i, want, work):
    """The steps of all lanes on row i; which of them still want it, and whether any moved.

    Without branches, so that it becomes vector instructions.
    """
    loss, label, q, root = problem.loss, problem.y[i], problem.q[i], np.sqrt(problem.q[i])
    left, moved = np.int64(0), np.int64(0)
    for p in range(LANES):
        y = 1.0 if label == work[_TARGET, p] else -1.0
        c, old, at = work[_C, p], work[_OLD, p], y * work[_SCORE, p]
        share, cost = old / c, c * value(loss, at)
        term = cost + c * conjugate(loss, share) + old * at
        new = np.float64(np.float32(dual_step(loss, old, at, q, c)))
        wants = (want >> p) & 1 != 0
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
