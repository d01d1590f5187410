"""Many problems on the same data: one-vs-all, a path of C, folds; ours on all threads, certified.

LIBLINEAR solves the same problems one by one (hinge, no intercept), each with the loosest
tolerance that comes within 1e-3 of the optimum, or the tightest one tried; half of the sum of
its times is what two processes would take if they cost each other nothing. Of the folds of a value
of C it fits the first (all are of one size); its time counts for each.
"""

from __future__ import annotations

import tempfile
import time

import numpy as np

from benchmarks.datasets import load, load_classes
from benchmarks.objective import objective
from benchmarks.rivals.process import FitError, Problem, Worker, store
from benchmarks.table import merged, save

PATHS = ("imdb", "rcv1")
CLASSES = ("20news", "news20", "letter", "mnist")
FOLDS = ("a9a", "imdb")
FOLD_CS = np.logspace(-2, 1, 10)
SETS = tuple(dict.fromkeys(PATHS + CLASSES + FOLDS))
N_FOLDS = 5
CS = np.logspace(-2, 1, 20)
EPSILONS = (1.0, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3)
PATIENCE = 10.0  # seconds for a problem
REPEATS = 5  # of a sweep, and of each fit of LIBLINEAR that gets there: the best counts


def run(names: tuple[str, ...] = SETS) -> None:
    works = ((PATHS, _path), (CLASSES, _classes), (FOLDS, _folds))
    worker = Worker("liblinear")
    try:
        wanted = [(name, do) for sets, do in works for name in sets if name in names]
        for name, do in wanted:
            row = do(name, worker)
            print(row, flush=True)
            rows = merged("many", [row], ("set", "work"), order=SETS)
            save("many", ["Many problems at once: LIBLINEAR in two processes / pegasos."], rows)
    finally:
        worker.stop()


def _path(name: str, worker: Worker) -> dict:
    from pegasos import LinearSVC

    X, y = load(name)
    model = LinearSVC(loss="hinge", intercept="none", random_state=0)
    seconds, models = _best(lambda: model.path(X, y, CS))
    bounds = [found.certificate_ for found in models]
    with tempfile.TemporaryDirectory() as folder:
        store(X, y, folder)
        theirs = [
            _liblinear(worker, Problem(X, y, folder, C, "hinge"), b.dual)
            for C, b in zip(CS, bounds, strict=True)
        ]
    return _row(name, f"{len(CS)} values of C", seconds, bounds, theirs)


def _classes(name: str, worker: Worker) -> dict:
    from pegasos import LinearSVC

    X, y = load_classes(name)
    model = LinearSVC(loss="hinge", intercept="none", random_state=0)
    seconds, found = _best(lambda: model.fit(X, y))
    theirs = []
    for label, proof in zip(found.classes_, found.certificate_, strict=True):
        with tempfile.TemporaryDirectory() as folder:
            signs = np.where(y == label, 1.0, -1.0)
            store(X, signs, folder)
            theirs.append(_liblinear(worker, Problem(X, signs, folder, 1.0, "hinge"), proof.dual))
    return _row(name, f"{len(found.classes_)} classes", seconds, found.certificate_, theirs)


def _folds(name: str, worker: Worker) -> dict:
    from sklearn.model_selection import StratifiedKFold

    from pegasos import LinearSVC

    X, y = load(name)
    model = LinearSVC(loss="hinge", intercept="none", random_state=0)
    seconds, found = _best(lambda: model.cross_validate_path(X, y, FOLD_CS, cv=N_FOLDS))
    train, _ = next(StratifiedKFold(N_FOLDS).split(X, y))
    theirs = []
    with tempfile.TemporaryDirectory() as folder:
        store(X[train], y[train], folder)
        for C, proofs in zip(FOLD_CS, found.certificates, strict=True):
            problem = Problem(X[train], y[train], folder, C, "hinge")
            theirs += N_FOLDS * [_liblinear(worker, problem, proofs[0].dual)]
    proofs = [proof for of_C in found.certificates for proof in of_C]
    return _row(name, f"{N_FOLDS} folds x {len(FOLD_CS)} values of C", seconds, proofs, theirs)


def _best(work):
    work()
    best = np.inf
    for _ in range(REPEATS):
        start = time.perf_counter()
        answer = work()
        best = min(best, time.perf_counter() - start)
    return best, answer


def _liblinear(worker: Worker, problem: Problem, bound: float) -> tuple[float, bool]:
    """Seconds, and whether it came within 1e-3."""
    seconds = PATIENCE
    for e in EPSILONS:
        try:
            seconds, w = worker.fit(problem, {"s": 3, "e": e}, PATIENCE)
        except FitError:
            return PATIENCE, False
        if bound >= (1.0 - 1e-3) * objective(problem.X, problem.y, w, problem.C, problem.loss):
            again = [worker.fit(problem, {"s": 3, "e": e}, PATIENCE)[0] for _ in range(REPEATS - 1)]
            return min(seconds, *again), True
    return seconds, False


def _row(name: str, work: str, seconds: float, proofs, theirs) -> dict:
    half = 0.5 * sum(time for time, _ in theirs)
    return {
        "set": name,
        "work": work,
        "pegasos_s": seconds,
        "worst_gap": float(max(proof.relative_gap for proof in proofs)),
        "liblinear_two_processes_s": half,
        "reached": f"{sum(ok for _, ok in theirs)} of {len(theirs)}",
        "ratio": half / seconds,
    }
