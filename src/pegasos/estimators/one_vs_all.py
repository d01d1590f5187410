"""One binary problem per class (one for two classes), each solved and certified by the driver;
the way of other tasks through their problems is the same.

Without anybody who looks on, problems are solved side by side on the threads that are allowed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from pegasos.core.threads import side_by_side
from pegasos.estimators.callbacks import FitTasks
from pegasos.estimators.chains import Chain, Neighbour, Path, chains_of, neighbour
from pegasos.estimators.sweeps import Answers, Swept, run_of, shared_problem, sweep_path
from pegasos.objective.problem import Problem, make_problem
from pegasos.solvers.auto import Choice, begins_with_newton, solver_named
from pegasos.solvers.driver import Driver, Progress, Run, Stop
from pegasos.solvers.lanes import Found
from pegasos.solvers.stops import Validation

log = logging.getLogger("pegasos")


class Watch(Protocol):
    """Who looks on while the problems are solved: a progress bar, a keeper of checkpoints."""

    def begin(self, task: Task, k: int, driver: Driver) -> Run | None:
        """Problem k is about to begin; may restore its driver, or answer with its finished run."""

    def step(self, driver: Driver, progress: Progress) -> None:
        """After each step; may end the fit by an exception."""

    def end(self, run: Run) -> None:
        """The problem is solved."""

    def leave(self) -> None:
        """All problems are solved, and what else is fitted is not looked at."""


class Task(NamedTuple):
    """The data and settings of a one-vs-all fit.

    `label` numbers the class of each row, `targets` the classes with a problem of their own (pairs
    of classes in another task);
    `centers` holds a w0 and `starts` an alpha / c per problem (or None for a cold start); `solver`
    is a name or a solver, and `choice` says why, unless a run does so; a Validation among the rules
    of `stop` holds rows and numbers of classes.
    """

    rows: Any
    label: np.ndarray
    c: np.ndarray
    targets: list[Any]
    names: list[str]
    centers: np.ndarray
    starts: Any
    loss: Any
    free: bool
    solver: Any
    choice: Choice
    stop: Stop
    seed: int
    watch: Watch | None = None

    @classmethod
    def of(cls, n_classes: int) -> type[Task]:
        """The task for so many classes."""
        return cls

    @staticmethod
    def targets_of(n_classes: int) -> list[Any]:
        return [1] if n_classes == 2 else list(range(n_classes))

    @staticmethod
    def name_of(target: Any, classes: np.ndarray) -> str:
        return f"class {classes[target]}"

    @staticmethod
    def sides(n_classes: int) -> list[tuple[int, int | None]]:
        """Of each weight vector of a model the class for it and that against it (None: all)."""
        return [(1, 0)] if n_classes == 2 else [(k, None) for k in range(n_classes)]

    @staticmethod
    def of_problems(centers: np.ndarray) -> np.ndarray:
        """The centre of each problem, from those of the weight vectors."""
        return centers

    @staticmethod
    def solver_of(given: Any) -> tuple[Any, Choice]:
        """The solver, if it can do it, and why it is used."""
        name = given if isinstance(given, str) else type(given).__name__
        return given, Choice(name, "asked for")

    @property
    def pairs(self) -> bool:
        """Whether the problems are one-vs-one."""
        return False

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Of the dual variables of each problem."""
        return [(len(self.label),)] * len(self.targets)

    def begun(self, starts: Any, intercept: np.ndarray) -> Task:
        """The same task from the alpha / c and the intercepts of another fit."""
        return self._replace(starts=starts)

    def vectors(self, points: Any) -> np.ndarray:
        """The weight vectors of a model, from the points of the problems."""
        return np.asarray(points)

    def problem(self, k: int) -> Any:
        y = _signs(self, k)
        return make_problem(self.rows, y, self.c, self.loss, self.centers[k], self.free)

    def shared(self) -> Problem | None:
        """What all problems share, if they may be swept together; weights as for C = 1."""
        return shared_problem(self)

    def rule(self, given: Validation, k: int) -> Validation:
        """The rule for problem k."""
        return given.against_the_rest(self.targets[k])

    def driver(self, k: int, stop: Stop, answer: Found | None = None) -> Driver:
        """The run of problem k, which may begin where a sweep ended."""
        return driver_of(self, k, stop, answer)

    def sweep(self, Cs: list[float], deadline: float) -> tuple[Answers, bool]:
        """What is found by sweeping all problems of all C together; whether Ctrl-C came."""
        return sweep_path(self, Cs, deadline)

    def duals(self, runs: list[Run], kept: np.ndarray) -> dict[str, Any]:
        """The attributes made of dual variables; `kept`: the numbers of the rows in X."""
        alphas = [run.best.alpha for run in runs]
        chosen = np.logical_or.reduce([alpha != 0.0 for alpha in alphas])
        used = slice(None) if chosen.all() else np.flatnonzero(chosen)
        label, support = self.label[used], np.array(kept[used])  # not a view
        beta = np.empty((len(alphas), support.size))
        for k, alpha in enumerate(alphas):
            np.multiply(alpha[used], _signed(label, self.targets[k]), out=beta[k])
        duals = [(alpha, self.c) for alpha in alphas]
        return {"_duals": duals, "support_": support, "dual_coef_": beta}


def _signs(task: Task, k: int) -> np.ndarray:
    """The labels -1 and +1 of problem k."""
    return _signed(task.label, task.targets[k])


