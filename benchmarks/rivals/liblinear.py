"""LIBLINEAR by its own package; the multicore one differs in the number of threads alone."""

from __future__ import annotations

from typing import Any

EPSILONS = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5)
# -s: dual descent; for the smooth losses also Newton with a trust region
SOLVERS = {"hinge": (3,), "squared_hinge": (1, 2), "logistic": (7, 0)}


def ways(loss: str, eps: float) -> list[list[dict]]:
    return [[{"s": s, "e": e} for e in EPSILONS] for s in SOLVERS[loss]]


def ways_multicore(loss: str, eps: float) -> list[list[dict]]:
    """Two threads where the package has them: not for the dual of the logistic loss."""
    parallel = [s for s in SOLVERS[loss] if s != 7]
    return [[{"s": s, "e": e, "m": 2} for e in EPSILONS] for s in parallel]


def fit(X: Any, y: Any, C: float, loss: str, setting: dict) -> Any:
    """`converted` in the setting: X as it was converted for the fit before."""
    import numpy as np
    from liblinear.liblinearutil import parameter, train

    options = " ".join(f"-{key} {value}" for key, value in setting.items() if key != "converted")
    data = _again(X, y) if setting.get("converted") else _converted(X, y)
    model = train(data, parameter(f"{options} -c {C} -q"))
    sign = 1.0 if model.label[0] == 1 else -1.0
    return sign * np.ctypeslib.as_array(model.w, (model.nr_feature,)).copy()


def _converted(X: Any, y: Any) -> Any:
    import numpy as np
    from liblinear.liblinearutil import problem
    from scipy.sparse import csr_matrix

    return problem(y, csr_matrix(X, dtype=np.float64))


_kept: dict[tuple[int, int], tuple[Any, Any]] = {}  # X and its problem, by shape


def _again(X: Any, y: Any) -> Any:
    """The problem of the same X, with these labels; an excerpt of it does not take its place."""
    import numpy as np

    if X.shape not in _kept and len(_kept) > 1:  # of another set
        _kept.clear()
    if X.shape not in _kept or _kept[X.shape][0] is not X:
        _kept[X.shape] = X, _converted(X, y)
    data = _kept[X.shape][1]
    np.ctypeslib.as_array(data.y, (data.l,))[:] = y
    return data
