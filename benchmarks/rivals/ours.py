"""pegasos itself, by the same protocol: two threads, one thread, and tol = eps (proven)."""

from __future__ import annotations

from typing import Any

LOOSER = (30.0, 10.0, 3.0, 1.0)  # multiples of eps: a true answer often comes before its proof


def fit(X: Any, y: Any, C: float, loss: str, setting: dict) -> Any:
    from pegasos import LinearSVC, LogisticRegression

    model: Any = LogisticRegression() if loss == "logistic" else LinearSVC(loss=loss)
    model.set_params(C=C, intercept="none", max_iter=20_000, random_state=0, **setting)
    return model.fit(X, y).coef_[0]


def two_threads(loss: str, eps: float) -> list[list[dict]]:
    return [[{"n_threads": 2, "tol": eps * k} for k in LOOSER]]


def one_thread(loss: str, eps: float) -> list[list[dict]]:
    return [[{"n_threads": 1, "tol": eps * k} for k in LOOSER]]


def proven(loss: str, eps: float) -> list[list[dict]]:
    return [[{"n_threads": 2, "tol": eps}]]
