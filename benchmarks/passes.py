"""One epoch of descent and one prediction, in units of SciPy's X @ w on the same float32 matrix.

An epoch visits every row (no shrinking, one thread, hinge, C = 1, best of epochs 2 to 5); a
prediction is the whole call of `decision_function` with its checks, on one thread and on all.
The three are measured in turns.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.datasets import load
from benchmarks.growth import synthetic_text
from benchmarks.table import save

SETS = ("imdb", "rcv1", "20news", "synthetic")


def run(repeats: int = 15) -> None:
    rows = []
    for name in SETS:
        X, y = synthetic_text(1_000_000) if name == "synthetic" else load(name)
        rows.append({"set": name, "entries": X.nnz} | _measure(X, np.asarray(y, float), repeats))
        print(rows[-1], flush=True)
        save("passes", ["One epoch, one prediction: times of X @ w."], rows)


def _measure(X, y, repeats: int) -> dict:
    from pegasos import LinearSVC

    w = np.random.default_rng(0).standard_normal(X.shape[1]).astype(np.float32)
    models = [LinearSVC(n_threads=k, intercept="none", max_iter=1) for k in (1, None)]
    for model in models:
        model.fit(X[::23], y[::23])
    works = [lambda: X @ w, *(lambda m=m: m.decision_function(X) for m in models)]
    best = [np.inf] * 4
    for _ in range(repeats):
        for k, work in enumerate(works):
            best[k] = min(best[k], _seconds(work))
        best[3] = min(best[3], _epoch(X, y))
    product, one, all_, epoch = best
    return {
        "product_ms": 1e3 * product,
        "epoch": epoch / product,
        "predict_1": one / product,
        "predict_all": all_ / product,
    }


def _epoch(X, y) -> float:
    from pegasos.data.check import as_rows
    from pegasos.objective.losses import Pinball
    from pegasos.objective.problem import make_problem
    from pegasos.solvers.dual import Dual

    problem = make_problem(as_rows(X, 0.0), y, np.ones(len(y)), Pinball(0.0))
    solver = Dual(shrinking=False)
    state, best = solver.init(problem, 0), np.inf
    for epoch in range(5):
        start = time.perf_counter()
        while state.epoch == epoch:
            state = solver.step(problem, state)
        best = min(best, time.perf_counter() - start) if epoch else best
    return best


def _seconds(work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