def _signed(label: np.ndarray, target: Any) -> np.ndarray:
    """+1 for the target, -1 for others; in bytes, which is faster than to choose numbers."""
    is_target = (label == target).view(np.int8)
    return (is_target + is_target - np.int8(1)).astype(np.float64)


def solve(task: Any, tasks: FitTasks) -> list[Run]:
    """All problems of a fit. After Ctrl-C the rest are only certified as they start.

    A task has `targets`, `names`, `centers` (points to begin with), `stop`, `watch`, `sweep` and
    `driver`.
    """
    if len(task.targets) == 1 or tasks.wanted or task.watch is not None:
        return _solve_in_order(task, tasks)
    deadline = time.perf_counter() + task.stop.max_seconds
    answers, halted = task.sweep([1.0], deadline)
    (runs,), interrupted = solve_all([task], deadline, answers, halted)
    if interrupted:  # though each may have come to its own end in that moment
        runs[-1] = replace(runs[-1], stop_reason="interrupted")
    return runs


def solve_all(
    fits: list[Any],
    deadline: float,
    answers: Answers,
    stopped: bool = False,
    paths: list[Path] | None = None,
) -> tuple[list[list[Run]], bool]:
    """The problems of several fits, side by side; whether Ctrl-C came (already, if `stopped`).

    `answers` holds what was found for (fit, problem) in a sweep: the end, or a start. Along a path
    the answer for one value of C may be a start for the next one.
    """
    began = time.perf_counter()

    def one(item: tuple[int, int], start: Any, halted: Callable[[], bool]) -> Run:
        task, k = fits[item[0]], item[1]
        stop = replace(task.stop, max_seconds=deadline - time.perf_counter())
        driver = task.driver(k, stop, start)
        driver.callback = lambda progress: halted()
        if stopped or halted():
            return driver.interrupt()
        run = _drive(driver, task, k)
        return replace(run, stop_reason="interrupted") if run.stop_reason == "callback" else run

    def along(chain: Chain, halted: Callable[[], bool]) -> list[Run]:
        runs: list[Run] = []
        last = chain.last
        for item, C in chain.items:
            answer = answers.get(item)
            if answer and answer.best.certificate.relative_gap <= fits[item[0]].stop.tol:
                runs.append(run_of(answer, began))
            else:
                runs.append(one(item, answer or (last and last.at(C)), halted))
            last = neighbour(runs[-1].best, C)
        return runs

    chains = chains_of(fits, answers, paths or [])
    found, interrupted = side_by_side(along, chains)
    runs = {
        item: run
        for chain, of_chain in zip(chains, found, strict=True)
        for (item, _), run in zip(chain.items, of_chain, strict=True)
    }
    ordered = [[runs[j, k] for k in range(len(task.targets))] for j, task in enumerate(fits)]
    return ordered, interrupted or stopped


def _solve_in_order(task: Any, tasks: FitTasks) -> list[Run]:
    weights = task.centers.copy()
    deadline = time.perf_counter() + task.stop.max_seconds
    runs: list[Run] = []
    interrupted = False
    for k in range(len(task.targets)):
        left = deadline - time.perf_counter()
        driver = task.driver(k, replace(task.stop, max_seconds=left))
        watcher = None
        done = task.watch.begin(task, k, driver) if task.watch and not interrupted else None
        if done is not None:
            runs.append(done)
        elif interrupted:
            runs.append(driver.interrupt())
        else:
            watcher = tasks.problem(task.names[k], partial(_so_far, weights, k, driver.point))
            driver.callback = watcher
            runs.append(_drive(driver, task, k))
        weights[k] = runs[k].best.w
        if watcher is not None:
            watcher.end(weights)
        interrupted = runs[k].stop_reason == "interrupted"
    return runs


class _Driver(Driver):
    def result(self) -> Run:
        """Without the state of the solver, which may hold copied rows."""
        run = super().result()
        return replace(run, state=Swept(run.state.epoch, getattr(run.state, "choice", None)))


def driver_of(task: Task, k: int, stop: Stop, answer: Found | None) -> Driver:
    """The run of problem k."""
    problem = task.problem(k)
    start = None if task.starts is None else (task.starts[k].T * problem.c).T
    named = isinstance(task.solver, str)
    solver = solver_named(task.solver, problem) if named else task.solver
    rules = tuple(
        task.rule(rule, k) if isinstance(rule, Validation) else rule for rule in stop.rules
    )
    stop = replace(stop, rules=rules)
    if answer is None or (
        isinstance(answer, Neighbour) and not begins_with_newton(problem, stop.tol)
    ):
        return _Driver(solver, problem, stop, task.seed, start)
    driver = _Driver(solver, problem, stop, task.seed, answer.best.alpha, answer.best.w)
    driver.state = driver.state.after(answer.epochs, answer.told)
    return driver


def _so_far(weights: np.ndarray, k: int, point: Callable[[], np.ndarray]) -> np.ndarray:
    """The weights of all problems, those of problem k as they are now."""
    weights[k] = point()
    return weights


def _drive(driver: Driver, task: Any, k: int) -> Run:
    for progress in driver:
        if progress.certificate is not None:
            gap = progress.certificate.relative_gap
            log.info(
                "problem %d  epoch %d  %.2f s  gap %.1e", k, progress.epoch, progress.seconds, gap
            )
        if task.watch is not None:
            task.watch.step(driver, progress)
    run = driver.result()
    if task.watch is not None:
        task.watch.end(run)
    return run
