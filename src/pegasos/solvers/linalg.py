"""Solving with a Gram matrix that may be badly scaled or singular to rounding."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve


class Factor(NamedTuple):
    """H = S L L' S, S = diag(scale), L in the lower triangle."""

    lower: np.ndarray
    scale: np.ndarray


def factored(H: np.ndarray) -> Factor:
    """The factor of a positive semidefinite H.

    The matrix is scaled to a unit diagonal, which takes the units of the columns out, and the
    diagonal is lifted by as little as the factorisation needs (constant or repeated columns).
    """
    diagonal = np.diag(H)
    scale = np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    unit = H / scale / scale[:, None]
    ridge = 1e-15
    while True:
        unit[np.diag_indices_from(unit)] = 1.0 + ridge
        try:
            lower, _ = cho_factor(unit, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            ridge *= 100.0
            if not ridge < 1.0:
                raise
            continue
        return Factor(lower, scale)


def solved(factor: Factor, r: np.ndarray) -> np.ndarray:
    """The x with H x = r."""
    return cho_solve((factor.lower, True), r / factor.scale, check_finite=False) / factor.scale


def factor(H: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """A function that solves H x = r."""
    found = factored(H)
    return lambda r: solved(found, r)
