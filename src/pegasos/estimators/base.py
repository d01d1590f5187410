"""What every linear classifier shares: the way from (X, y) to certified weights and back.

`fit` validates at the data door and solves the problems of a task: one-vs-all, or one of `MODES`;
`decision_function` is one product.
A subclass adds its parameters and names its loss.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.callback import with_callbacks
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import validate_data

from pegasos.core.cross import packed
from pegasos.core.rows import n_columns
from pegasos.core.threads import use_threads
from pegasos.data.check import as_rows, small_dtype
from pegasos.estimators import parameters as par
from pegasos.estimators.callbacks import FitTasks
from pegasos.estimators.classifier import OF_DECISIONS, Data, all_or_nothing, asked
from pegasos.estimators.multiclass import MulticlassTask
from pegasos.estimators.one_vs_all import Task, solve
from pegasos.estimators.one_vs_one import PairTask
from pegasos.estimators.probability import ProbabilisticClassifier
from pegasos.estimators.transfer import Transferred, Wanted, centers_of, transferred
from pegasos.model.decision import chosen
from pegasos.model.linear import scores_of, weight_vectors
from pegasos.model.pairs import class_scores
from pegasos.objective.losses import Pinball, is_piecewise_linear
from pegasos.solvers.driver import Run, Stop
from pegasos.solvers.stops import Validation

OF_A_FIT = (  # what `fit` leaves besides the weights
    *("certificate_", "history_", "stop_reason_", "solver_"),
    *("n_iter_", "support_", "dual_coef_", "_duals", "_pairs"),
    *("_C", *OF_DECISIONS),
)
MODES: dict[str, type[Task]] = {
    "ovr": Task,
    "ovo": PairTask,
    "crammer_singer": MulticlassTask,
}


class LinearClassifier(ProbabilisticClassifier):
    """Base of the linear classifiers. Subclasses define `__init__` and `_loss()`."""

    _pairs = False  # whether the weights are of pairs of classes
    _modes: tuple[str, ...] = ("ovr", "ovo")  # of `multi_class`
    _names: list[str] | None = None  # of features, where rows come without: set by the command line

    # what `_read` and `_task` leave
    _of_reading: tuple[str, ...] = ("classes_", "n_features_in_", "feature_names_in_", "center_")
    center_: Transferred | None = None

    def _loss(self) -> Any:
        raise NotImplementedError

    @all_or_nothing
    @with_callbacks
    def fit(self, X, y, sample_weight=None):
        """Fit to rows X and labels y.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            float32 and float64 are used as they are, without a copy; but of a CSR matrix of which
            two fifths are filled an array is made beside it, if there is room.
        y : array of shape (n_samples,)
            Class labels, two or more.
        sample_weight : array of shape (n_samples,), default=None
            A weight of k counts a row k times.

        Returns
        -------
        self
        """
        loss, stop, began = self._loss(), self._stop(), time.perf_counter()
        self._check_probability()
        with self._at_work():
            data = self._read(X, y, sample_weight)
            task = self._task(data, loss, stop)
            left = max(0.0, began + stop.max_seconds - time.perf_counter())
            task = task._replace(stop=replace(task.stop, max_seconds=left))
            starts = self._warm_starts(task.shapes)
            if starts is not None:
                task = task.begun(starts, self.intercept_)
            tasks = FitTasks(
                self,
                len(task.targets),
                lambda: {"X": data.X, "y": self.classes_[data.label]},
                lambda points: self._weights(task.vectors(points), task),
            )
            runs = solve(task, tasks)
            self._record(task, runs, data.kept)
            tasks.end()
        self._close(runs)
        if self._check_probability():
            with self._at_work():
                self._calibrate(task, data, began + stop.max_seconds)
        return self

    def _task(self, data: Data, loss: Any, stop: Stop) -> Task:
        bias, free = self._bias()
        kind = MODES[self.multi_class].of(len(self.classes_))
        targets, rows = kind.targets_of(len(self.classes_)), self._to_train(data.X, bias)
        wanted = self._wanted(self.classes_, n_columns(rows))
        self.center_ = transferred(self.center, wanted)
        shape = len(wanted.problems), wanted.n_columns
        solver, choice = kind.solver_of(self._solver())
        return kind(
            rows=rows,
            label=data.label,
            c=data.c,
            targets=targets,
            names=[kind.name_of(target, self.classes_) for target in targets],
            centers=kind.of_problems(centers_of(self.center_, shape, bias)),
            starts=None,
            loss=loss,
            free=free,
            solver=solver,
            choice=choice,
            stop=replace(stop, rules=tuple(self._on_rows(rule, bias) for rule in stop.rules)),
            seed=par.seed_of(self.random_state),
            watch=self._watch,
        )

    def _wanted(self, classes: np.ndarray, n_columns: int) -> Wanted:
        """What a centre is to be matched with."""
        sides = MODES[self.multi_class].of(len(classes)).sides(len(classes))
        names = getattr(self, "feature_names_in_", self._names)
        return Wanted(n_columns, names, classes, sides, getattr(self, "map_", None))

    def _rows(self, X: Any, bias: float, sort: bool = True) -> Any:
        """Rows as the weights see them."""
        return as_rows(X, bias, sort)

    def _to_train(self, X: Any, bias: float) -> Any:
        """Such rows to train with."""
        return packed(self._rows(X, bias))

    def _weights(self, weights: np.ndarray, task: Task) -> dict[str, Any]:
        intercept = task.rows.bias * weights[:, -1]
        return {"coef_": weights[:, :-1].copy(), "intercept_": intercept, "_pairs": task.pairs}

    def decision_function(self, X):
        """Signed distances w.x + b (times ||w||).

        Of one-vs-one problems: the pairs that a class wins, and less than a third more or less by
        the sum t of its margins, t / (3 (|t| + 1)).

        Returns
        -------
        array of shape (n_samples,) for two classes, else (n_samples, n_classes)
        """
        X = asked(self, X, finite=False)
        weights = weight_vectors(self.coef_, self.intercept_)
        with use_threads(par.threads_of(self.n_threads)):
            scores = scores_of(weights, self._rows(X, 1.0, sort=False))
        if not np.isfinite(scores).all():  # the way of every NaN and infinity in X
            assert_all_finite(X, input_name="X", estimator_name=type(self).__name__)
        if len(weights) == 1:
            return scores[:, 0]
        return class_scores(scores, len(self.classes_), self._pairs)

    def _decided(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        scores = self.decision_function(X)
        scores = scores.reshape(len(scores), -1)
        return scores, chosen(scores)

    def _left_out(self, task: Any, data: Data, folds: np.ndarray, deadline: float) -> np.ndarray:
        """All folds together, where problems can share their reading of the rows."""
        from pegasos.estimators.folds import left_out_scores  # which needs this module

        task = task._replace(watch=None, starts=None)
        return left_out_scores(self, task, data, folds, deadline)

    def __sklearn_clone__(self):
        """A copy (for a grid search, say) in which a fitted centre stays fitted."""
        copy = super().__sklearn_clone__()
        if self.center is not None:
            copy.center = self.center
        return copy

    # Parameters to numbers

    def _check_parameters(self) -> None:
        """What `fit` would say of the parameters, without data."""
        loss = self._loss()
        self._stop(), self._bias(), self._check_probability()
        if getattr(self, "solver", None) == "interior" and not isinstance(loss, Pinball):
            raise ValueError("solver='interior' is for hinge and pinball loss; 'newton' for others")
        if getattr(self, "solver", None) == "newton_cg" and is_piecewise_linear(loss):
            raise ValueError(
                "solver='newton_cg' is for squared hinge and logistic; 'newton' for others"
            )
        MODES[self.multi_class].solver_of(self._solver())
        par.positive("C", self.C)
        if self.lam is not None:
            par.positive("lam", self.lam)

    def _stop(self) -> Stop:
        par.one_of("multi_class", self.multi_class, self._modes)
        limit = np.inf if self.max_time is None else par.positive("max_time", self.max_time)
        return Stop(
            tol=par.positive("tol", self.tol, zero=True),
            max_epochs=par.count("max_iter", self.max_iter),
            max_seconds=limit,
            rules=par.rules_of(self.stop),
        )

    def _on_rows(self, rule: Any, bias: float) -> Any:
        """A stop rule as the solvers want it: a Validation with rows and numbers of classes."""
        if not isinstance(rule, Validation):
            return rule
        X, y = validate_data(
            self, rule.X, rule.y, reset=False, accept_sparse="csr", dtype=small_dtype(rule.X)
        )
        unknown = np.setdiff1d(y, self.classes_)
        if unknown.size:
            name = par.shown(unknown[0])
            raise ValueError(f"stop: class {name} of Validation is not among those of y")
        return replace(rule, X=self._rows(X, bias), y=np.searchsorted(self.classes_, y))

    def _solver(self) -> Any:
        return par.one_of("solver", self.solver, par.SOLVERS)

    def _bias(self) -> tuple[float, bool]:
        """The value of the virtual column, and whether its weight is free of penalty."""
        reading = par.intercept_of(self.intercept, self.fit_intercept)
        scale = par.positive("intercept_scaling", self.intercept_scaling)
        return {"none": 0.0, "penalised": scale, "free": 1.0}[reading], reading == "free"

    def _warm_starts(self, shapes: list[tuple[int, ...]]) -> Any:
        """alpha / c of the last fit, if warm_start is on and the problems are as large."""
        last = getattr(self, "_duals", None) if self.warm_start else None
        if last is None or [alpha.shape for alpha, _ in last] != shapes:
            return None
        return [alpha / c for alpha, c in last]

    # Results to attributes

    def _record(self, task: Task, runs: list[Run], kept: np.ndarray) -> None:
        self.__dict__.update(self._weights(task.vectors([run.best.w for run in runs]), task))
        self.__dict__.update(task.duals(runs, kept))
        self.n_iter_ = max(run.state.epoch for run in runs)
        records: dict[str, list[Any]] = {
            "certificate_": [run.certificate for run in runs],
            "history_": [run.history for run in runs],
            "stop_reason_": [run.stop_reason for run in runs],
            "solver_": [getattr(run.state, "choice", None) or task.choice for run in runs],
        }
        for name, values in records.items():
            setattr(self, name, values[0] if len(task.targets) == 1 else values)
