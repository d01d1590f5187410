"""The centre w0 of the objective from what users hold: a fitted linear model or an array."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Center(NamedTuple):
    """The weights of a linear model, as read from a file."""

    coef_: np.ndarray
    intercept_: np.ndarray


def centers_of(center: Any, n_problems: int, n_features: int, bias: float) -> np.ndarray:
    """One centre per problem, in the form of weight vectors (intercept last, divided by bias)."""
    centers = np.zeros((n_problems, n_features + 1))
    if center is None:
        return centers
    coef = np.atleast_2d(np.asarray(getattr(center, "coef_", center), dtype=np.float64))
    if coef.shape != (n_problems, n_features):
        raise ValueError(
            f"center must have {n_problems} x {n_features} coefficients (problems x features), "
            f"got {coef.shape[0]} x {coef.shape[1]}"
        )
    if not np.isfinite(coef).all():
        raise ValueError("center holds values that are not finite")
    centers[:, :-1] = coef
    if bias:
        centers[:, -1] = np.asarray(getattr(center, "intercept_", 0.0)) / bias
    return centers
