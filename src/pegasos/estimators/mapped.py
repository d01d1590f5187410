"""Linear classifiers behind a map, and streams to them: mapped block by block, learnt as
PegasosClassifier does.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_feature_names, _check_sample_weight, validate_data

from pegasos.core.logs import warn
from pegasos.data.check import small_dtype
from pegasos.estimators import parameters as par
from pegasos.estimators.base import OF_A_FIT, LinearClassifier
from pegasos.estimators.online import PegasosClassifier
from pegasos.estimators.streams import OF_A_STREAM, OnStream
from pegasos.objective.losses import Logistic

_SHARED = (
    *("lam", "intercept", "fit_intercept", "intercept_scaling", "class_weight", "multi_class"),
    *("probability", "n_threads", "random_state"),
)
_VALUES = 1 << 24  # of the image of a part of a block
_OF_WEIGHTS = ("coef_", "intercept_", "classes_", *OF_A_FIT, *OF_A_STREAM)


class MappedClassifier(OnStream, LinearClassifier):
    """Base of the linear classifiers behind a map. They define `_new_map()`."""

    loss: Any
    center: Any
    map_: Any

    def _loss(self) -> Any:
        given = "squared_hinge" if self.loss is None else self.loss
        return par.loss_in(self.multi_class, given, {**par.LOSSES, "logistic": Logistic})

    def _new_map(self) -> Any:
        """The map that the parameters ask for, not yet fitted."""
        raise NotImplementedError

    def _adopt(self, found: Any) -> None:
        """Map rows by this map from now on."""
        self.map_ = found

    def fit_map(self, X):
        """Fit the map alone, for `partial_fit` to begin with: to rows, or to a sample of a stream.

        What was learnt behind another map is forgotten.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features), or a stream
            A stream is an iterable of such blocks, or of pairs (block, labels). It is read once, in
            memory for the sample (`NystroemMap.fit`) and one block.

        Returns
        -------
        self
        """
        found = self._new_map().fit(X)
        self._forget(("feature_names_in_", *_OF_WEIGHTS))
        self._adopt(found)
        self.n_features_in_ = found.n_features_in_
        if hasattr(found, "feature_names_in_"):
            self.feature_names_in_ = found.feature_names_in_
        return self

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Learn from some rows of a stream: one pass, by the steps of `PegasosClassifier`.

        The map is that of `fit_map` or of a `fit` before; if there is none it is fitted to the rows
        of the first call, whatever their weights, and stays. Memory is bounded by one mapped block.
        Rows that are refused leave the model as it was. After `fit` a new stream begins.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        classes : array, default=None
            All classes of the stream, at the first call (default: those of y).
        sample_weight : array of shape (n_samples,), default=None
            Rows of weight 0 are not learnt.

        Returns
        -------
        self
        """
        learner, known = self._learner(), getattr(self, "map_", None)
        with self._names_of(X, known is not None and not hasattr(self, "_stream")):
            X, y = validate_data(
                self, X, y, accept_sparse="csr", dtype=small_dtype(X), reset=known is None
            )
            chosen = self._map_of_first(X) if known is None else known
            _learn(learner, chosen, X, y, classes, sample_weight)
        self._adopt(chosen)
        self.classes_, self.center_ = learner.classes_, None
        self.coef_, self.intercept_ = learner.coef_, learner.intercept_
        self._carry(learner._stream)
        return self

    def _map_of_first(self, X: Any) -> Any:
        made = self._new_map()
        least = made.rows_wanted()
        if X.shape[0] < least:
            warn(
                f"the map is fitted to the {X.shape[0]} rows of the first block, and stays: call "
                f"fit_map with a sample of the stream before, or begin with {least} rows or more"
            )
        return made.fit(X)

    @contextlib.contextmanager
    def _names_of(self, X: Any, first: bool) -> Iterator[None]:
        """A map that was fitted to arrays knows no names of features: those of the first rows that
        are learnt will do."""
        unnamed = first and not hasattr(self, "feature_names_in_")
        try:
            if unnamed:
                _check_feature_names(self, X, reset=True)
            yield
        except BaseException:
            if unnamed:
                self._forget(("feature_names_in_",))
            raise

    def _learner(self) -> PegasosClassifier:
        """Who learns the mapped rows, as far as it has come."""
        if self.center is not None:
            raise ValueError("center= is for fit: a stream behind a map begins at 0, drop it")
        par.one_of("multi_class", self.multi_class, self._modes)
        shared = {name: getattr(self, name) for name in _SHARED}
        loss = "hinge" if self.loss is None else self._loss()
        learner = PegasosClassifier(loss=loss, **shared)
        if hasattr(self, "_stream"):
            learner.classes_, learner.n_features_in_ = self.classes_, self.coef_.shape[1]
            learner._carry(self._stream)
        return learner

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")


def _learn(learner: PegasosClassifier, made: Any, X: Any, y, classes, sample_weight) -> None:
    """One block, mapped in as many parts as keep their images small."""
    size = max(1, _VALUES // made.longest_image(X))
    if X.shape[0] <= size:
        learner.partial_fit(made.mapped(X), y, classes, sample_weight)
        return
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
    if classes is None and not hasattr(learner, "_stream"):
        classes = np.unique(y)
    for s in range(0, X.shape[0], size):
        part = slice(s, s + size)
        learner.partial_fit(made.mapped(X[part]), y[part], classes, weight[part])
