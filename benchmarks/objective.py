"""The objective that judges every solver: 1/2 ||w||^2 + C * sum of losses, no intercept."""

from __future__ import annotations

from typing import Any

import numpy as np

LOSSES = {
    "hinge": lambda z: np.maximum(0.0, 1.0 - z),
    "squared_hinge": lambda z: np.maximum(0.0, 1.0 - z) ** 2,
    "logistic": lambda z: np.logaddexp(0.0, -z),
}


def objective(X: Any, y: np.ndarray, w: np.ndarray, C: float, loss: str) -> float:
    """The value at w, in float64."""
    w = np.asarray(w, dtype=np.float64)
    return 0.5 * float(w @ w) + C * float(LOSSES[loss](y * (X @ w)).sum())
