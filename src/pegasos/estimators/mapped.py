"""Linear classifiers behind a map, and streams to them: mapped block by block, learnt as
PegasosClassifier does.
"""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import _check_feature_names, validate_data

from pegasos.data.check import small_dtype
from pegasos.estimators import parameters as par
from pegasos.estimators.base import OF_A_FIT, LinearClassifier
from pegasos.estimators.online import PegasosClassifier
from pegasos.estimators.streams import OF_A_STREAM, OnStream
from pegasos.objective.losses import Hinge, Logistic

_SHARED = (
    *("lam", "intercept", "fit_intercept", "intercept_scaling", "class_weight", "multi_class"),
    *("probability", "n_threads", "random_state"),
)
_OF_WEIGHTS = ("coef_", "intercept_", "classes_", *OF_A_FIT, *OF_A_STREAM)


class MappedClassifier(OnStream, LinearClassifier):
    """Base of the linear classifiers behind a map. They define `_new_map()`."""

    loss: Any
    center: Any
    map_: Any

    def _loss(self) -> Any:
        given = "squared_hinge" if self.loss is None else self.loss
        loss = par.loss_of(Logistic() if given == "logistic" else given)
        return Hinge() if self.multi_class == "crammer_singer" else loss

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
        if known is not None and not hasattr(self, "_stream"):
            self._name_features(X)
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=small_dtype(X), reset=known is None
        )
        chosen = self._new_map().fit(X) if known is None else known
        learner.partial_fit(chosen.mapped(X), y, classes, sample_weight)
        self._adopt(chosen)
        self.classes_, self.center_ = learner.classes_, None
        self.coef_, self.intercept_ = learner.coef_, learner.intercept_
        self._carry(learner._stream)
        return self

    def _name_features(self, X: Any) -> None:
        """A map that was fitted to a stream knows no names of features: those of X will do."""
        if not hasattr(self, "feature_names_in_"):
            _check_feature_names(self, X, reset=True)

    def _learner(self) -> PegasosClassifier:
        """Who learns the mapped rows, as far as it has come."""
        if self.center is not None:
            raise ValueError("center= is for fit: a stream behind a map begins at 0, drop it")
        shared = {name: getattr(self, name) for name in _SHARED}
        loss = "hinge" if self.loss is None else self._loss()
        learner = PegasosClassifier(loss=loss, **shared)
        if hasattr(self, "_stream"):
            learner.classes_, learner.n_features_in_ = self.classes_, self.coef_.shape[1]
            learner._carry(self._stream)
        return learner

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")
