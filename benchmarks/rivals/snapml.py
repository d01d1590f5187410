"""snapml's SupportVectorMachine and LogisticRegression on two threads."""

from __future__ import annotations

from typing import Any

TOLERANCES = (1.0, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5, 1e-6)


def ways(loss: str, eps: float) -> list[list[dict]]:
    return [[{"tol": tol} for tol in TOLERANCES]]


def fit(X: Any, y: Any, C: float, loss: str, setting: dict) -> Any:
    """Its objective is regularizer/2 ||w||^2 + sum of losses: regularizer = 1/C."""
    from snapml import LogisticRegression, SupportVectorMachine

    model = LogisticRegression() if loss == "logistic" else SupportVectorMachine(loss=loss)
    model.set_params(regularizer=1.0 / C, n_jobs=2, max_iter=100_000, **setting)
    return model.fit(X, y).coef_.ravel()
