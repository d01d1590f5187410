"""skglm's LinearSVC: working sets on the dual of the hinge."""

from __future__ import annotations

from typing import Any

TOLERANCES = (0.5, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4)
# Its default of 50 subproblems from 10 rows on stops far from the optimum.
STRATEGIES: tuple[dict, ...] = (
    {"p0": 100, "ws_strategy": "subdiff"},
    {"p0": 1000, "ws_strategy": "fixpoint"},
)


def ways(loss: str, eps: float) -> list[list[dict]]:
    if loss != "hinge":
        return []
    return [[strategy | {"tol": tol} for tol in TOLERANCES] for strategy in STRATEGIES]


def fit(X: Any, y: Any, C: float, loss: str, setting: dict) -> Any:
    from skglm import LinearSVC

    return LinearSVC(C=C, fit_intercept=False, max_iter=1000, **setting).fit(X, y).coef_[0]
