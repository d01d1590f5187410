"""scikit-learn: LinearSVC and LogisticRegression by tolerance, SGDClassifier by passes."""

from __future__ import annotations

from typing import Any

TOLERANCES = (1.0, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5, 1e-6)
PASSES = (3, 10, 30, 100, 300, 1000)
MOST_COLUMNS = 10_000  # newton-cholesky holds a dense Hessian


def ways(loss: str, eps: float) -> list[list[dict]]:
    if loss == "logistic":
        choices: list[dict] = [{"solver": "lbfgs"}, {"solver": "newton-cholesky"}]
    else:
        choices = [{"dual": True}, {"dual": False}][: 1 if loss == "hinge" else 2]
    return [[choice | {"tol": tol} for tol in TOLERANCES] for choice in choices]


def fit(X: Any, y: Any, C: float, loss: str, setting: dict) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    if setting.get("solver") == "newton-cholesky" and X.shape[1] > MOST_COLUMNS:
        raise MemoryError(f"newton-cholesky: a Hessian of {X.shape[1]} columns")
    model: Any = LogisticRegression() if loss == "logistic" else LinearSVC(loss=loss)
    model.set_params(C=C, fit_intercept=False, max_iter=100_000, **setting)
    return model.fit(X, y).coef_[0]


def ways_sgd(loss: str, eps: float) -> list[list[dict]]:
    return [[{"average": a, "max_iter": k} for k in PASSES] for a in (False, True)]


def fit_sgd(X: Any, y: Any, C: float, loss: str, setting: dict) -> Any:
    """Its objective is alpha/2 ||w||^2 + mean loss: alpha = 1 / (C n)."""
    from sklearn.linear_model import SGDClassifier

    name = {"logistic": "log_loss"}.get(loss, loss)
    model = SGDClassifier(loss=name, alpha=1.0 / (C * len(y)), random_state=0)
    model.set_params(fit_intercept=False, tol=None, **setting)
    return model.fit(X, y).coef_[0]
