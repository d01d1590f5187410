"""What is behind SVC: from data to the binary problems of a kernel machine, and back."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from pegasos.core.logs import warn
from pegasos.core.threads import use_threads
from pegasos.estimators import parameters as par
from pegasos.estimators.callbacks import FitTasks
from pegasos.estimators.classifier import (
    ACTIONS,
    Data,
    asked,
    class_weights,
    kept_weights,
)
from pegasos.estimators.kernel_checks import foretell, refuse_beyond_memory, warn_unless_kernel
from pegasos.estimators.kernel_layout import Layout, assembled, linear_coef
from pegasos.estimators.one_vs_all import solve
from pegasos.estimators.pairs import KernelTask, share_of
from pegasos.estimators.parts import Part, one_vs_one, one_vs_rest
from pegasos.estimators.probability import ProbabilisticClassifier
from pegasos.model.kernel import KernelModel, are_of_pairs, scores_of
from pegasos.model.pairs import by_pairs, class_scores, decided
from pegasos.objective.kernel_names import kernel_of
from pegasos.objective.kernel_points import given_columns, is_given, points
from pegasos.objective.kernels import Linear, resolved
from pegasos.objective.losses import Pinball
from pegasos.solvers.auto import Choice
from pegasos.solvers.driver import Run, Stop
from pegasos.solvers.stops import Optimality

SHAPES = ("ovr", "ovo")


def without_gap(stop: Stop) -> Stop:
    """For functions that are no kernels: their gap may mean nothing."""
    return stop if stop.rules else replace(stop, rules=(Optimality(1e-3),))


class KernelMachine(ProbabilisticClassifier):
    """Subclasses define `__init__`, `fit`, `_stop()`, `_loss()` and `_solver(reading, budget)`."""

    _is_kernel = True  # as far as a sample of the last fit tells

    def _stop(self) -> Stop:
        raise NotImplementedError

    def _loss(self) -> Pinball:
        raise NotImplementedError

    def _solver(self, reading: str, budget: int) -> tuple[Any, Choice]:
        raise NotImplementedError

    def _fit(self, X, y, sample_weight) -> None:
        self._check_parameters()
        began, stop = time.perf_counter(), self._stop()
        with self._at_work():
            data = self._read(X, y, sample_weight)
            task = self._task(data, stop)
            tasks = FitTasks(
                self,
                len(task.parts),
                lambda: {"X": data.X, "y": self.classes_[data.label]},
                lambda found: self._found(found, task, data),
            )
            runs = solve(task, tasks)
            self._record(task, runs, data)
            tasks.end()
        self._close(runs)
        with self._at_work():
            self._calibrate(task, data, began + stop.max_seconds)

    def _check_parameters(self) -> None:
        """What `fit` would say of the parameters, without data."""
        self._stop(), self._loss(), self._kernel()
        self._solver(par.intercept_of(self.intercept, True), 0)
        par.positive("C", self.C)
        if self.lam is not None:
            par.positive("lam", self.lam)
        refuse_beyond_memory(int(1e6 * par.positive("cache_size", self.cache_size)))
        self._check_probability()
        self._check_shapes()

    def _check_shapes(self) -> None:
        """The parameters that predictions depend on."""
        shape = par.one_of("decision_function_shape", self.decision_function_shape, SHAPES)
        several = par.one_of("multi_class", self.multi_class, SHAPES)
        if several == "ovr" and shape == "ovo":
            raise ValueError(
                "decision_function_shape='ovo' is for multi_class='ovo': against the rest each "
                "class has one score, use 'ovr' for both"
            )
        if self.break_ties and shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")

    def _task(self, data: Data, stop: Stop) -> KernelTask:
        parts = self._parts(data.label)
        share = share_of(int(1e6 * self.cache_size), len(parts))
        task = self._problems(data, parts, stop, share)
        foretell([part.rows.size for part in parts], task.points, share, stop.max_seconds)
        self._is_kernel = warn_unless_kernel(self.kernel_, task.points)
        return task._replace(stop=stop if self._is_kernel else without_gap(stop))

    def _parts(self, label: np.ndarray) -> list[Part]:
        pairs = by_pairs(self.multi_class, len(self.classes_))
        return (one_vs_one if pairs else one_vs_rest)(label, self.classes_)

    def _problems(self, data: Data, parts: list[Part], stop: Stop, share: int) -> KernelTask:
        """The task of solving each part with `share` bytes."""
        reading = par.intercept_of(self.intercept, True)
        solver, choice = self._solver(reading, share)
        kernel = self.kernel_ + 1.0 if reading == "penalised" else self.kernel_
        return KernelTask(
            kernel=kernel,
            points=points(kernel, data.X),
            c=data.c,
            parts=parts,
            starts=self._warm_starts(parts),
            loss=self._loss(),
            free=reading == "free",
            solver=solver,
            choice=choice,
            stop=stop,
            seed=par.seed_of(self.random_state),
            watch=self._watch,
        )

    def _kernel(self) -> Any:
        return kernel_of(self.kernel, self.gamma, self.degree, self.coef0)

    def _warm_starts(self, parts: list[Any]) -> list[np.ndarray] | None:
        """beta / c of the last fit, if warm_start is on and the problems are as large."""
        last = getattr(self, "_duals", None) if self.warm_start else None
        sizes = [part.rows.size for part in parts]
        if last is None or [len(beta) for beta, _ in last] != sizes:
            return None
        return [beta / c for beta, c in last]

    def _read(self, X, y, sample_weight) -> Data:
        given = self._kernel()
        data = super()._read(X, y, sample_weight)
        n = len(np.asarray(y))
        if is_given(given):
            if sp.issparse(data.X) or data.X.shape[1] != n:
                raise ValueError(
                    "Precomputed matrix must be a square matrix. Input is a "
                    f"{n}x{data.X.shape[1]} {'sparse ' if sp.issparse(data.X) else ''}matrix: pass "
                    "the kernel values of all rows of X with all rows"
                )
            if data.kept.size < n:
                data = data._replace(X=data.X[:, data.kept])
        self.shape_fit_ = (n, self.n_features_in_)
        self.kernel_ = resolved(given, data.X, kept_weights(data, y, sample_weight))
        return data

    def _row_costs(self, X, y, label, sample_weight) -> np.ndarray:
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
        self.class_weight_ = class_weights(self.class_weight, self.classes_, y, weight)
        return super()._row_costs(X, y, label, sample_weight)

    def _warn_unless_converged(self, runs: list[Run]) -> None:
        if self._is_kernel:
            super()._warn_unless_converged(runs)
            return
        short = [run for run in runs if run.stop_reason in ACTIONS]
        if not short:
            return
        worst = max(short, key=lambda run: run.state.violation)
        advice = ACTIONS[worst.stop_reason].format(max_iter=self.max_iter, max_time=self.max_time)
        warn(
            f"{type(self).__name__} stopped ({worst.stop_reason}) where the optimality conditions "
            f"are violated by {worst.state.violation:.1e}; nothing is proven, since "
            f"the kernel has negative eigenvalues. To get closer: {advice}.",
            ConvergenceWarning,
        )

    # Results to attributes

    @property
    def _pairs(self) -> bool:
        """Whether the fit was one-vs-one."""
        return are_of_pairs(self.dual_coef_, len(self.classes_))

    def _found(self, found: list[np.ndarray], task: KernelTask, data: Data) -> dict[str, Any]:
        """The attributes of a model from (beta, b) per problem."""
        if task.kernel is not self.kernel_:  # K + 1: its constant is the offset
            found = [np.append(w[:-1], w[:-1].sum()) for w in found]
        pairs = by_pairs(self.multi_class, len(self.classes_))
        layout = assembled(task.parts, found, data.label, pairs)
        vectors = np.empty((0, 0)) if is_given(self.kernel_) else data.X[layout.support]
        return {
            "support_": data.kept[layout.support].astype(np.int32),
            "support_vectors_": vectors,
            "n_support_": layout.counts.astype(np.int32),
            "dual_coef_": layout.dual_coef,
            "intercept_": layout.intercept,
        }

    def _record(self, task: KernelTask, runs: list[Run], data: Data) -> None:
        self.__dict__.update(self._found([run.best.w for run in runs], task, data))
        pairs = zip(runs, task.parts, strict=True)
        self._duals = [(run.best.alpha, task.c[part.rows]) for run, part in pairs]
        self.n_iter_ = np.array([run.state.iterations for run in runs])
        short = [run.stop_reason in ("max_iter", "max_time", "stalled") for run in runs]
        self.fit_status_ = int(any(short))
        records: dict[str, list[Any]] = {
            "certificate_": [run.certificate for run in runs],
            "history_": [run.history for run in runs],
            "stop_reason_": [run.stop_reason for run in runs],
            "solver_": [task.choice for _ in runs],
        }
        for name, values in records.items():
            setattr(self, name, values[0] if len(runs) == 1 else values)

    @property
    def coef_(self):
        """w of each problem, for the linear kernel."""
        check_is_fitted(self)
        if not isinstance(self.kernel_, Linear):
            raise AttributeError("coef_ is only available when using a linear kernel")
        layout = Layout(self.support_, self.n_support_, self.dual_coef_, self.intercept_)
        return linear_coef(layout, self.support_vectors_, self._pairs)

    # Prediction

    def _scores(self, X) -> np.ndarray:
        """A column per problem."""
        X = asked(self, X)
        with use_threads(par.threads_of(self.n_threads)):
            return scores_of(self._kernel_model(), X)

    def _kernel_model(self) -> KernelModel:
        if is_given(self.kernel_):
            support = given_columns(self.n_features_in_, self.support_)
        else:
            support = points(self.kernel_, self.support_vectors_)
        return KernelModel(
            self.kernel_, support, self.dual_coef_, self.n_support_, self.intercept_, self._pairs
        )

    def decision_function(self, X):
        """Scores of the rows.

        Returns
        -------
        array of shape (n_samples,) for two classes; (n_samples, n_classes), or with
        decision_function_shape="ovo" a column per pair of classes
        """
        scores = self._scores(X)
        if scores.shape[1] == 1:
            return scores[:, 0]
        pairs = self._pairs and self.decision_function_shape == "ovr"
        return class_scores(scores, len(self.classes_), pairs)

    def _decided(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Of pairs the scores in the shape "ovr"."""
        scores = self._scores(X)
        if self._pairs and self.break_ties:
            self._check_shapes()
        return decided(scores, len(self.classes_), self._pairs, self.break_ties)

    def _settled(self) -> dict[str, Any]:
        return {"kernel": self.kernel_}

    def _parts_of(self, X: Any, train: np.ndarray, test: np.ndarray) -> tuple[Any, Any]:
        if is_given(self.kernel_):
            X = X[:, train]
        return X[train], X[test]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_given(self.kernel)
        return tags
