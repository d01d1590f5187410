"""Vowpal Wabbit: stochastic gradient at several rates by passes; L-BFGS for the logistic loss.

It reads text, so its fit includes writing one, by scikit-learn's compiled writer. Its stochastic
method applies --l2 only at rows with a loss: under the hinge, where most rows have none, it tends
to the optimum of a weaker penalty and stays above the one asked for.
"""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

PASSES = (3, 10, 30, 100, 300)
RATES = (0.1, 0.01)


def ways(loss: str, eps: float) -> list[list[dict]]:
    if loss == "squared_hinge":
        return []
    batch = [{"bfgs": True, "passes": k} for k in PASSES]
    online = [[{"rate": rate, "passes": k} for k in PASSES] for rate in RATES]
    return [batch, *online] if loss == "logistic" else online


def fit(X: Any, y: Any, C: float, loss: str, setting: dict) -> Any:
    import numpy as np
    from vowpalwabbit import Workspace

    with TemporaryDirectory() as folder:
        _write(X, y, Path(folder, "text"))
        bits = max(1, int(np.ceil(np.log2(X.shape[1]))))
        model = Workspace(
            f"-d {folder}/text --cache_file {folder}/cache -k --holdout_off --noconstant --quiet "
            f"-b {bits} --loss_function {loss} {_method(C, len(y), setting)}"
        )
        w = np.array([model.get_weight(j) for j in range(X.shape[1])])
        w *= _contraction(model, w)
        model.finish()
    return w


def _method(C: float, n: int, setting: dict) -> str:
    """L-BFGS counts --l2 once, against the sum of losses; the stochastic method at every row.

    The rate falls as 1 / (lam t), lam = 1 / (C n), from the given one on.
    """
    if setting.get("bfgs"):
        return f"--bfgs --l2 {1.0 / C} --termination 0 --passes {setting['passes']}"
    rate = setting["rate"]
    schedule = f"--sgd -l {rate} --power_t 1 --initial_t {C * n / rate}"
    return f"{schedule} --l2 {1.0 / (C * n)} --passes {setting['passes']}"


def _write(X: Any, y: Any, path: Path) -> None:
    from io import BytesIO

    from sklearn.datasets import dump_svmlight_file

    text = BytesIO()
    dump_svmlight_file(X, y.astype(int), text)
    path.write_bytes(re.sub(rb"(?m)^(-?1)\b", rb"\1 |", text.getvalue()))


def _contraction(model: Any, w: Any) -> float:
    """The factor by which its predictions shrink the stored weights (how it applies --l2)."""
    j = abs(w).argmax()
    return 2.0 * abs(model.predict(f"| {j}:{0.5 / abs(w[j])}")) if w[j] else 1.0
