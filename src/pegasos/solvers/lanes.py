"""Many problems in one sweep: dual coordinate descent with a group of problems on the same rows.

Problems:  min_w 1/2 ||w - w0||^2 + sum_i c_ip l(y_ip x_i.w), p = 1, 2, …: values of C, folds
           (c_ip = 0: row i is not in problem p), classes against the rest (y_ip)
Update:    as in solvers.dual, for all lanes that want the row; it is read once for all
Order:     one random permutation per epoch of the rows that some lane wants
Shrinking: as in solvers.dual, by a bit per row and lane, without looks at rows aside but at first
           with more caution, which falls with the epochs; all bits are set again after 10, 20,
           40, … of them; a lane is done when its own estimate of the gap says so, and then wants
           no row
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

from pegasos.core.lanes import LANES, LINES, lines
from pegasos.core.matrix import lane_combine
from pegasos.core.rng import stream
from pegasos.core.rows import n_columns, n_entries, n_rows
from pegasos.core.threads import side_by_side
from pegasos.objective.certificate import Evaluation, evaluate_all
from pegasos.objective.problem import Problem
from pegasos.objective.stretch import stretched
from pegasos.solvers.intercept import corrected, proximal_scale
from pegasos.solvers.lane_moves import (
    MEMORY,
    PATIENCE,
    LaneMoves,
    combined,
    has_moves,
    no_moves,
    visits_between,
)
from pegasos.solvers.lane_steps import by_line, caution_after, epochs, lanes_at, turns_of
from pegasos.solvers.steps import reach

_TICK = 1 << 21  # entries that a thread visits between two looks at the clock
_SHARE = 1.0  # of the goal: what the estimate must show before a certificate is made
_LOOKS = 3  # visits to follow for each row that a second-order step has looked at
_RENEW = 16  # second-order steps between two sums of W from alpha
_FAR = 20.0  # goals away: a lane to which second-order steps are worth their price
_TRIES = 3  # certificates of a lane before it is left to others


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
    """When to stop: relative gaps of tol, or a limit; the last `few` lanes of a group are left to
    runs of their own."""

    tol: float
    max_epochs: int
    deadline: float = np.inf
    few: int = 0


class Found(NamedTuple):
    """The answer of a lane and the epochs it took; `told` says where that was."""

    best: Evaluation
    epochs: int

    @property
    def told(self) -> str:
        return f"first {self.epochs} epochs together with other problems"


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
        self.moves: list[LaneMoves] = []
        self.since, self.combined = 0, 0
        self.each = -(-len(part) // LANES)  # lines
        if self.each > LINES:
            raise ValueError(f"a group holds up to {LINES * LANES} lanes, got {len(part)}")
        lanes = np.arange(self.each * LANES)
        self.running, self.epochs = lanes < len(part), np.zeros_like(lanes)

    @property
    def begun(self) -> bool:
        return bool(self.problems)

    def _begin(self) -> None:
        problems = [self.many.problem(p) for p in self.part]
        shared = self.many.shared
        c, targets = lines(n_rows(shared.rows), each=self.each), np.full(self.running.size, -1)
        centers = lines(n_columns(shared.rows) + 1, each=self.each)
        targets[: len(problems)] = [self.many.lanes[p].target for p in self.part]
        c[:, : len(problems)] = np.array([problem.c for problem in problems]).T
        centers[:, : len(problems)] = np.array([problem.center for problem in problems]).T
        if shared.free:
            shared = self._with_proximal_scale(problems, centers)
        self.problem = shared._replace(y=self.many.label)
        self.state = lanes_at(centers, c, targets, self.running)
        self.members, self.states = self.state.wanted.copy(), by_line(self.state)
        self.turns = turns_of(self.state)
        self.active = len(self.turns.listed)
        moving = has_moves(self.problem.loss)
        self.between = visits_between(self.problem) if moving else 1 << 62
        self.problems = problems  # the last: from here on it has begun

    def _with_proximal_scale(self, problems: list[Problem], centers: np.ndarray) -> Problem:
        shared = self.many.shared
        bias, norms = shared.rows.bias, shared.q - shared.rows.bias**2
        s = proximal_scale(norms, min(float(problem.c.sum()) for problem in problems))
        centers[-1] *= bias / s
        return shared._replace(rows=shared.rows._replace(bias=s), q=norms + s**2)

    def advance(self, visits: int) -> None:
        """Steps on so many rows, across the ends of epochs; at the end a certificate."""
        if not self.begun:
            self._begin()
        while visits > 0 and np.any(self.running):
            if self.cursor == 0:
                self._combine()
            last = min(self.look_back, self.goal.max_epochs)
            if self.epoch < PATIENCE:
                last = min(last, PATIENCE)
            goal = self.share * self.goal.tol, last, visits - self.between + self.since
            before, place = self.epoch, (self.cursor, self.active, visits, self.epoch)
            place = epochs(self.problem, self.turns, self.states, place, goal, self.rng)
            self.since += visits - place[2]
            self.cursor, self.active, visits, self.epoch = place
            self.epochs[self.running] = self.epoch
            if self.epoch > before:
                self._review()
        if not np.any(self.running):
            self._certify()

    def _combine(self) -> None:
        """Begin at the best point in the span of the last moves, where that costs little."""
        if self.epoch < PATIENCE or self.since < self.between:
            return
        self.since = 0
        if not (self.moves or self._far()):
            return
        if not self.moves or self.combined == _RENEW:
            self._renew()
            self.moves, self.combined = [no_moves(state) for state in self.states], 0
            return
        looks, oldest = 0, self.combined % MEMORY
        for state, moves in zip(self.states, self.moves, strict=True):
            looks += combined(self.problem, state, moves, oldest)
        self.combined, self.since = self.combined + 1, -_LOOKS * looks // self.each

    def _renew(self) -> None:
        """W of alpha: its rounding in float32 is what second-order steps multiply."""
        for state in self.states:
            y = np.where(self.problem.y[:, None] == state.targets, 1.0, -1.0)
            state.W[:] = state.centers + lane_combine(self.problem.rows, y * state.alpha)

    def _far(self) -> bool:
        """Whether a lane is far from its goal."""
        goal = _FAR * self.goal.tol * self.state.objective
        return bool(np.any(self.running & (self.state.gap > goal)))

    def _review(self) -> None:
        """Between epochs: who is done, and whether all rows are to be looked at again."""
        done = self.state.gap <= self.share * self.goal.tol * self.state.objective
        done |= (self.epoch >= self.goal.max_epochs) | (self.active == 0)
        if 0 < np.count_nonzero(self.running & ~done) <= self._left_alone:
            done = np.ones_like(self.running)
        again = self.epoch >= self.look_back
        if again or np.any(done & self.running):
            self._choose_rows(done, again)

    @property
    def _left_alone(self) -> int:
        """How many lanes are too few to go on together."""
        return self.goal.few if self.epoch >= PATIENCE else 0

    def _choose_rows(self, done: np.ndarray, again: bool) -> None:
        """Lanes that are done want no row any more, the others, `again`, all of theirs."""
        self.running &= ~done
        wanted = self.state.wanted
        if again:
            wanted[:], self.state.aside[:] = self.members, 0.0
            self.turns = turns_of(self.state)
            self.active, self.look_back = len(self.turns.listed), 2 * self.epoch
        wanted &= np.packbits(self.running, bitorder="little")

    def certified(self) -> list[Found]:
        """All lanes, of which those that came near enough are not looked at again."""
        left = [k for k in range(len(self.part)) if k not in self.near]
        alphas = (self.state.alpha[:, k].astype(np.float64) for k in left)
        seen = evaluate_all([self.problems[k] for k in left], alphas)
        found = dict(self.near)
        for k, best in zip(left, seen, strict=True):
            found[k] = Found(self._near_enough(k, best), int(self.epochs[k]))
            if found[k].best.certificate.relative_gap <= self.goal.tol:
                light = self.many.lanes[self.part[k]].w_only
                self.near[k] = _light(found[k]) if light else found[k]
        return [self.near.get(k, found[k]) for k in range(len(self.part))]

    def _near_enough(self, k: int, seen: Evaluation) -> Evaluation:
        """At a better multiple of w, if that is what a lane lacks; else as it is."""
        if seen.certificate.relative_gap <= self.goal.tol:
            return seen
        longer = stretched(self.problems[k], seen)
        return longer if longer.certificate.relative_gap <= self.goal.tol else seen

    def _certify(self) -> None:
        """The end, unless a lane has not come near enough and may go on."""
        found = self.certified()
        self.tries += 1
        short = [k for k in range(len(found)) if k not in self.near]
        last = self.tries == _TRIES or self.epoch >= self.goal.max_epochs
        if last or len(short) <= self._left_alone:
            self.found, self.problems = found, []
            del self.state, self.states, self.members, self.turns, self.moves
            return
        self.share *= 0.7
        limit = self.epoch + max(10, self.epoch // 4)  # or float32 stalls
        limit = min(self.goal.max_epochs, limit)
        self.goal = self.goal._replace(max_epochs=limit)
        for k in short:
            self._go_on(k, found[k].best)
        self.look_back, self.moves = self.epoch, []
        self._choose_rows(np.zeros_like(self.running), True)

    def _go_on(self, k: int, seen: Evaluation) -> None:
        """From what an exact evaluation found; if the intercept is free, it has balanced alpha."""
        inner = self.problem._replace(center=self.state.centers[:, k])
        alpha = self.state.alpha[:, k]
        w = corrected(self.problems[k], inner, alpha, seen) if self.problem.free else seen.w
        self.state.W[:, k], self.running[k] = w, True
        caution = caution_after(self.epoch, len(self.state.W))
        self.state.radius[k] = reach(caution, seen.certificate.gap)


def _light(answer: Found) -> Found:
    nothing = np.zeros(0)
    return answer._replace(best=answer.best._replace(alpha=nothing, margins=nothing))
