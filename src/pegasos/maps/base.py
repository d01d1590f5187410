"""What every feature map shares: rows or a stream in, checked; the manners of a transformer."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from pegasos.core.parameters import threads_of
from pegasos.core.threads import use_threads
from pegasos.data.check import small_dtype
from pegasos.maps.sample import is_stream, named, sample_rows

SAMPLE = 20_000  # rows to draw from a stream, at least
FEW = 100  # rows whose variance says little of others


class FeatureMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base of the maps: arrays and CSR matrices in, float32 stays float32.

    A subclass has the parameter `n_threads`, gives the width of its image as the attribute
    `_n_features_out` when fitted, and passes X through `_to_fit` and `_to_map`.
    """

    def _at_work(self) -> Any:
        """A context in which blocks use the threads that `n_threads` allows."""
        return use_threads(threads_of(self.n_threads))

    def mapped(self, X: Any) -> Any:
        """phi of rows that are checked."""
        raise NotImplementedError

    def _to_fit(self, X: Any, rng: np.random.Generator, size: int = SAMPLE) -> Any:
        """Rows to fit to, checked: X, or so many of a stream. Their width and names are kept."""
        if not is_stream(X):
            return self._checked(X, reset=True)
        names: list[Any] = []
        sample = self._checked(sample_rows(named(X, names), size, rng), reset=True)
        if names and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.array(names, dtype=object)
        return sample

    def rows_wanted(self) -> int:
        """How many rows a fit should have at least, if the map is to be used for others."""
        raise NotImplementedError

    def longest_image(self, X: Any) -> int:
        """The most values that a row of X is mapped to."""
        return self._n_features_out

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
