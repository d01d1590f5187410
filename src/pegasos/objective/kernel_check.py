"""Is a function a kernel? A look at a sample: no sample proves it, one can refute it.

K is a kernel if it is symmetric and every matrix of its values has no negative eigenvalue.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pegasos.objective.kernel_blocks import precise, values_dtype
from pegasos.objective.kernel_names import kernel_of
from pegasos.objective.kernel_points import Points, n_points, points, take
from pegasos.objective.kernels import by_products, resolved

_ROUNDING = 1e-10  # of the largest eigenvalue: what products of float64 numbers leave


class KernelCheck(NamedTuple):
    """What a sample of `rows` points shows of a function.

    smallest, largest : of the eigenvalues of the matrix of its values (its symmetric part)
    asymmetry : the largest |K(x, z) - K(z, x)|
    tolerance : what rounding explains of either
    """

    rows: int
    smallest: float
    largest: float
    asymmetry: float
    tolerance: float

    @property
    def is_symmetric(self) -> bool:
        return self.asymmetry <= self.tolerance

    @property
    def is_kernel(self) -> bool:
        """Whether nothing on the sample speaks against it."""
        return self.is_symmetric and self.smallest >= -self.tolerance

    def __str__(self) -> str:
        if not self.is_symmetric:
            return f"no kernel: K(x, z) and K(z, x) differ by up to {self.asymmetry:.3g}"
        seen = f"eigenvalues on {self.rows} points from {self.smallest:.3g} to {self.largest:.3g}"
        if not self.is_kernel:
            return f"no kernel: {seen}"
        return f"nothing speaks against a kernel: {seen}"

    def __repr__(self) -> str:
        return str(self)


def check_kernel(k: Any, X: Any, sample: int = 500, random_state: Any = 0) -> KernelCheck:
    """The smallest eigenvalue of a kernel's matrix on a sample of X, and a verdict.

    Parameters
    ----------
    k : kernel, name of one, or function f(A, B) of rows or f(x, z) of two points
    X : array, CSR matrix, or list of any objects that the function takes
        The square matrix itself for Precomputed.
    sample : int
        So many points of X are drawn, if it has more.
    random_state : int or numpy.random.Generator

    Examples
    --------
    >>> import numpy as np
    >>> from pegasos.kernels import Gaussian, check_kernel
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> check_kernel(Gaussian(1.0), X).is_kernel
    True
    >>> check_kernel(lambda x, z: 1.0 - np.sum((x - z) ** 2), X).is_kernel
    False
    """
    k = resolved(kernel_of(k), X)
    return check_points(k, points(k, X), sample, random_state)


def check_points(k: Any, all_points: Points, sample: int, random_state: Any = 0) -> KernelCheck:
    """The same of points that are made ready for k."""
    n = n_points(all_points)
    if n == 0 or sample < 1:
        raise ValueError("check_kernel needs at least one point and sample >= 1")
    drawn = np.arange(n)
    if n > sample:
        drawn = np.sort(np.random.default_rng(random_state).choice(n, sample, replace=False))
    some = take(all_points, drawn)
    K = precise(k, some, some)
    if not np.all(np.isfinite(K)):
        raise ValueError(f"{k!r} is not finite on the sample: scale the features")
    eigenvalues = np.linalg.eigvalsh(0.5 * (K + K.T))
    return KernelCheck(
        rows=len(K),
        smallest=float(eigenvalues[0]),
        largest=float(eigenvalues[-1]),
        asymmetry=float(np.abs(K - K.T).max()),
        tolerance=_rounding(k, some, K) * float(np.abs(eigenvalues).max()),
    )


def _rounding(k: Any, some: Points, K: np.ndarray) -> float:
    """What rounding may do to eigenvalues, as a share of the largest: n eps if values came in
    float32, by their type or since all of them are such numbers (and no whole ones)."""
    in_float32 = values_dtype(some.rows) == np.float32 and not by_products(k)
    if in_float32 or (
        np.array_equal(K, K.astype(np.float32)) and not np.array_equal(K, np.rint(K))
    ):
        return len(K) * float(np.finfo(np.float32).eps)
    return _ROUNDING
