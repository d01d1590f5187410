"""Many problems on the same data: one-vs-all, a path of C, folds; ours on all threads, certified.

LIBLINEAR solves the same problems (hinge, no intercept), each with the loosest tolerance that comes
within 1e-3 of the optimum, which a closer fit of ours tells, in two processes side by side that
take one problem after the other, those that take longest first; the time of the one that fits
longer counts, without reading of data. Each problem is solved by the faster of the package and of
LIBLINEAR as scikit-learn builds it, whose limit of iterations can be lifted (`by_sklearn`: how
many are); who has not got there when its fits have taken 20 s in all runs as it last did. `ratio`:
whole fits, each problem with a conversion of its own, of which ours has one for all;
`ratio_converted`: the package alone, with the matrix converted beforehand, at no cost (`-`: there
is a problem that it does not get through). Of the folds of a value of C it fits the first, as often
as there are folds (all are of one size).
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.datasets import load, load_classes
from benchmarks.objective import objective
from benchmarks.rivals.entrants import ENTRANTS, pins
from benchmarks.rivals.process import FitError, Problem, Worker, store
from benchmarks.table import merged, save

PATHS = ("imdb", "rcv1")
CLASSES = ("20news", "news20", "letter", "mnist")
FOLDS = ("a9a", "imdb")
FOLD_CS = np.logspace(-2, 1, 10)
SETS = tuple(dict.fromkeys(PATHS + CLASSES + FOLDS))
N_FOLDS = 5
CS = np.logspace(-2, 1, 20)
RIVALS = ("liblinear", "sklearn")
EPS, KNOWN_TO = 1e-3, 1e-4  # of the optimum: how near all come, and how near ours, untimed, told it
PATIENCE = 20.0  # seconds to find the setting of a rival for a problem
REPEATS = 3  # on both sides: the best counts


def run(names: tuple[str, ...]) -> None:
    works = ((PATHS, _path), (CLASSES, _classes), (FOLDS, _folds))
    crews = tuple({name: Worker(name) for name in RIVALS} for _ in range(2))
    try:
        wanted = [(name, do) for sets, do in works for name in sets if name in names]
        for name, do in wanted:
            with tempfile.TemporaryDirectory() as folder:
                row = _row(name, do(name, folder), crews)
            print(row, flush=True)
            rows = merged("many", [row], ("set", "work"), order=SETS)
            head = "Many problems at once: LIBLINEAR in two processes / pegasos."
            save("many", [head], rows, rivals=pins(RIVALS))
    finally:
        for worker in (own for crew in crews for own in crew.values()):
            worker.stop()


Crew = dict[str, Worker]


class Work(NamedTuple):
    """What it is called; the problems; our certificates of them for a tolerance."""

    label: str
    problems: list[Problem]
    proofs: Callable[[float], list[Any]]


def _path(name: str, folder: str) -> Work:
    X, y = load(name)
    store(X, y, folder)

    def proofs(tol: float) -> list[Any]:
        return [found.certificate_ for found in _model(tol).path(X, y, CS)]

    return Work(f"{len(CS)} values of C", [Problem(X, y, folder, C, "hinge") for C in CS], proofs)


def _classes(name: str, folder: str) -> Work:
    X, y = load_classes(name)
    store(X, y, folder)
    problems = []
    for k, label in enumerate(np.unique(y)):
        own, signs = Path(folder, str(k)), np.where(y == label, 1.0, -1.0)
        own.mkdir()
        for file in Path(folder).glob("X.*"):
            (own / file.name).symlink_to(file)
        np.save(own / "y.npy", signs)
        problems.append(Problem(X, signs, str(own), 1.0, "hinge"))

    def proofs(tol: float) -> list[Any]:
        return list(_model(tol).fit(X, y).certificate_)

    return Work(f"{len(problems)} classes", problems, proofs)


def _folds(name: str, folder: str) -> Work:
    from sklearn.model_selection import StratifiedKFold

    X, y = load(name)
    train, _ = next(StratifiedKFold(N_FOLDS).split(X, y))
    store(X[train], y[train], folder)
    problems = [Problem(X[train], y[train], folder, C, "hinge") for C in FOLD_CS]

    def proofs(tol: float) -> list[Any]:
        """Fold by fold; the first is the one that LIBLINEAR is given."""
        found = _model(tol).cross_validate_path(X, y, FOLD_CS, cv=N_FOLDS)
        return [proof for fold in zip(*found.certificates, strict=True) for proof in fold]

    return Work(f"{N_FOLDS} folds x {len(FOLD_CS)} values of C", N_FOLDS * problems, proofs)


def _model(tol: float) -> Any:
    from pegasos import LinearSVC

    return LinearSVC(loss="hinge", intercept="none", random_state=0, tol=tol)


def _best(work):
    work()
    best = np.inf
    for _ in range(REPEATS):
        start = time.perf_counter()
        answer = work()
        best = min(best, time.perf_counter() - start)
    return best, answer


class Way(NamedTuple):
    """Who solves a problem, with which setting, how long it took, whether it reached the goal."""

    rival: str
    setting: dict
    seconds: float
    reached: bool


def _ways(crew: Crew, problem: Problem, goal: float) -> list[Way]:
    """Of each rival."""
    return [_roughest(crew[rival], problem, goal) for rival in RIVALS]


def _faster(ways: list[Way]) -> Way:
    """The faster that gets there."""
    return min(ways, key=lambda way: (not way.reached, way.seconds))


def _roughest(worker: Worker, problem: Problem, goal: float) -> Way:
    """With its roughest tolerance that gets there; else the last that ended."""
    spent, (settings, *_) = 0.0, ENTRANTS[worker.name].ways(problem.loss, EPS)
    way = Way(worker.name, settings[0], PATIENCE, False)
    for setting in settings:
        try:
            seconds, w = worker.fit(problem, setting, PATIENCE)
        except FitError:
            break
        primal = objective(problem.X, problem.y, w, problem.C, problem.loss)
        way = Way(worker.name, setting, seconds, bool(primal <= goal))
        spent += seconds
        if way.reached or spent >= PATIENCE:
            break
    return way


def _best_side_by_side(crews: tuple[Crew, ...], problems: list[Problem], ways: list[Way]) -> float:
    fits = list(zip(problems, ways, strict=True))
    return min(_side_by_side(crews, fits) for _ in range(REPEATS))


def _side_by_side(crews: tuple[Crew, ...], fits: list[tuple[Problem, Way]]) -> float:
    """Seconds until all fits are made, by crews that take the next one each."""
    waiting = iter(sorted(fits, key=lambda fit: -fit[1].seconds))

    def work(crew: Crew) -> float:
        busy = 0.0
        for problem, way in waiting:
            start = time.perf_counter()
            try:
                busy += crew[way.rival].fit(problem, way.setting, 3.0 * PATIENCE)[0]
            except FitError:
                busy += time.perf_counter() - start
        return busy

    with ThreadPoolExecutor(len(crews)) as pool:
        return max(pool.map(work, crews))


def _row(name: str, work: Work, crews: tuple[Crew, ...]) -> dict:
    seconds, proofs = _best(lambda: work.proofs(EPS))
    known: dict[tuple[str, float], list[Way]] = {}
    for problem, best in zip(work.problems, work.proofs(KNOWN_TO), strict=True):
        case, goal = (problem.folder, problem.C), best.primal / (1.0 - EPS)
        known[case] = known.get(case) or _ways(crews[0], problem, goal)
    found = [known[problem.folder, problem.C] for problem in work.problems]
    ways, own = [_faster(each) for each in found], [each[0] for each in found]
    theirs = _best_side_by_side(crews, work.problems, ways)
    converted = [way._replace(setting=way.setting | {"converted": True}) for way in own]
    alone = all(way.reached for way in own)
    once = _best_side_by_side(crews, work.problems, converted) if alone else None
    return {
        "set": name,
        "work": work.label,
        "pegasos_s": seconds,
        "worst_gap": float(max(proof.relative_gap for proof in proofs)),
        "two_processes_s": theirs,
        "reached": f"{sum(way.reached for way in ways)} of {len(ways)}",
        "by_sklearn": sum(way.rival != "liblinear" for way in ways),
        "ratio": theirs / seconds,
        "ratio_converted": once and once / seconds,
    }
