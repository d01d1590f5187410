"""PegasosClassifier against SGDClassifier: an epoch, and the time to come within 1e-2.

An epoch is the difference of fits of 25 and of 5 epochs over 20, with averaging in both, hinge
loss, lam = 1/n, single examples. For the time to come within 1e-2 of the optimum (whole fits, the
best intercept for the weights counted for both), PegasosClassifier has its defaults, and
SGDClassifier the best of its learning rates.
"""

from __future__ import annotations

import time
import warnings

import numpy as np

from benchmarks.datasets import load
from benchmarks.table import save

EPOCHS = (1, 2, 3, 5, 7, 10, 14, 20, 28, 40, 56, 80)
RATES = [{"learning_rate": "optimal"}] + [
    {"learning_rate": kind, "eta0": eta0}
    for kind in ("constant", "invscaling", "adaptive")
    for eta0 in (0.01, 0.1, 1.0, 10.0)
]


def run(names: tuple[str, ...] = ("imdb", "20news"), repeats: int = 5) -> None:
    rows = [_race(name, repeats) for name in names]
    text = [
        "PegasosClassifier and SGDClassifier, one thread, milliseconds; ratios below 1: faster."
    ]
    save("stochastic", text, rows)


def _race(name: str, repeats: int) -> dict:
    X, y = load(name)
    row = {"set": name, **_epoch(X, y, repeats)}
    best = _optimum(X, y)
    ours = _first(X, y, best, lambda epochs: _pegasos(X, epochs), repeats)
    theirs = [
        (_first(X, y, best, lambda e, r=rate: _sgd(X, e, r), repeats), rate) for rate in RATES
    ]
    reached = [(ms, rate) for ms, rate in theirs if ms is not None]
    fastest, rate = min(reached, key=lambda pair: pair[0]) if reached else (None, {})
    row |= {"pegasos_to_1e-2": ours, "sgd_to_1e-2": fastest, "sgd_rate": str(rate or "none")}
    row["ratio_to_1e-2"] = ours / fastest if ours and fastest else None
    print(row, flush=True)
    return row


def _pegasos(X, epochs: int):
    from pegasos import PegasosClassifier

    return PegasosClassifier(
        lam=1.0 / X.shape[0], tol=0.0, max_iter=epochs, random_state=0, n_threads=1
    )


def _sgd(X, epochs: int, rate: dict):
    from sklearn.linear_model import SGDClassifier

    return SGDClassifier(
        alpha=1.0 / X.shape[0], average=True, max_iter=epochs, tol=None, random_state=0, **rate
    )


def _seconds(model, X, y) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        model.fit(X, y)
        return time.perf_counter() - start


def _epoch(X, y, repeats: int) -> dict:
    makers = {"pegasos": lambda e: _pegasos(X, e), "sgd": lambda e: _sgd(X, e, RATES[0])}
    times = {(name, e): np.inf for name in makers for e in (5, 25)}
    for _ in range(2 * repeats):
        for name, e in times:
            times[name, e] = min(times[name, e], _seconds(makers[name](e), X, y))
    ms = {name: 50.0 * (times[name, 25] - times[name, 5]) for name in makers}
    ratio = ms["pegasos"] / ms["sgd"]
    return {"pegasos_epoch": ms["pegasos"], "sgd_epoch": ms["sgd"], "ratio_epoch": ratio}


def _problem(X, y):
    from pegasos.data.check import as_rows
    from pegasos.losses import Hinge
    from pegasos.objective.problem import make_problem

    return make_problem(as_rows(X, 1.0), y, np.ones(len(y)), Hinge(), None, True)


def _optimum(X, y) -> float:
    from pegasos import LinearSVC

    return LinearSVC(C=1.0, loss="hinge", tol=1e-5).fit(X, y).certificate_.dual


def _first(X, y, best: float, make, repeats: int) -> float | None:
    """Milliseconds of the shortest fit that comes within 1e-2, None if there is none."""
    from pegasos.objective.certificate import evaluate

    problem = _problem(X, y)
    for epochs in EPOCHS:
        model = make(epochs)
        _seconds(model, X, y)
        w = np.append(model.coef_[0], model.intercept_[0]).astype(np.float64)
        if not np.isfinite(w).all():
            return None
        seen = evaluate(problem, np.zeros(len(y)), w)
        if seen.certificate.primal <= 1.01 * best:
            return 1e3 * min(_seconds(make(epochs), X, y) for _ in range(repeats))
    return None
