"""The process of one kernel machine: a request and a reply are lines of JSON.

A request names a folder with a data set, C, gamma, how often to fit and where to put the answer:
beta, b and decision values of the test rows. The reply has the seconds of the first fit in this
process and of the fastest after it, and of prediction. Packages are imported, and ours compiled,
before, on a slice of the rows.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

CACHE = 2000  # megabytes, for everybody
LIMIT = 2000  # rows of the warm-up


def made(name: str, C: float, gamma: float) -> Any:
    """The estimator, with KKT tolerance 1e-3."""
    if name == "intelex":
        from sklearnex.svm import SVC
    elif name == "libsvm":
        from sklearn.svm import SVC
    else:
        from pegasos import SVC

        goal = {"tol": 1e-3} if name == "pegasos-gap" else {"kkt_tol": 1e-3}
        threads = 1 if name == "pegasos-1" else 2
        return SVC(C=C, gamma=gamma, cache_size=CACHE, random_state=0, n_threads=threads, **goal)
    return SVC(C=C, gamma=gamma, cache_size=CACHE, tol=1e-3)


def main() -> None:
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a package prints is not a reply
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        print(json.dumps(_answer(**json.loads(line))), file=replies, flush=True)


def _answer(name, folder, C, gamma, repeats, out) -> dict[str, Any]:
    X, y = _read(folder, "X"), np.load(Path(folder, "y.npy"))
    Z = _read(folder, "Z")
    step = max(1, len(y) // LIMIT)
    made(name, C, gamma).fit(X[::step], y[::step]).decision_function(Z[:100])
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        model = made(name, C, gamma).fit(X, y)
        seconds.append(time.perf_counter() - start)
    predicting = []
    for _ in range(repeats):
        start = time.perf_counter()
        values = model.decision_function(Z)
        predicting.append(time.perf_counter() - start)
    coef = model.dual_coef_.toarray() if hasattr(model.dual_coef_, "toarray") else model.dual_coef_
    beta = np.zeros(len(y))
    beta[model.support_] = np.asarray(coef)[0]
    b = float(np.ravel(model.intercept_)[0])
    np.savez(out, beta=beta, b=b, values=np.ravel(values))
    warm = min(seconds[1:]) if repeats > 1 else None
    return {"cold": seconds[0], "warm": warm, "predict": min(predicting)}


def _read(folder: str, name: str) -> Any:
    from scipy.sparse import load_npz

    sparse = Path(folder, f"{name}.npz")
    return load_npz(sparse) if sparse.exists() else np.load(Path(folder, f"{name}.npy"))


if __name__ == "__main__":
    main()
