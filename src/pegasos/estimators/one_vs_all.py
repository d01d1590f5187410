"""One binary problem per class (one for two classes), each solved and certified by the driver."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from pegasos.estimators.callbacks import FitTasks
from pegasos.objective.problem import make_problem
from pegasos.solvers.auto import solver_named
from pegasos.solvers.driver import Driver, Run, Stop

log = logging.getLogger("pegasos")


class Task(NamedTuple):
    """The data and settings of a one-vs-all fit.

    `label` numbers the class of each row, `targets` the classes with a problem of their own;
    `centers` holds a w0 and `starts` an alpha / c per problem (or None for a cold start).
    """

    rows: Any
    label: np.ndarray
    c: np.ndarray
    targets: list[int]
    centers: np.ndarray
    starts: np.ndarray | None
    loss: Any
    free: bool
    solver: str
    stop: Stop
    seed: int


def signs(task: Task, k: int) -> np.ndarray:
    """The labels -1 and +1 of problem k."""
    return np.where(task.label == task.targets[k], 1.0, -1.0)


def solve(task: Task, tasks: FitTasks) -> list[Run]:
    """All problems, in order. After Ctrl-C the rest are only certified as they start."""
    weights = task.centers.copy()
    runs: list[Run] = []
    interrupted = False
    for k in range(len(task.targets)):
        problem = make_problem(
            task.rows, signs(task, k), task.c, task.loss, task.centers[k], task.free
        )

        def model(k: int = k) -> np.ndarray:
            weights[k] = driver.point()
            return weights

        watcher = None if interrupted else tasks.problem(f"class {task.targets[k]}", model)
        driver = Driver(
            solver_named(task.solver, problem),
            problem,
            replace(task.stop, callback=watcher),
            task.seed,
            None if task.starts is None else task.starts[k] * task.c,
        )
        runs.append(driver.interrupt() if interrupted else _drive(driver, k))
        weights[k] = runs[k].best.w
        interrupted = runs[k].stop_reason == "interrupted"
        if watcher is not None:
            watcher.end()
    return runs


def _drive(driver: Driver, k: int) -> Run:
    for progress in driver:
        if progress.certificate is not None:
            gap = progress.certificate.relative_gap
            log.info(
                "problem %d  epoch %d  %.2f s  gap %.1e", k, progress.epoch, progress.seconds, gap
            )
    return driver.result()
