"""probability=True: probabilities from scores, by models that each leave a part of the rows out."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from pegasos.core.digest import row_digests
from pegasos.core.logs import on_behalf
from pegasos.data.check import as_rows
from pegasos.estimators import parameters as par
from pegasos.estimators.calibration import calibrated, folds_of, leaving_out
from pegasos.estimators.classifier import Classifier, Data
from pegasos.estimators.one_vs_all import Watch
from pegasos.estimators.threshold import Thresholds
from pegasos.model.decision import KINDS, Calibration, leading, probabilities

NOWHERE = np.finfo(np.float64).tiny  # the least probability that has a logarithm worth the name


def _tells(estimator: Any) -> bool:
    if estimator._native or estimator.probability:
        return True
    raise AttributeError(
        f"{type(estimator).__name__} has no probabilities with probability=False: set "
        "probability=True and fit"
    )


class ProbabilisticClassifier(Thresholds, Classifier):
    """Subclasses define `_decided`; they may have the parameter `probability`."""

    probability: Any = False
    calibration_: Calibration
    _native = False  # whether scores are logits by themselves
    _watch: Watch | None = None  # who looks on while it fits: set by the command line

    def _decided(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Scores of rows, one column for two classes, else one for each, and the number of the
        class that they decide for (at threshold 0)."""
        raise NotImplementedError

    def predict(self, X):
        """The class of each row: the one with the highest score (of two by `threshold_`)."""
        scores, number = self._decided(X)
        if scores.shape[1] == 1:
            number = (scores[:, 0] > self.threshold_).astype(int)
        return self.classes_[number]

    @available_if(_tells)
    def predict_proba(self, X):
        """Probabilities of the classes (columns in the order of `classes_`).

        The class of the highest is the one that `predict` tells, unless `choose_threshold` has set
        another threshold than 0.
        """
        check_is_fitted(self)
        if not self._native and not hasattr(self, "calibration_"):
            raise NotFittedError(
                f"this {type(self).__name__} was fitted without probabilities: fit it with "
                "probability=True"
            )
        return probabilities(*self._decided(X), getattr(self, "calibration_", None))

    @available_if(_tells)
    def predict_log_proba(self, X):
        """Logarithms of the probabilities."""
        return np.log(np.maximum(self.predict_proba(X), NOWHERE))

    def _check_probability(self) -> str:
        """The kind of function behind the probabilities; "" if there are to be none."""
        if isinstance(self.probability, bool | np.bool_):
            return "sigmoid" if self.probability else ""
        if not isinstance(self.probability, str) or self.probability not in KINDS:
            raise ValueError(
                "probability must be False, True (the same as 'sigmoid') or 'isotonic', "
                f"got {self.probability!r}"
            )
        return self.probability

    def _calibrate(self, task: Any, data: Data, deadline: float) -> None:
        """After the fit of all rows: what turns scores into probabilities, if it is asked for."""
        kind = self._check_probability()
        if not kind:
            return
        if self._watch is not None:
            self._watch.leave()
        digests = row_digests(as_rows(data.X))
        folds = folds_of(digests, data.label, par.seed_of(self.random_state))
        scores = self._left_out(task, data, folds, deadline)
        left = np.flatnonzero(folds >= 0)
        label, weight = data.label[left], data.c[left] / self._C
        self.calibration_ = calibrated(kind, scores[left], label, weight, len(self.classes_))

    def _left_out(self, task: Any, data: Data, folds: np.ndarray, deadline: float) -> np.ndarray:
        """Scores of each row by a model that was fitted without its fold; 0 of rows in none."""
        n_folds = int(folds.max()) + 1
        out = np.zeros((len(folds), 1 if len(self.classes_) == 2 else len(self.classes_)))
        for f in range(n_folds):
            train, test = np.flatnonzero(folds != f), np.flatnonzero(folds == f)
            seconds = (deadline - time.perf_counter()) / (n_folds - f)
            X, rest = self._parts_of(data.X, train, test)
            y, weight = self.classes_[data.label[train]], data.c[train] / self._C
            with on_behalf(leaving_out(f, n_folds)):
                scores, number = self._copy(seconds).fit(X, y, weight)._decided(rest)
            out[test] = scores if scores.shape[1] == 1 else leading(scores, number)
        return out

    def _copy(self, seconds: float) -> Any:
        """The same machine without probabilities, for rows with weights c_i / C."""
        given = self.get_params(deep=False)
        limit = max(seconds, 1e-9) if np.isfinite(seconds) else None
        own = {"probability": False, "C": self._C, "lam": None, "class_weight": None}
        own |= {"max_time": limit, **self._settled()}
        return type(self)(**given | {name: own[name] for name in own if name in given})

    def _settled(self) -> dict[str, Any]:
        """Parameters that the fit of all rows has settled."""
        return {}

    def _parts_of(self, X: Any, train: np.ndarray, test: np.ndarray) -> tuple[Any, Any]:
        return X[train], X[test]
