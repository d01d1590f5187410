"""Solving with a Gram matrix that may be badly scaled or singular to rounding."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from pegasos.core.dispatch import helper

_RIDGE, _MORE = 1e-15, 100.0  # added to a unit diagonal, and times as much where that fails


def diagonal_of(H: np.ndarray) -> np.ndarray:
    """A view of the diagonal, which may be written."""
    diagonal = H.diagonal()
    diagonal.setflags(write=True)
    return diagonal


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
    ridge = _RIDGE
    while True:
        diagonal_of(unit)[:] = 1.0 + ridge
        upper, failed = dpotrf(unit.T, lower=0, clean=0)
        if not failed:
            return Factor(upper, scale)
        ridge *= _MORE
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


@helper
def solve_small(G, R, x, room):
    """x <- (G + diag(R))^-1 x in a compiled loop, as `factored` does it; whether that worked.

    Of G the lower triangle is read, also of a larger one; `room`: for a matrix and two vectors.
    """
    L, unit, column = room
    d, ridge = x.shape[0], _RIDGE
    for k in range(d):
        diagonal = G[k, k] + R[k]
        unit[k] = 1.0 / np.sqrt(diagonal) if diagonal > 0.0 else 1.0
    while ridge < 1.0:
        for i in range(d):
            for j in range(i):
                L[i, j] = G[i, j] * unit[j] * unit[i]
            L[i, i] = 1.0 + ridge
        if _cholesky(L, column):
            for k in range(d):
                x[k] *= unit[k]
            _substitute(L, x)
            for k in range(d):
                x[k] *= unit[k]
            return True
        ridge *= _MORE
    return False


@helper
def _cholesky(L, column):
    """L <- the factor of L, in the lower triangle; whether there is one."""
    d = L.shape[0]
    for k in range(d):
        if not L[k, k] > 0.0:
            return False
        L[k, k] = np.sqrt(L[k, k])
        inverse = 1.0 / L[k, k]
        for i in range(k + 1, d):
            L[i, k] *= inverse
            column[i] = L[i, k]
        for i in range(k + 1, d):  # slices: indices that do not begin at 0 do not vectorise
            line, other, x = L[i, k + 1 : i + 1], column[k + 1 : i + 1], column[i]
            for j in range(line.shape[0]):
                line[j] -= x * other[j]
    return True


@helper
def _substitute(L, x):
    """x <- (L L')^-1 x"""
    d = x.shape[0]
    for i in range(d):
        for j in range(i):
            x[i] -= L[i, j] * x[j]
        x[i] /= L[i, i]
    for i in range(d - 1, -1, -1):
        x[i] /= L[i, i]
        for j in range(i):
            x[j] -= L[i, j] * x[i]
