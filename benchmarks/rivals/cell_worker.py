"""The process of one entrant on covtype: python -m benchmarks.rivals.cell_worker NAME [ROWS]

Prints a line of JSON: seconds of one fit, by the clock and of all cores, and of the prediction of
all test rows, accuracy there, peak resident memory of the process. Ours is compiled before, on a
slice of the rows.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from typing import Any

import numpy as np

from benchmarks.datasets import FOLDER

C, GAMMA = 32.0, 64.0


def covtype() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """80 % of the rows to train with and 20 % to test, features to [0, 1], class 2 or not."""
    stored = np.load(FOLDER / "covtype.npz")
    X, y = stored["X"], np.where(stored["y"] == 2, 1, -1)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = np.split(order, [int(0.8 * len(y))])
    low, high = X[train].min(axis=0), X[train].max(axis=0)
    X = (X - low) / np.where(high > low, high - low, np.float32(1))
    return X[train], y[train], X[test], y[test]


def made(name: str) -> Any:
    if name == "libsvm":
        from sklearn.svm import SVC

        return SVC(C=C, gamma=GAMMA, cache_size=2000)
    from pegasos import CellSVC

    overlap = 0.0 if name == "no overlap" else 0.25
    return CellSVC(C=C, gamma=GAMMA, overlap=overlap, random_state=0)


def main(name: str, rows: str = "") -> None:
    X, y, Z, t = covtype()
    if rows:
        X, y = X[: int(rows)], y[: int(rows)]
    if name != "libsvm":
        made(name).set_params(cell_size=2000).fit(X[:8000], y[:8000]).predict(Z[:2000])
    start, busy = time.perf_counter(), time.process_time()
    model = made(name).fit(X, y)
    fitted, busy = time.perf_counter(), time.process_time() - busy
    right = model.predict(Z) == t
    row = {
        "rows": len(y),
        "fit s": fitted - start,
        "fit core-s": busy,
        "predict s": time.perf_counter() - fitted,
        "accuracy %": 100.0 * float(right.mean()),
        "peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "support vectors": int(np.sum(model.n_support_)),
    }
    if name != "libsvm":
        gaps = [certificate.relative_gap for certificate in model.certificates_]
        row |= {"cells": len(model.cells_), "largest gap": max(gaps)}
    print(json.dumps(row))


if __name__ == "__main__":
    main(*sys.argv[1:])
