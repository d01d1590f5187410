"""pegasos itself, by the same protocol: two threads, one thread, and tol = eps (proven)."""

from __future__ import annotations

from typing import Any

LOOSEST = 1.0  # as those of the rivals, settings begin where nobody would stop


def fit(X: Any, y: Any, C: float, loss: str, setting: dict) -> Any:
    from pegasos import LinearSVC, LogisticRegression

    model: Any = LogisticRegression() if loss == "logistic" else LinearSVC(loss=loss)
    model.set_params(C=C, intercept="none", max_iter=20_000, random_state=0, **setting)
    return model.fit(X, y).coef_[0]


def two_threads(loss: str, eps: float) -> list[list[dict]]:
    return [[{"n_threads": 2, "tol": tol} for tol in _tolerances(eps)]]


def one_thread(loss: str, eps: float) -> list[list[dict]]:
    return [[{"n_threads": 1, "tol": tol} for tol in _tolerances(eps)]]


def _tolerances(eps: float) -> list[float]:
    """From the loosest to eps by 3 and 10: a true answer often comes before its proof."""
    found, tol = [], LOOSEST
    while tol > 1.5 * eps:
        found += [tol, 0.3 * tol]
        tol *= 0.1
    return [*(t for t in found if t > 1.5 * eps), eps]


def proven(loss: str, eps: float) -> list[list[dict]]:
    return [[{"n_threads": 2, "tol": eps}]]
