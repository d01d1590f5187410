"""Solvers side by side on one objective: how far from the best possible each of them is, and when.

The clock runs while a solver works (its own certificates included, of which it needs few) and
stands still while its point is evaluated for the comparison. An exact run to a gap of ACCURACY
comes first. The optimum lies between the highest bound and the lowest objective that any run has
found; distances are taken from that bound, so a curve is never drawn closer than it is proven to
be, and none can fall below the accuracy to which the optimum is known.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pegasos.core.matrix import products
from pegasos.estimators.online import PRESETS, PegasosClassifier
from pegasos.estimators.parameters import SOLVERS
from pegasos.objective.certificate import Certificate, evaluate
from pegasos.objective.losses import Perceptron, Pinball, is_piecewise_linear
from pegasos.objective.problem import Problem
from pegasos.solvers.auto import Auto, solver_named
from pegasos.solvers.driver import Driver, Progress, Solver, Stop, run
from pegasos.solvers.intercept import rehearse

NAMES = (*SOLVERS, *PRESETS)
ACCURACY = 1e-8
PATIENCE = 10.0  # how many times the seconds of a solver the exact run may take
_ROUNDING = 2.0**-52  # float64 tells nothing closer apart
_DENSITY = 1.06  # between the epochs at which a point is evaluated, once they are many

Watch = Callable[[str, float], Any]


class Limit(NamedTuple):
    """The budget of each solver: passes over the data (or Newton steps), seconds of work."""

    epochs: int = 100
    seconds: float = 10.0


class Holdout(NamedTuple):
    """Rows (with the virtual column of the problem's) and labels -1 and +1 to test on."""

    rows: Any
    y: np.ndarray


class Moment(NamedTuple):
    """A point on the way of a solver: its objective, the best bound so far, its test error."""

    epoch: int
    seconds: float
    primal: float
    dual: float
    test_error: float | None


class Method(NamedTuple):
    """A solver, and the loss it works with if that is not the loss of the comparison."""

    solver: Solver
    loss: Any = None


class Comparison(NamedTuple):
    """A list of moments per solver, and the optimum: best.primal >= optimum >= best.dual."""

    curves: dict[str, list[Moment]]
    best: Certificate

    @property
    def accuracy(self) -> float:
        """How well the optimum is known, as a share of its bound."""
        return self.above(self.best.primal)

    def above(self, primal: float) -> float:
        """How far an objective is at most above the optimum, as a share of the optimum."""
        share = (primal - self.best.dual) / self.best.dual
        return share if not share < _ROUNDING else _ROUNDING


def check_name(name: str, loss: Any) -> None:
    """Refuse what `method_named` does not know, or what has no use for the loss."""
    if name not in NAMES:
        raise ValueError(f"no solver is named {name!r}; the solvers are {', '.join(NAMES)}")
    if name == "interior" and not isinstance(loss, Pinball):
        raise ValueError("interior is for hinge and pinball loss: leave it out, or take newton")
    if name == "newton_cg" and is_piecewise_linear(loss):
        raise ValueError("newton_cg is for smooth losses: leave it out, or take newton")


def method_named(name: str, problem: Problem, epochs: int = 1) -> Method:
    """An exact solver or a preset of `PegasosClassifier`, for at most so many epochs.

    A preset takes the loss of the problem, but the perceptron, which is nothing without its own.
    """
    check_name(name, problem.loss)
    if name in SOLVERS:
        return Method(solver_named(name, problem))
    bias = "penalised" if problem.rows.bias else "none"
    reading = "free" if problem.free else bias
    solver = PegasosClassifier.preset(name, intercept=reading, max_iter=epochs)._solver()
    return Method(solver, Perceptron() if name == "perceptron" else None)


def compare(
    problem: Problem,
    methods: Mapping[str, Method],
    limit: Limit,
    seed: int = 0,
    test: Holdout | None = None,
    watch: Watch = lambda name, share: None,
) -> Comparison:
    """Run each method on the problem within the limit, and an exact solver for the optimum.

    Parameters
    ----------
    problem : Problem
        The objective of all.
    methods : mapping of a label to a Method
    limit : Limit
        Of each method; the exact run may take PATIENCE times the seconds.
    seed : int
    test : Holdout, default=None
        For test errors beside the objectives.
    watch : function of a label and a share done, called during the runs

    Returns
    -------
    Comparison

    Raises
    ------
    KeyboardInterrupt
        At Ctrl-C: a comparison of some of the methods would not be the one that was asked for.
    """
    exact = _optimum(problem, limit, seed, watch)
    curves = {
        label: curve(problem, method, limit, seed, test, partial(watch, label))
        for label, method in methods.items()
    }
    moments = [moment for moments in curves.values() for moment in moments]
    primal = min([exact.primal, *(m.primal for m in moments if not math.isnan(m.primal))])
    dual = max([exact.dual, *(m.dual for m in moments)])
    if not dual > 0.0:
        raise ValueError("no lower bound above 0 was proven in time: raise the limit of seconds")
    return Comparison(curves, Certificate(primal, dual))


def warm_up(problem: Problem, methods: Mapping[str, Method], test: Holdout | None = None) -> None:
    """Compile what a comparison runs, on a problem of the same kind with few rows."""
    run(Auto(), problem, Stop(ACCURACY, max_epochs=30))
    rehearse(problem)
    for method in methods.values():
        curve(problem, method, Limit(3, math.inf), 0, test)


def _optimum(problem: Problem, limit: Limit, seed: int, watch: Watch) -> Certificate:
    seconds = PATIENCE * limit.seconds

    def look(progress: Progress) -> None:
        watch("the optimum", progress.seconds / seconds)

    done = run(Auto(), problem, Stop(ACCURACY, 1_000_000, seconds, look), seed)
    if done.stop_reason == "interrupted":
        raise KeyboardInterrupt
    return done.certificate


def curve(
    problem: Problem,
    method: Method,
    limit: Limit,
    seed: int = 0,
    test: Holdout | None = None,
    watch: Callable[[float], Any] = lambda share: None,
) -> list[Moment]:
    """The moments of one method, at first after each epoch, later at epochs apart by a factor."""
    own = problem if method.loss is None else problem._replace(loss=method.loss)
    moments: list[Moment] = []
    due, seconds, started = 1, 0.0, time.perf_counter()
    driver = Driver(method.solver, own, Stop(ACCURACY, limit.epochs), seed)
    for progress in driver:
        seconds += time.perf_counter() - started
        if progress.stop == "interrupted":
            raise KeyboardInterrupt
        watch(max(progress.epoch / limit.epochs, seconds / limit.seconds))
        last = progress.stop is not None or seconds >= limit.seconds
        if progress.epoch >= due or last:
            bound = moments[-1].dual if moments else -math.inf
            moments.append(_moment(problem, driver, seconds, bound, test))
            due = max(progress.epoch + 1, math.ceil(_DENSITY * progress.epoch))
        if last:
            break
        started = time.perf_counter()
    return moments


def _moment(
    problem: Problem, driver: Driver, seconds: float, bound: float, test: Holdout | None
) -> Moment:
    """The point that the solver has reached, evaluated on the objective of the comparison."""
    with np.errstate(all="ignore"):  # what overflows is infinitely far away
        alpha, w = driver.solver.candidate(problem, driver.state)
        seen = evaluate(problem, alpha, w)
    primal, dual = seen.certificate
    error = (
        None if test is None else float(np.mean((products(test.rows, seen.w) > 0) != (test.y > 0)))
    )
    return Moment(driver.state.epoch, seconds, primal, max(bound, dual), error)
