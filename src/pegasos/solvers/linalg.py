"""Solving with a Gram matrix that may be badly scaled or singular to rounding."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs


def diagonal_of(H: np.ndarray) -> np.ndarray:
    """A view of the diagonal, which may be written."""
    return np.einsum("ii->i", H)


class Factor(NamedTuple):
    """H = S U' U S, S = diag(scale), U in the upper triangle."""

    upper: np.ndarray
    scale: np.ndarray


def factored(H: np.ndarray) -> Factor:
    """The factor of a positive semidefinite H, of which the lower triangle is read.

    The matrix is scaled to a unit diagonal, which takes the units of the columns out, and the
    diagonal is lifted by as little as the factorisation needs (constant or repeated columns).
    """
    diagonal = diagonal_of(H)
    scale = np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    unit = H / scale / scale[:, None]
    ridge = 1e-15
    while True:
        diagonal_of(unit)[:] = 1.0 + ridge
        upper, failed = dpotrf(unit.T, lower=0, clean=0)
        if not failed:
            return Factor(upper, scale)
        ridge *= 100.0
        if not ridge < 1.0:
            raise np.linalg.LinAlgError("not positive definite, whatever is added to the diagonal")


def solved(factor: Factor, r: np.ndarray) -> np.ndarray:
    """The x with H x = r; both may be empty."""
    if not r.size:
        return r.copy()
    return dpotrs(factor.upper, r / factor.scale, lower=0)[0] / factor.scale


def factor(H: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """A function that solves H x = r."""
    found = factored(H)
    return lambda r: solved(found, r)
