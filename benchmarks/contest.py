"""Time to a goal: for each entrant the loosest setting whose objective is at most the goal.

All go through the same steps. First each way of each entrant is tightened until it is there, or
until its fits have taken longer than the patience, which for rivals is at most a multiple of our
own whole fit: what takes longer has lost by any measure. Then those that got there are repeated, in
turns, as often for all, and more often where a round takes milliseconds; the best time of a run
that is there counts. Each round has an order of its own, since a fit of milliseconds takes up to a
third longer after one that has left nothing of it in the caches. Processes wait for each other, so
that nobody computes beside anybody else.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from benchmarks.objective import objective
from benchmarks.rivals.entrants import ENTRANTS, OURS
from benchmarks.rivals.process import FitError, Problem, Worker

WORTH, ROUNDS = 4.0, 15  # seconds of repetitions that a case is worth, and how many at most
TIMES, LEAST = 40.0, 1.0  # the patience with a rival: so many of our fits, at least so many seconds


class Outcome(NamedTuple):
    """Seconds of the best run that reached the goal, or None, and the lowest objective met.

    `failed` is the longest run that did not get there: where none did, the goal takes longer.
    """

    seconds: float | None
    primal: float
    setting: dict
    spent: float
    note: str
    failed: float = 0.0


class Lane:
    """One way of one entrant towards the goal."""

    def __init__(self, worker: Worker, settings: list[dict]):
        self.worker, self.settings = worker, settings
        self.setting: dict = {}
        self.best, self.primal, self.spent, self.note = np.inf, np.inf, 0.0, ""
        self.failed = 0.0

    def run(self, problem: Problem, goal: float, seconds: float) -> bool:
        """One fit; whether it reached the goal."""
        start = time.perf_counter()
        try:
            taken, w = self.worker.fit(problem, self.setting, seconds)
        except FitError as error:
            self.note = str(error)
            taken = min(time.perf_counter() - start, seconds)
            self.spent, self.failed = self.spent + taken, max(self.failed, taken)
            return False
        self.spent += taken
        primal = objective(problem.X, problem.y, w, problem.C, problem.loss)
        self.primal = np.fmin(self.primal, primal)
        if primal <= goal:
            self.best = min(self.best, taken)
        else:
            self.failed = max(self.failed, taken)
        return primal <= goal

    def search(self, problem: Problem, goal: float, patience: float) -> bool:
        """Tighten until the goal is reached, an error occurs or patience ends."""
        for setting in self.settings:
            self.setting = setting
            if self.run(problem, goal, patience - self.spent):
                return True
            if self.note or self.spent >= patience:
                break
        return False


def contest(
    workers: dict[str, Worker],
    problem: Problem,
    eps: float,
    goal: float,
    repeats: int,
    patience: float,
) -> dict[str, Outcome]:
    """The outcome of every entrant that knows the loss."""
    lanes = {
        name: [Lane(worker, way) for way in ENTRANTS[name].ways(problem.loss, eps)]
        for name, worker in workers.items()
    }
    there = []
    for name in sorted(lanes, key=lambda name: name not in OURS):
        there += [lane for lane in lanes[name] if lane.search(problem, goal, patience)]
        if name in OURS and there:
            patience = min(patience, max(LEAST, TIMES * min(lane.best for lane in there)))
    one, orders = sum(lane.best for lane in there), np.random.default_rng(0)
    for _ in range(max(repeats, min(ROUNDS, int(WORTH / max(one, 1e-3)))) - 1):
        for k in orders.permutation(len(there)):
            there[k].run(problem, goal, patience)
    return {name: _outcome(own) for name, own in lanes.items() if own}


def _outcome(lanes: list[Lane]) -> Outcome:
    """The fastest way; without one that got there, the closest, and the time of all."""
    lane = min(lanes, key=lambda lane: (lane.best, lane.primal))
    reached = bool(np.isfinite(lane.best))
    spent = sum(each.spent for each in lanes)
    note = "" if reached else lane.note
    best, failed = lane.best if reached else None, min(each.failed for each in lanes)
    return Outcome(best, lane.primal, lane.setting, spent, note, failed)
