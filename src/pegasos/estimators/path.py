"""A path of C: many values swept together, each model certified on its own."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from pegasos.estimators import parameters as par
from pegasos.estimators.base import Data, LinearClassifier
from pegasos.estimators.one_vs_all import Task, signs, solve_all
from pegasos.objective.problem import make_problem
from pegasos.solvers.auto import descends
from pegasos.solvers.lanes import FEW, Goal, descend

SWEEPS = 200  # epochs together; what is slower goes on alone


def fit_path(estimator: LinearClassifier, X, y, Cs, sample_weight=None) -> list[Any]:
    """Fitted copies of the estimator, one for each value of C."""
    Cs = [par.positive("C", C) for C in np.ravel(Cs).tolist()]
    if not Cs:
        raise ValueError("Cs is empty: give at least one value of C")
    unit, *models = (_copy(estimator, C) for C in (1.0, *Cs))
    loss, stop = unit._loss(), unit._stop()
    deadline = time.perf_counter() + stop.max_seconds
    with unit._at_work():
        data = unit._read(X, y, sample_weight)
        task = unit._task(data, loss, stop, None)
        fits = [task._replace(c=C * data.c) for C in Cs]
        fits = _swept(task, fits, np.array(Cs), deadline)
        runs, interrupted = solve_all(fits, deadline)
    if interrupted:
        raise KeyboardInterrupt
    for model, fit, found in zip(models, fits, runs, strict=True):
        _hand_over(unit, model, fit, found, data)
    for model, found in zip(models, runs, strict=True):
        model._close(found)
    return models


def _copy(estimator: LinearClassifier, C: float) -> Any:
    """The same parameters themselves: a fitted centre must stay fitted."""
    return type(estimator)(**estimator.get_params(deep=False)).set_params(C=C, lam=None)


def _swept(task: Task, fits: list[Task], Cs: np.ndarray, deadline: float) -> list[Task]:
    """The fits, with a start for those where descent is the method, if they are enough."""
    limit = min(SWEEPS, task.stop.max_epochs - 1)
    free_to_choose = task.solver == "auto" and not task.stop.rules and limit > 0
    if not free_to_choose:
        return fits
    least = fits[int(np.argmin(Cs))]
    problem = make_problem(task.rows, signs(task, 0), least.c, task.loss, None, task.free)
    chosen = [j for j, fit in enumerate(fits) if descends(problem._replace(c=fit.c))]
    if len(chosen) <= 2 * FEW:
        return fits
    goal = Goal(max(task.stop.tol, 1e-4), limit, deadline)
    c = task.c[:, None] * Cs[chosen]
    starts = np.zeros((len(chosen), len(task.targets), len(c)), dtype=np.float32)
    epochs = np.zeros(len(chosen), dtype=int)
    for k in range(len(task.targets)):
        together = problem._replace(y=signs(task, k), c=c, center=task.centers[k])
        alpha, swept = descend(together, goal, task.seed)
        starts[:, k], epochs = alpha / c.T, np.maximum(epochs, swept)
    begun = {j: (start, int(e)) for j, start, e in zip(chosen, starts, epochs, strict=True)}
    return [
        fit._replace(starts=begun[j][0], swept=begun[j][1]) if j in begun else fit
        for j, fit in enumerate(fits)
    ]


def _hand_over(unit: LinearClassifier, model: Any, fit: Task, runs: Any, data: Data) -> None:
    """What the first reading of the data found, and the results."""
    for name in ("classes_", "n_features_in_", "feature_names_in_"):
        if hasattr(unit, name):
            setattr(model, name, getattr(unit, name))
    model._record(fit, runs, data.kept)
