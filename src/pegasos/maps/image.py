"""The image of rows under a fitted map: phi(x) = raw(x) R, raw features first, a matrix after them.

Of a Nyström map the raw features are the kernel values of x and m prototypes, and

    R R' = U diag(1 / lambda) U',    K = U diag(lambda) U'  (the m x m matrix of the prototypes)

over the eigenvalues that are kept. U diag(lambda)^(-1/2) would do; it is turned by an orthogonal
matrix into an upper trapezoid, which leaves all phi(x).phi(z) as they are and halves the work.
Products X w and X' a need no R on the rows: X w = raw (R w), X' a = R' (raw' a).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh

from pegasos.core.dispatch import generic
from pegasos.core.rows import CsrRows, n_rows
from pegasos.data.check import as_matrix
from pegasos.objective.kernel_blocks import block, diagonal, precise, values_dtype
from pegasos.objective.kernel_points import Points, in_precision_of, n_points, points
from pegasos.objective.kernels import Linear

_PANEL = 128  # columns of R that are multiplied together: the zeros below them are left out


class KernelFeatures(NamedTuple):
    """K(x, z_j) for the prototypes z_j"""

    kernel: Any
    prototypes: Points


class Waves(NamedTuple):
    """cos(x.f_j) and, behind them all, sin(x.f_j), times `scale`"""

    frequencies: Points
    scale: float


class Image(NamedTuple):
    """Raw features and R; an R without columns stands for the identity."""

    features: Any
    R: np.ndarray


@generic
def n_raw(features: Any) -> int:
    """The number of raw features"""


@generic
def raw(features: Any, rows: Any) -> np.ndarray:
    """The raw features of some rows: an array of their own"""


@generic
def sqnorm_bounds(features: Any, rows: Any) -> np.ndarray:
    """No less than ||phi(x)||^2, for all rows"""


@generic
def in_precision(features: Any, dtype: Any) -> Any:
    """The features, computed in a dtype"""


@n_raw.register(KernelFeatures)
def _(features):
    return n_points(features.prototypes)


@raw.register(KernelFeatures)
def _(features, rows):
    like = features.prototypes
    return block(features.kernel, points(features.kernel, rows, like=like), like)


@sqnorm_bounds.register(KernelFeatures)
def _(features, rows):
    return diagonal(features.kernel, points(features.kernel, rows, like=features.prototypes))


@in_precision.register(KernelFeatures)
def _(features, dtype):
    return features._replace(prototypes=in_precision_of(features.prototypes, dtype))


@n_raw.register(Waves)
def _(features):
    return 2 * n_points(features.frequencies)


@raw.register(Waves)
def _(features, rows):
    F, x = features.frequencies, points(Linear(), rows)
    if isinstance(x.rows, CsrRows):  # few entries: not written out
        T = as_matrix(x.rows) @ F.rows.values.T
    else:
        T = block(Linear(), points(Linear(), x.rows, like=F), F)
    out = np.concatenate([np.cos(T), np.sin(T, out=T)], axis=1)
    out *= T.dtype.type(features.scale)
    return out


@sqnorm_bounds.register(Waves)
def _(features, rows):
    return np.ones(n_rows(rows))


@in_precision.register(Waves)
def _(features, dtype):
    return features._replace(frequencies=in_precision_of(features.frequencies, dtype))


def nystroem_image(kernel: Any, prototypes: Points, threshold: float) -> tuple[Image, np.ndarray]:
    """The map of some prototypes, and the eigenvalues of their kernel matrix, rising.

    Those up to `threshold` times the largest are dropped: they are rounding, or of no kernel.
    """
    K = precise(kernel, prototypes, prototypes)
    values, U = eigh(0.5 * (K + K.T), driver="evd", check_finite=False)
    kept = np.flatnonzero(values > max(threshold * values[-1], 0.0))
    if kept.size == 0:  # K = 0, or of no positive part
        return Image(KernelFeatures(kernel, prototypes), np.zeros((len(K), 1))), values
    turned = np.linalg.qr((U[::-1, kept] / np.sqrt(values[kept])).T, mode="r")
    signs = np.where(np.diag(turned) < 0.0, -1.0, 1.0)  # else they would be left to chance
    R = np.ascontiguousarray((signs[:, None] * turned)[::-1, ::-1].T)
    return Image(KernelFeatures(kernel, prototypes), R), values


def width(image: Image) -> int:
    """The number of columns of the image."""
    return image.R.shape[1] or n_raw(image.features)


def in_dtype(image: Image, dtype: Any) -> Image:
    """The image as it is computed for rows of a dtype."""
    return Image(in_precision(image.features, dtype), image.R.astype(dtype, copy=False))


def dtype_of(image: Image) -> np.dtype:
    features = image.features
    held = features.prototypes if isinstance(features, KernelFeatures) else features.frequencies
    return values_dtype(held.rows)


def spread(image: Image, W: np.ndarray) -> np.ndarray:
    """R W in float64: weights of the image as weights of the raw features."""
    return image.R.astype(np.float64, copy=False) @ W if image.R.size else W


def gather(image: Image, V: np.ndarray) -> np.ndarray:
    """R' V in float64."""
    return image.R.astype(np.float64, copy=False).T @ V if image.R.size else V


def map_into(out: np.ndarray, image: Image, rows: Any) -> None:
    """out = phi of some rows, computed in the dtype of the image."""
    K = raw(image.features, rows)
    R = image.R.astype(K.dtype, copy=False)
    m, r = R.shape
    if not R.size:
        out[...] = K
    for s in range(0, r, _PANEL):
        e = min(s + _PANEL, r)
        filled = min(m, e + m - r)  # R[i, j] = 0 for i > j + m - r
        np.matmul(K[:, :filled], R[:filled, s:e], out=out[:, s:e])
