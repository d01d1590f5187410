"""C and gamma of each cell, by rows of its own that it did not learn from."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from pegasos.core.logs import warn
from pegasos.core.threads import run_blocks
from pegasos.estimators import parameters as par
from pegasos.estimators.cell_task import (
    CellFit,
    CellTask,
    Setting,
    problem_scores,
    task_of,
)
from pegasos.estimators.classifier import Data
from pegasos.estimators.one_vs_all import solve_all
from pegasos.model.decision import chosen
from pegasos.model.pairs import class_scores
from pegasos.objective.kernels import leaves, mapped
from pegasos.solvers.cells import Cells
from pegasos.solvers.driver import Stop


def settings_of(select: Any, given: Setting) -> list[Setting]:
    """The settings to choose from: every C with every gamma."""
    if select is None:
        return [given]
    if not isinstance(select, dict) or not select or not set(select) <= {"C", "gamma"}:
        raise ValueError(
            f"select must be None or a dict with values of 'C', 'gamma' or both, got {select!r}"
        )
    Cs = par.values_of_C(select.get("C", given.C))
    if "gamma" not in select:
        return [Setting(C, given.kernel) for C in Cs]
    if not any("gamma" in leaf._fields for leaf in leaves(given.kernel)):
        raise ValueError(f"select has values of gamma, but {given.kernel!r} has no gamma")
    gammas = [par.positive("gamma", gamma) for gamma in np.ravel(select["gamma"]).tolist()]
    if not gammas:
        raise ValueError("select has no value of gamma: give at least one")
    return [Setting(C, _with(given.kernel, gamma)) for C, gamma in product(Cs, gammas)]


def _with(kernel: Any, gamma: float) -> Any:
    return mapped(kernel, lambda name, value: gamma if name == "gamma" else value)


class Judges(NamedTuple):
    """Cells, rows of each that it is judged by, and those that it learns from meanwhile."""

    cells: Cells
    held: list[np.ndarray]
    rest: list[np.ndarray]


def judges_of(cells: Cells, share: float, rng: Any) -> Judges:
    sizes = [min(own.size - 1, round(share * own.size)) for own in cells.own]
    held = [np.sort(rng.permutation(own)[:m]) for own, m in zip(cells.own, sizes, strict=True)]
    both = zip(cells.own, cells.near, held, strict=True)
    return Judges(
        cells, held, [np.setdiff1d(np.append(own, near), mine) for own, near, mine in both]
    )


def choose(
    fit: Callable[[np.ndarray, Setting], CellFit],
    data: Data,
    settings: list[Setting],
    judges: Judges,
    stop: Stop,
    classes: tuple[int, bool],
) -> list[Setting]:
    """The best setting of each cell, of equals the first.

    Each setting may take as long as each of those to come, and as the fit with all rows. Those for
    which there is no time are left out, with a warning.
    """
    best = np.full(len(judges.held), -1.0)
    chosen = [settings[0]] * len(best)
    end = time.perf_counter() + stop.max_seconds
    for k, setting in enumerate(settings):
        now = time.perf_counter()
        if now >= end:
            _tell(k, len(settings))
            break
        task = task_of(judges.cells, [fit(rows, setting) for rows in judges.rest], stop)
        (runs,), interrupted = solve_all([task], now + (end - now) / (len(settings) + 1 - k), {})
        if interrupted:
            raise KeyboardInterrupt
        found = task.by_cell([run.best.w for run in runs])

        scores = _scores(task, found, data, judges.held, classes)
        for j in np.flatnonzero(scores > best):
            best[j], chosen[j] = scores[j], setting
    return chosen


def _tell(tried: int, n: int) -> None:
    warn(
        f"the time was over after {tried} of {n} settings of select: cells chose from the first "
        f"{max(tried, 1)}. To try all: raise max_time.",
        ConvergenceWarning,
    )


def _scores(
    task: CellTask,
    found: list[Any],
    data: Data,
    held: list[np.ndarray],
    classes: tuple[int, bool],
) -> np.ndarray:
    """Of each cell the weight of the rows that are predicted as what they are."""

    def part(start: int, stop: int) -> float:
        fit, rows = task.fits[start], held[start]
        machine = None
        if fit.task is not None:
            machine = fit.machine
            machine.__dict__.update(machine._found(found[start], fit.task, fit.data))
        scores = problem_scores(machine, fit.present, data.X[rows], *classes)
        return float(data.c[rows] @ (chosen(class_scores(scores, *classes)) == data.label[rows]))

    return np.array(run_blocks(part, len(held), 1))
