"""The driver: the one owner of stopping, certificates, the clock, history and interruption.

A solver knows none of these. It is a frozen dataclass with

    init(problem, seed, alpha=None) -> state      start, or start again from alpha
    step(problem, state) -> state                 a slice of work: ~0.1 s, or a Newton step
    candidate(problem, state) -> alpha, w or None the point to certify (None: w = w0 + v(alpha))
    refresh(problem, state, seen) -> state        go on from an exact evaluation
    gap_now(problem, state) -> float              if it has one: the gap, nearer than its estimate,
                                                  for less than an evaluation (inf: not known)
    goal                                          if it has one: the relative gap that is wanted

and its state a NamedTuple with `epoch`, `estimate` (of the gap; inf if unknown), `objective` (about
the primal value) and `exhausted` (True: another step cannot improve the answer).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from pegasos.objective.certificate import Certificate, Evaluation, better, evaluate
from pegasos.objective.stretch import stretched
from pegasos.solvers.stops import Scored, Validation, best_scoring, heeding, held, judged

_DOUBT = 0.4  # of the estimate: what the gap may be as long as nobody has told it
_LONG, _MORE_DOUBT = 20, 0.15  # the same after so many epochs
_SURELY = 0.8  # of the goal: after a certificate that ended nothing the next may come at once
_HOPE = 0.8  # of the share that was told: what it may be the next time


class Solver(Protocol):
    """What the driver asks of a solver."""

    def init(self, problem: Any, seed: int, alpha: np.ndarray | None = None) -> Any: ...
    def step(self, problem: Any, state: Any) -> Any: ...
    def candidate(self, problem: Any, state: Any) -> tuple[np.ndarray, np.ndarray | None]: ...
    def refresh(self, problem: Any, state: Any, seen: Evaluation) -> Any: ...


class Progress(NamedTuple):
    """A moment of a run. `certificate` is None where none was computed, `stop` until the end."""

    epoch: int
    seconds: float
    estimate: float
    certificate: Certificate | None
    stop: str | None


@dataclass(frozen=True)
class Stop:
    """When to stop. `callback(progress)`, asked after each step, may return True to stop.

    `every`: certify after each so many epochs, beside the times when it may end the run;
    `first_check`: after so many at the latest, then at twice as many. `rules`: see `solvers.stops`.
    """

    tol: float = 1e-3
    max_epochs: int = 1000
    max_seconds: float = np.inf
    callback: Callable[[Progress], bool | None] | None = None
    every: int | None = None
    first_check: int = 40
    rules: tuple[Any, ...] = ()

    @property
    def validation(self) -> Validation | None:
        return next((rule for rule in self.rules if isinstance(rule, Validation)), None)


class Snapshot(NamedTuple):
    """Everything that a run needs to go on as if it had never stopped."""

    state: Any
    best: Evaluation | None
    history: list[Progress]
    stop_reason: str
    seconds: float
    pace: tuple[int, int, int, float, float, float]
    scored: Scored | None = None


@dataclass
class Run:
    """What a run has found so far; `best` holds the best proven w and alpha."""

    best: Evaluation
    history: list[Progress]
    stop_reason: str
    state: Any

    @property
    def certificate(self) -> Certificate:
        return self.best.certificate


def run(solver: Solver, problem: Any, stop: Stop, seed: int = 0, alpha=None) -> Run:
    """Iterate to the end. KeyboardInterrupt ends the run with the best answer so far."""
    driver = Driver(solver, problem, stop, seed, alpha)
    for _ in driver:
        pass
    return driver.result()


def _told(solver: Any, stop: Stop) -> Any:
    """The solver, which knows what it has to."""
    solver = heeding(solver, stop.rules)
    return replace(solver, goal=stop.tol) if hasattr(solver, "goal") else solver


class Driver:
    """Iterating yields a Progress after each step; `result()` may be called at any time."""

    def __init__(self, solver: Solver, problem: Any, stop: Stop, seed: int = 0, *start: Any):
        """`start`: what `init` of the solver takes to begin with, alpha first."""
        self.solver, self.problem = _told(solver, stop), problem
        self.stop, self.callback = stop, stop.callback
        self.best: Evaluation | None = None
        self.scored: Scored | None = None
        self.history: list[Progress] = []
        self.stop_reason = "running"
        self._start = time.perf_counter()
        self._next_check = stop.first_check
        self.state = self.solver.init(problem, seed, *start)
        self._stepped = False
        self._certified, self._not_before, self._last_gap = -1, 1, 0.0
        self._share, self._asked = np.nan, np.inf  # gap / estimate when last told, that estimate
        if any(given is not None for given in start) or problem.center.any():
            self._certify()

    def __iter__(self) -> Iterator[Progress]:
        solved = self._solved()
        if self.best is not None and solved is not None:
            self.stop_reason = solved
            self.history.append(self._progress(solved, self.best.certificate))
            yield self.history[-1]
        while self.stop_reason == "running":
            try:
                with np.errstate(all="ignore"):  # what overflows does not get a certificate
                    progress = self._advance()
            except KeyboardInterrupt:
                progress = self._progress("interrupted")
            if progress.certificate is not None:
                self.history.append(progress)
            self.stop_reason = progress.stop or self.stop_reason
            yield progress

    def interrupt(self) -> Run:
        """End here, as Ctrl-C does."""
        self.stop_reason = "interrupted"
        return self.result()

    def snapshot(self) -> Snapshot:
        """The run as it is between two steps."""
        due = self._next_check, self._certified, self._not_before
        pace = (*due, self._last_gap, self._share, self._asked)
        seconds = time.perf_counter() - self._start
        history = list(self.history)
        reason = self.stop_reason
        return Snapshot(self.state, self.best, history, reason, seconds, pace, self.scored)

    def restore(self, saved: Snapshot) -> None:
        """Go on from a snapshot of a run of the same solver on the same problem."""
        self.state, self.best, self.history = saved.state, saved.best, list(saved.history)
        self.scored = saved.scored
        limited = saved.stop_reason == "max_iter" and saved.state.epoch >= self.stop.max_epochs
        self.stop_reason = "max_iter" if limited else "running"  # limits may be higher now
        self._start = time.perf_counter() - saved.seconds
        self._next_check, self._certified, self._not_before = saved.pace[:3]
        self._last_gap, self._share, self._asked = saved.pace[3:]
        self._stepped = saved.state.epoch > self._certified

    def point(self) -> np.ndarray:
        """The current w, computed for who asks."""
        return evaluate(self.problem, *self.solver.candidate(self.problem, self.state)).w

    def result(self) -> Run:
        """The best answer; certified now if steps were taken since.

        A second Ctrl-C, during that, takes the last certified one if there is one.
        """
        if self.best is None or self._stepped:
            try:
                self._certify()
            except KeyboardInterrupt:
                if self.best is None:
                    raise
                self.stop_reason = "interrupted"
        assert self.best is not None
        return Run(self._answer(self.best), self.history, self.stop_reason, self.state)

    def _answer(self, best: Evaluation) -> Evaluation:
        return best_scoring(self.scored, best) if self.scored else best

    def _solved(self) -> str | None:
        """What ends a run that has reached tol: the gap, unless another w scores better."""
        if self.best is None or not self.best.certificate.relative_gap <= self.stop.tol:
            return None
        proven = self._answer(self.best).certificate.relative_gap <= self.stop.tol
        return "gap" if proven else Validation.reason

    def _advance(self) -> Progress:
        self._stepped = True
        self.state = self.solver.step(self.problem, self.state)
        out_of_time = time.perf_counter() - self._start >= self.stop.max_seconds
        out_of_epochs = self.state.epoch >= self.stop.max_epochs
        rule = held(self.stop.rules, self.state)
        due = out_of_time or out_of_epochs or rule is not None or self._due()
        certificate = self._certify() if due else None
        rule = rule and held(self.stop.rules, self.state)  # an exact evaluation may refute it
        reason = self._solved()
        if reason is None and rule is not None:
            reason = rule
        elif reason is None and self.state.exhausted:
            reason = "stalled"
        elif reason is None and self._scored_enough():
            reason = Validation.reason
        elif reason is None and (out_of_time or out_of_epochs):
            reason = "max_time" if out_of_time else "max_iter"
        progress = self._progress(reason, certificate)
        asked = self.callback is not None and self.callback(progress)
        return progress._replace(stop="callback") if asked and reason is None else progress

    def _due(self) -> bool:
        """Whether an exact evaluation may end the run, or enough epochs went by without one."""
        state = self.state
        if state.exhausted:
            return True
        new = state.epoch > self._certified
        every = 1 if self.stop.validation else self.stop.every
        if new and every is not None and state.epoch % every == 0:
            return True
        goal = self.stop.tol * state.objective
        low = max(goal, 0.03 * self._last_gap)
        ripe = state.epoch >= self._next_check or state.estimate <= low
        if ripe and (state.epoch >= self._not_before or self._made_up(goal)):
            return True
        return self._nearer(goal)

    def _made_up(self, goal: float) -> bool:
        """Whether the gap is there now, as its share of the estimate, when last told, says."""
        estimate = self.state.estimate
        return estimate < self._asked and max(self._share, 1.0) * estimate <= _SURELY * goal

    def _nearer(self, goal: float) -> bool:
        """Whether the gap is there already, asked where the estimate is not far above."""
        state, share = self.state, _HOPE * self._share
        if np.isnan(share):
            share = _DOUBT if state.epoch < _LONG else _MORE_DOUBT
        new = state.epoch > self._certified and state.estimate != self._asked
        if not (new and share * state.estimate <= goal and hasattr(self.solver, "gap_now")):
            return False
        gap = self.solver.gap_now(self.problem, state)
        self._learn(gap)
        return bool(gap <= goal)

    def _learn(self, gap: float) -> None:
        """What the gap is where the estimate is the present one."""
        estimate = self.state.estimate
        if 0.0 < estimate < np.inf and gap < np.inf:
            self._share, self._asked = gap / estimate, estimate

    def _certify(self) -> Certificate:
        """Evaluate exactly, keep the better primal and dual points, refresh the solver."""
        alpha, w = self.solver.candidate(self.problem, self.state)
        seen = evaluate(self.problem, alpha, w)
        near = seen.certificate.relative_gap <= self.stop.tol
        found = seen if near or w is not None else stretched(self.problem, seen)
        self._learn(found.certificate.gap)
        self.best = found if self.best is None else better(self.problem, self.best, found)
        if self.stop.validation is not None:
            self.scored = judged(self.stop.validation, found, self.scored)
        self._last_gap = seen.certificate.gap
        self._next_check = max(self.stop.first_check, 2 * self.state.epoch)
        self._certified, self._stepped = self.state.epoch, False
        self._not_before = self.state.epoch + 1 + self.state.epoch // 16
        if self._solved() is None:  # else nobody goes on
            self.state = self.solver.refresh(self.problem, self.state, seen)
        return self.best.certificate

    def _scored_enough(self) -> bool:
        rule = self.stop.validation
        return rule is not None and self.scored is not None and self.scored.waited >= rule.patience

    def _progress(self, stop: str | None, certificate: Certificate | None = None) -> Progress:
        seconds = time.perf_counter() - self._start
        return Progress(self.state.epoch, seconds, self.state.estimate, certificate, stop)
