"""Many problems on the same data: one-vs-all, a path of C, folds; ours on all threads, certified.

LIBLINEAR solves the same problems (hinge, no intercept), each with the loosest tolerance that comes
within 1e-3 of the optimum, or the tightest one tried, in two processes side by side that take one
problem after the other; the time of the one that fits longer counts, without reading of data. Of
the folds of a value of C it fits the first, as often as there are folds (all are of one size).
"""

from __future__ import annotations

import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

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
REPEATS = 5  # on both sides: the best counts


def run(names: tuple[str, ...]) -> None:
    works = ((PATHS, _path), (CLASSES, _classes), (FOLDS, _folds))
    workers = (Worker("liblinear"), Worker("liblinear"))
    try:
        wanted = [(name, do) for sets, do in works for name in sets if name in names]
        for name, do in wanted:
            with tempfile.TemporaryDirectory() as folder:
                row = _row(name, *do(name, folder), workers)
            print(row, flush=True)
            rows = merged("many", [row], ("set", "work"), order=SETS)
            save("many", ["Many problems at once: LIBLINEAR in two processes / pegasos."], rows)
    finally:
        for worker in workers:
            worker.stop()


Tasks = list[tuple[Problem, Any]]  # problems, and our proofs


def _path(name: str, folder: str) -> tuple[str, float, Tasks]:
    from pegasos import LinearSVC

    X, y = load(name)
    model = LinearSVC(loss="hinge", intercept="none", random_state=0)
    seconds, models = _best(lambda: model.path(X, y, CS))
    store(X, y, folder)
    problems = [Problem(X, y, folder, C, "hinge") for C in CS]
    proofs = [found.certificate_ for found in models]
    return f"{len(CS)} values of C", seconds, list(zip(problems, proofs, strict=True))


def _classes(name: str, folder: str) -> tuple[str, float, Tasks]:
    from pegasos import LinearSVC

    X, y = load_classes(name)
    model = LinearSVC(loss="hinge", intercept="none", random_state=0)
    seconds, found = _best(lambda: model.fit(X, y))
    store(X, y, folder)
    tasks = []
    for k, (label, proof) in enumerate(zip(found.classes_, found.certificate_, strict=True)):
        own, signs = Path(folder, str(k)), np.where(y == label, 1.0, -1.0)
        own.mkdir()
        for file in Path(folder).glob("X.*"):
            (own / file.name).symlink_to(file)
        np.save(own / "y.npy", signs)
        tasks.append((Problem(X, signs, str(own), 1.0, "hinge"), proof))
    return f"{len(found.classes_)} classes", seconds, tasks


def _folds(name: str, folder: str) -> tuple[str, float, Tasks]:
    from sklearn.model_selection import StratifiedKFold

    from pegasos import LinearSVC

    X, y = load(name)
    model = LinearSVC(loss="hinge", intercept="none", random_state=0)
    seconds, found = _best(lambda: model.cross_validate_path(X, y, FOLD_CS, cv=N_FOLDS))
    train, _ = next(StratifiedKFold(N_FOLDS).split(X, y))
    store(X[train], y[train], folder)
    problems = [Problem(X[train], y[train], folder, C, "hinge") for C in FOLD_CS]
    folds = zip(*found.certificates, strict=True)  # the first is the one that LIBLINEAR is given
    tasks = [task for proofs in folds for task in zip(problems, proofs, strict=True)]
    return f"{N_FOLDS} folds x {len(FOLD_CS)} values of C", seconds, tasks


def _best(work):
    work()
    best = np.inf
    for _ in range(REPEATS):
        start = time.perf_counter()
        answer = work()
        best = min(best, time.perf_counter() - start)
    return best, answer


def _setting(worker: Worker, problem: Problem, bound: float) -> tuple[float, bool]:
    """The roughest tolerance within 1e-3 of the optimum, or the last one; whether it gets there."""
    for e in EPSILONS:
        try:
            w = worker.fit(problem, {"s": 3, "e": e}, PATIENCE)[1]
        except FitError:
            return e, False
        if bound >= (1.0 - 1e-3) * objective(problem.X, problem.y, w, problem.C, problem.loss):
            return e, True
    return e, False


def _side_by_side(workers: tuple[Worker, ...], fits: list[tuple[Problem, float]]) -> float:
    """Seconds until all fits are made, by workers that take the next one each."""
    waiting = iter(fits)

    def work(worker: Worker) -> float:
        busy = 0.0
        for problem, e in waiting:
            try:
                busy += worker.fit(problem, {"s": 3, "e": e}, PATIENCE)[0]
            except FitError:
                busy += PATIENCE
        return busy

    with ThreadPoolExecutor(len(workers)) as pool:
        return max(pool.map(work, workers))


def _row(name: str, work: str, seconds: float, tasks: Tasks, workers: tuple[Worker, ...]) -> dict:
    known: dict[tuple[str, float], tuple[float, bool]] = {}
    for problem, proof in tasks:
        case = problem.folder, problem.C
        known[case] = known.get(case) or _setting(workers[0], problem, proof.dual)
    found = [known[problem.folder, problem.C] for problem, _ in tasks]
    fits = [(problem, e) for (problem, _), (e, _) in zip(tasks, found, strict=True)]
    theirs = min(_side_by_side(workers, fits) for _ in range(REPEATS))
    return {
        "set": name,
        "work": work,
        "pegasos_s": seconds,
        "worst_gap": float(max(proof.relative_gap for _, proof in tasks)),
        "liblinear_two_processes_s": theirs,
        "reached": f"{sum(ok for _, ok in found)} of {len(found)}",
        "ratio": theirs / seconds,
    }
