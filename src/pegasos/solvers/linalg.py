"""Solving with a Gram matrix that may be badly scaled or singular to rounding."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve


def factor(H: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """A function that solves H x = r for a positive semidefinite H.

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
            factors = cho_factor(unit, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            ridge *= 100.0
            if not ridge < 1.0:
                raise
            continue
        return lambda r: cho_solve(factors, r / scale, check_finite=False) / scale
