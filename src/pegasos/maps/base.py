"""What every feature map shares: rows in, checked; the manners of a scikit-learn transformer."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from pegasos.core.parameters import threads_of
from pegasos.core.threads import use_threads
from pegasos.data.check import small_dtype


class FeatureMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base of the maps: arrays and CSR matrices in, float32 stays float32.

    A subclass has the parameter `n_threads`, gives the width of its image as the attribute
    `_n_features_out` when fitted, and passes X through `_to_fit` and `_to_map`.
    """

    def _at_work(self) -> Any:
        """A context in which blocks use the threads that `n_threads` allows."""
        return use_threads(threads_of(self.n_threads))

    def _to_fit(self, X: Any) -> Any:
        """Rows to fit to, checked; their width and names are kept."""
        return self._checked(X, reset=True)

    def _to_map(self, X: Any) -> Any:
        """Rows to map, checked against those of the fit."""
        check_is_fitted(self)
        return self._checked(X, reset=False)

    def _checked(self, X: Any, reset: bool) -> Any:
        return validate_data(
            self,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=small_dtype(X),
            accept_large_sparse=True,
        )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = [np.float64, np.float32]
        return tags
