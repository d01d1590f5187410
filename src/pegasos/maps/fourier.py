"""FourierMap: kernels of x - z made linear by random waves, without a look at the data.

K(x - z) = E cos((x - z).f) over random frequencies f (Bochner), so with m/2 of them

    phi(x) = sqrt(2/m) (cos(x.f_1), ..., sin(x.f_1), ...),    phi(x).phi(z) -> K(x, z)

Gaussian: f is normal with variance 2 gamma. Laplacian: every f_j is Cauchy with scale gamma.
Normal frequencies are drawn in orthogonal sets of d, which keeps their distribution and lowers the
variance (Rahimi and Recht 2007; Yu et al. 2016).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pegasos.core.parameters import count, seed_of
from pegasos.maps.base import FEW
from pegasos.maps.image import Image, Waves, width
from pegasos.maps.nystrom import ImageMap
from pegasos.objective.kernel_names import is_of_rows, kernel_of
from pegasos.objective.kernel_points import points
from pegasos.objective.kernels import Gaussian, Laplacian, Linear, leaves, resolved


class FourierMap(ImageMap):
    """Random Fourier features of the Gaussian or the Laplacian kernel.

    Parameters
    ----------
    kernel : {"rbf", "laplacian"} or such a kernel of `pegasos.kernels`, default="rbf"
    m : int, default=100
        Columns of the image: cosine and sine of m/2 frequencies (an odd m is raised by one).
    gamma : float, "scale" or "auto", default="scale"
        Of a kernel named by a string, as in `SVC`; "scale" looks at the variance of X, and at
        nothing else.
    orthogonal : bool, default=True
        Whether the frequencies of the Gaussian kernel come in orthogonal sets.
    random_state : int, RandomState or None, default=None
    n_threads : int, default=None
        Threads; None means all cores. No value depends on their number.

    Attributes
    ----------
    n_components_ : int
        Columns of the image.
    kernel_ : the kernel, with a number for gamma

    Examples
    --------
    >>> from pegasos import FourierMap, LogisticRegression
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.pipeline import make_pipeline
    >>> X, y = load_digits(return_X_y=True)
    >>> model = make_pipeline(FourierMap(m=500, random_state=0), LogisticRegression()).fit(X, y)
    >>> model.score(X, y) > 0.98
    True
    """

    def __init__(
        self,
        kernel="rbf",
        *,
        m=100,
        gamma="scale",
        orthogonal=True,
        random_state=None,
        n_threads=None,
    ):
        self.kernel = kernel
        self.m = m
        self.gamma = gamma
        self.orthogonal = orthogonal
        self.random_state = random_state
        self.n_threads = n_threads

    def fit(self, X, y=None):
        """Draw the frequencies: of X the width counts and, for gamma="scale", the variance.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features), or a stream
            A stream is an iterable of such blocks, or of pairs (block, labels), read once: the map
            is fitted to 20000 rows of it drawn at random.
        y : ignored

        Returns
        -------
        self
        """
        waves = (count("m", self.m) + 1) // 2
        kernel = kernel_of(self.kernel, self.gamma)
        if not isinstance(kernel, Gaussian | Laplacian):
            raise ValueError(
                f"FourierMap is for the Gaussian and the Laplacian kernel, got {self.kernel!r}; "
                "NystroemMap takes any kernel"
            )
        rng = np.random.default_rng(seed_of(self.random_state))
        X = self._to_fit(X, rng)
        with self._at_work():
            self.kernel_ = resolved(kernel, X)
        drawn = _frequencies(self.kernel_, waves, X.shape[1], bool(self.orthogonal), rng)
        frequencies = points(Linear(), drawn.astype(X.dtype, copy=False))
        self._image = Image(Waves(frequencies, waves**-0.5), np.zeros((0, 0)))
        self.n_components_ = width(self._image)
        return self

    def rows_wanted(self) -> int:
        kernel = kernel_of(self.kernel, self.gamma)
        return FEW * any(is_of_rows(value) for leaf in leaves(kernel) for value in leaf)


def _frequencies(kernel: Any, waves: int, d: int, orthogonal: bool, rng: Any) -> np.ndarray:
    if isinstance(kernel, Laplacian):
        return kernel.gamma * rng.standard_cauchy((waves, d))
    F = rng.standard_normal((waves, d))
    if orthogonal:  # lengths and directions of normal vectors are independent: one draw for both
        for s in range(0, waves, d):
            length = np.linalg.norm(F[s : s + d], axis=1)
            F[s : s + d] = length[:, None] * np.linalg.qr(F[s : s + d].T)[0].T
    F *= np.sqrt(2.0 * kernel.gamma)
    return F
