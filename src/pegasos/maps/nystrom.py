"""NystroemMap: kernels made linear through m prototypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from pegasos.core.cross import gathered
from pegasos.core.digest import row_digests
from pegasos.core.parameters import count, one_of, positive, seed_of
from pegasos.core.rows import CsrRows, DenseRows, n_rows
from pegasos.data.check import as_rows
from pegasos.maps.base import SAMPLE, FeatureMap
from pegasos.maps.image import Image, in_dtype, nystroem_image, width
from pegasos.maps.mapped_rows import image_of
from pegasos.maps.prototypes import SELECTIONS, Chosen, renyi_entropy
from pegasos.objective.kernel_names import kernel_of
from pegasos.objective.kernel_points import Points, as_given, is_given, n_points, points
from pegasos.objective.kernels import resolved

_PER_PROTOTYPE = 20  # rows among which prototypes are chosen, or SAMPLE if that is more


class ImageMap(FeatureMap):
    """A map that is an `Image` when fitted, kept as `_image`."""

    _image: Image

    def transform(self, X):
        """Map rows, in blocks on all threads.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_components_), of the dtype of X
        """
        return self.mapped(self._to_map(X))

    def mapped(self, X: Any) -> np.ndarray:
        with self._at_work():
            return image_of(in_dtype(self._image, X.dtype), as_rows(X))

    @property
    def _n_features_out(self) -> int:
        return width(self._image)


class NystroemMap(ImageMap):
    """Nyström approximation of a kernel: phi(x).phi(z) is close to K(x, z), and a linear model on
    phi(x) close to a kernel machine, at the price of m kernel values a row.

    Parameters
    ----------
    kernel : str, kernel of `pegasos.kernels` or function, default="rbf"
        "linear", "poly", "rbf", "laplacian", "sigmoid"; a kernel such as `Gaussian(0.5) + 1`; or a
        function of two arrays of rows that gives the matrix.
    m : int, default=100
        Prototypes; all distinct rows if these are fewer.
    prototypes : {"kmeans", "entropy", "leverage", "random"}, default="kmeans"
        How they are chosen (among max(20 m, 20000) rows drawn at random): centres of k-means; by
        the quadratic Renyi entropy; by leverage scores; at random.
    gamma, degree, coef0
        Parameters of the kernels named by a string, as in `SVC`.
    threshold : float, default=1e-6
        Eigenvalues of the kernel matrix of the prototypes up to this share of the largest are
        dropped.
    random_state : int, RandomState or None, default=None
    n_threads : int, default=None
        Threads; None means all cores. No value depends on their number.

    Attributes
    ----------
    n_components_ : int
        Columns of the image: eigenvalues that are kept.
    dropped_ : int
        Eigenvalues that are not.
    eigenvalues_ : array
        All of them, rising.
    kernel_ : the kernel, with numbers for its parameters
    component_indices_ : array
        The rows of X (of a stream: of its sample) that are prototypes; empty for k-means, whose
        centres are no rows.
    components_ : array of shape (m, n_features)
        The prototypes.
    entropy_ : float
        The quadratic Renyi entropy of the prototypes.

    Examples
    --------
    >>> from pegasos import LinearSVC, NystroemMap
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.pipeline import make_pipeline
    >>> X, y = load_digits(return_X_y=True)
    >>> model = make_pipeline(NystroemMap(m=200, random_state=0), LinearSVC()).fit(X, y)
    >>> model.score(X, y) > 0.99
    True
    """

    def __init__(
        self,
        kernel="rbf",
        *,
        m=100,
        prototypes="kmeans",
        gamma="scale",
        degree=3,
        coef0=0.0,
        threshold=1e-6,
        random_state=None,
        n_threads=None,
    ):
        self.kernel = kernel
        self.m = m
        self.prototypes = prototypes
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.threshold = threshold
        self.random_state = random_state
        self.n_threads = n_threads

    def fit(self, X, y=None):
        """Choose prototypes and the map that belongs to them.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features), or a stream
            A stream is an iterable of such blocks, or of pairs (block, labels), read once: the map
            is fitted to max(20 m, 20000) rows of it drawn at random.
        y : ignored

        Returns
        -------
        self
        """
        m = count("m", self.m)
        select = SELECTIONS[one_of("prototypes", self.prototypes, tuple(SELECTIONS))]
        threshold = positive("threshold", self.threshold, zero=True)
        kernel = kernel_of(self.kernel, self.gamma, self.degree, self.coef0)
        if is_given(kernel):
            raise ValueError("a Nyström map needs rows: kernel='precomputed' has none to map")
        rng = np.random.default_rng(seed_of(self.random_state))
        X = self._to_fit(X, rng, _among(m))
        with self._at_work():
            self.kernel_ = resolved(kernel, X)
            sample, among = _sample(self.kernel_, as_rows(X), m, rng)
            some = m < n_points(sample)
            chosen = select(self.kernel_, sample, m, rng) if some else _all(sample)
            image, values = nystroem_image(self.kernel_, chosen.prototypes, threshold)
            self.entropy_ = renyi_entropy(self.kernel_, chosen.prototypes)
        self._image, self.eigenvalues_ = image, values
        self.component_indices_ = among[chosen.rows]
        self.n_components_ = width(image)
        self.dropped_ = len(values) - self.n_components_
        return self

    def rows_wanted(self) -> int:
        return count("m", self.m)

    @property
    def components_(self) -> np.ndarray:
        return as_given(self._image.features.prototypes)


def _among(m: int) -> int:
    return max(_PER_PROTOTYPE * m, SAMPLE)


def _sample(kernel: Any, rows: Any, m: int, rng: Any) -> tuple[Points, np.ndarray]:
    """Rows to choose from, and which they are: distinct ones, if about all are wanted."""
    n = n_rows(rows)
    size = min(n, _among(m))
    among = np.sort(rng.permutation(n)[:size]) if size < n else np.arange(n)
    some = gathered(rows, among) if size < n else rows
    if m >= size:
        first = _first_of_equals(some)
        some, among = gathered(some, first), among[first]
    return points(kernel, some), among


def _first_of_equals(rows: DenseRows | CsrRows) -> np.ndarray:
    return np.sort(np.unique(row_digests(rows), return_index=True)[1])


def _all(sample: Points) -> Chosen:
    return Chosen(sample, np.arange(n_points(sample)))
