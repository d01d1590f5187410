"""What every certified classifier shares: data in, warnings out."""

from __future__ import annotations

import contextlib
import functools
import logging
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.callback import CallbackSupportMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from pegasos.core.logs import listening, warn
from pegasos.core.threads import use_threads
from pegasos.data.check import plain, plain_rows, small_dtype
from pegasos.estimators import parameters as par
from pegasos.objective.losses import NEVER_NEGATIVE
from pegasos.objective.problem import C_from_lam
from pegasos.solvers.driver import Run

ACTIONS = {
    "max_iter": "raise max_iter (now {max_iter}) or scale the features (StandardScaler; sparse: "
    "MaxAbsScaler)",
    "max_time": "raise max_time (now {max_time})",
    "stalled": "scale the features (StandardScaler; sparse: MaxAbsScaler) or lower C, float64 can "
    "do no more here",
}
OF_DECISIONS = ("calibration_", "threshold_")


class Data(NamedTuple):
    """Rows, the number of the class and c_i of each, and which rows of X they are."""

    X: Any
    label: np.ndarray
    c: np.ndarray
    kept: np.ndarray


def kept_weights(data: Data, y: Any, sample_weight: Any) -> np.ndarray | None:
    """The sample weights of the rows of the data, without those of classes; None if not given."""
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=np.float64)
    return np.broadcast_to(weight, len(np.asarray(y)))[data.kept]


def class_weights(given: Any, classes: np.ndarray, y: Any, weight: np.ndarray) -> np.ndarray:
    """The factor of each class."""
    found = compute_class_weight(given, classes=classes, y=y, sample_weight=weight)
    return par.class_factors(np.asarray(found, dtype=np.float64), classes)


def encoded(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The classes in order and the number of each label; without sorting if they are two."""
    if y.dtype.kind in "biuf" and y.size:
        unlike = y != y[0]
        other = y[unlike.argmax()]
        same = y == other
        if y[0] != other and np.count_nonzero(same) == np.count_nonzero(unlike):
            low, high = sorted((y[0], other))
            return np.array([low, high]), (same if high == other else ~same).astype(np.intp)
    return np.unique(y, return_inverse=True)


def whole(classes: np.ndarray) -> bool:
    """Whether the classes are whole numbers, of which no question is asked."""
    return classes.dtype.kind in "biu" or (
        classes.dtype.kind == "f" and bool(np.all(classes == np.floor(classes)))
    )


def asked(estimator: Any, X: Any, finite: bool = True) -> Any:
    """Rows to predict for a fitted estimator, checked."""
    check_is_fitted(estimator)
    named = hasattr(estimator, "feature_names_in_")
    if not (finite or named) and plain_rows(X) and X.shape[1] == estimator.n_features_in_:
        return X  # scikit-learn would find nothing to do
    return validate_data(
        estimator,
        X,
        reset=False,
        accept_sparse="csr",
        dtype=small_dtype(X),
        accept_large_sparse=True,
        ensure_all_finite=finite,
    )


def all_or_nothing(fit: Callable[..., Any]) -> Callable[..., Any]:
    """A fit that is refused leaves the estimator as it was; one that warns or is ended is not."""

    @functools.wraps(fit)
    def careful(estimator, *args, **known):
        before = vars(estimator).copy()
        try:
            return fit(estimator, *args, **known)
        except Warning:  # where warnings are errors
            raise
        except Exception:
            vars(estimator).clear()
            vars(estimator).update(before)
            raise

    return careful


class Classifier(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """Base of the classifiers with C or lam, class_weight, n_threads, verbose and tol."""

    @contextlib.contextmanager
    def _at_work(self) -> Iterator[None]:
        """Threads as asked for, and a log on the screen if asked for."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(use_threads(par.threads_of(self.n_threads)))
            if self.verbose:
                stack.enter_context(listening("pegasos", logging.StreamHandler()))
            yield

    def _read(self, X, y, sample_weight) -> Data:
        """The data, checked; rows of weight 0 are not there."""
        X, y = self._validated(X, y)
        label = self._encode(y)
        c = self._row_costs(X, y, label, sample_weight)
        kept = np.flatnonzero(c > 0.0)
        if kept.size < c.size:
            X, label, c = X[kept], label[kept], c[kept]
            self._refuse_missing_classes(label)
        for name in OF_DECISIONS:
            self.__dict__.pop(name, None)
        return Data(X, label, c, kept)

    def _validated(self, X, y) -> tuple[Any, Any]:
        """X and y as scikit-learn's validation leaves them, which takes a millisecond to look."""
        if plain(X, y):
            self.__dict__.pop("feature_names_in_", None)
            self.n_features_in_ = X.shape[1]
            return X, y
        return validate_data(
            self, X, y, accept_sparse="csr", dtype=small_dtype(X), accept_large_sparse=True
        )

    def _encode(self, y) -> np.ndarray:
        classes, label = encoded(y)
        if len(classes) < 2 or not whole(classes):
            with warnings.catch_warnings():  # many classes are no reason to warn
                warnings.simplefilter("ignore", UserWarning)
                check_classification_targets(classes if len(classes) > 1 else y)
        if len(classes) < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of at least 2 classes in the data, "
                f"but the data contains only one class: {par.shown(classes[0])}"
            )
        self.classes_ = classes
        return label

    def _row_costs(self, X, y, label, sample_weight) -> np.ndarray:
        """c_i = C class_weight[y_i] sample_weight_i"""
        if sample_weight is None:
            weight = np.ones(len(label))
        else:
            checks = {"dtype": np.float64, "ensure_non_negative": True}
            weight = _check_sample_weight(sample_weight, X, **checks)
        total = float(weight.sum())
        if self.lam is None:
            C = par.positive("C", self.C)
        else:
            C = C_from_lam(par.positive("lam", self.lam), total)
        self._C = C
        if self.class_weight is None:
            return C * weight
        return C * class_weights(self.class_weight, self.classes_, y, weight)[label] * weight

    def _refuse_missing_classes(self, label) -> None:
        missing = np.setdiff1d(np.arange(len(self.classes_)), label)
        if missing.size:
            raise ValueError(
                f"class {par.shown(self.classes_[missing[0]])} has no sample of positive weight: "
                "drop its rows or give them weight"
            )

    def _close(self, runs: list[Run]) -> None:
        """After all is recorded: Ctrl-C goes on, and a gap above tol is told."""
        if any(run.stop_reason == "interrupted" for run in runs):
            raise KeyboardInterrupt
        self._warn_unless_converged(runs)

    def _warn_unless_converged(self, runs: list[Run]) -> None:
        short = [
            run
            for run in runs
            if run.stop_reason in ACTIONS and not run.certificate.relative_gap <= self.tol
        ]
        if not short:
            return
        worst = max(short, key=lambda run: run.certificate.relative_gap)
        certificate = worst.certificate
        if isinstance(self._loss(), NEVER_NEGATIVE):
            certificate = certificate.above_zero
        primal, dual = certificate
        gap = certificate.relative_gap
        advice = ACTIONS[worst.stop_reason].format(max_iter=self.max_iter, max_time=self.max_time)
        warn(
            f"{type(self).__name__} stopped ({worst.stop_reason}) with a proven relative gap of "
            f"{gap:.1e}, above tol={self.tol:g}: the objective is {primal:.6g}, the optimum at "
            f"least {dual:.6g}. To get closer: {advice}.",
            ConvergenceWarning,
        )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
