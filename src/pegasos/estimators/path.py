"""A path of C: many values swept together, each model certified on its own."""

from __future__ import annotations

import time
from typing import Any

from pegasos.estimators import parameters as par
from pegasos.estimators.base import Data, LinearClassifier
from pegasos.estimators.one_vs_all import Task, solve_all


def fit_path(estimator: LinearClassifier, X, y, Cs, sample_weight=None) -> list[Any]:
    """Fitted copies of the estimator, one for each value of C."""
    Cs = par.values_of_C(Cs)
    unit, *models = (copy_with(estimator, C) for C in (1.0, *Cs))
    loss, stop = unit._loss(), unit._stop()
    deadline = time.perf_counter() + stop.max_seconds
    with unit._at_work():
        data = unit._read(X, y, sample_weight)
        task = unit._task(data, loss, stop)
        fits = [task._replace(c=C * data.c) for C in Cs]
        answers, interrupted = task.sweep(Cs, deadline)
        if not interrupted:
            paths = [list(enumerate(Cs))]
            runs, interrupted = solve_all(fits, deadline, answers, paths=paths)
    if interrupted:
        raise KeyboardInterrupt
    for model, fit, found in zip(models, fits, runs, strict=True):
        _hand_over(unit, model, fit, found, data)
    for model, fit, found in zip(models, fits, runs, strict=True):
        model._close(found)
        with model._at_work():
            model._calibrate(fit, data._replace(c=fit.c), deadline)
    return models


def copy_with(estimator: LinearClassifier, C: float) -> Any:
    """The same parameters themselves: a fitted centre must stay fitted."""
    return type(estimator)(**estimator.get_params(deep=False)).set_params(C=C, lam=None)


def _hand_over(unit: LinearClassifier, model: Any, fit: Task, runs: Any, data: Data) -> None:
    """What the first reading of the data found, and the results."""
    for name in unit._of_reading:
        if hasattr(unit, name):
            setattr(model, name, getattr(unit, name))
    model._C = model.C
    model._record(fit, runs, data.kept)
