"""Cross-validation of a path of C: every fold and value a problem of one sweep, each certified."""

from __future__ import annotations

import time
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import get_scorer
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, column_or_1d, indexable
from sklearn.utils.validation import _check_sample_weight, validate_data

from pegasos.core.logs import on_behalf
from pegasos.data.check import small_dtype
from pegasos.estimators import parameters as par
from pegasos.estimators.base import Data, LinearClassifier
from pegasos.estimators.calibration import leaving_out
from pegasos.estimators.one_vs_all import Task, solve_all
from pegasos.estimators.path import copy_with
from pegasos.estimators.sweeps import LEAST_TOL, Answers, goal_of, sweep
from pegasos.model.decision import chosen
from pegasos.model.linear import scores_of
from pegasos.model.pairs import class_scores
from pegasos.solvers.auto import descent_budget
from pegasos.solvers.lanes import Lane, Many


class PathScores(NamedTuple):
    """The scores of a cross-validated path.

    Attributes
    ----------
    Cs : array of shape (n_Cs,)
    test_score : array of shape (n_Cs, n_splits)
    certificates : list over Cs of lists over splits
        A Certificate each, or a list of them for more than two classes.
    """

    Cs: np.ndarray
    test_score: np.ndarray
    certificates: list[list[Any]]

    @property
    def mean_test_score(self) -> np.ndarray:
        """Mean over the splits, for each value of C."""
        return self.test_score.mean(axis=1)

    @property
    def best_index(self) -> int:
        """Of the best mean score; of equal ones that of the smallest C."""
        mean = self.mean_test_score
        return int(min(np.flatnonzero(mean == mean.max()), key=lambda j: self.Cs[j]))

    @property
    def best_C(self) -> float:  # noqa: N802
        return float(self.Cs[self.best_index])


class Fold(NamedTuple):
    """Rows to learn from (of the kept ones) with their c_i for C = 1, and rows of X to test; `name`
    is for messages."""

    name: str
    rows: np.ndarray
    c: np.ndarray
    test: np.ndarray


def cross_validate_path(
    estimator: LinearClassifier, X, y, Cs, cv=5, scoring=None, sample_weight=None
) -> PathScores:
    """See `ExactClassifier.cross_validate_path`."""
    Cs = par.values_of_C(Cs)
    if scoring is not None and getattr(estimator, "probability", False):
        raise ValueError(
            "cross_validate_path makes no probabilities: use probability=False, or cross_validate "
            "of scikit-learn for scores of probabilities"
        )
    unit = copy_with(estimator, 1.0)
    loss, stop = unit._loss(), unit._stop()
    deadline = time.perf_counter() + stop.max_seconds
    with unit._at_work():
        data = unit._read(X, y, sample_weight)
        X, y = indexable(X, column_or_1d(y))
        folds = _folds(unit, data, X, y, cv, sample_weight)
        task = unit._task(data, loss, stop)
        weights, certificates = _solved(unit, task, data, folds, Cs, deadline)
        score = _accuracy if scoring is None else _scored(get_scorer(scoring))
        test_score = score(unit, task, (X, y), folds, Cs, weights)
    return PathScores(np.array(Cs), test_score, certificates)


def _folds(unit: LinearClassifier, data: Data, X, y, cv, sample_weight) -> list[Fold]:
    """A row that a splitter gives k times counts k times."""
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
    folds = []
    for number, (train, test) in enumerate(check_cv(cv, y, classifier=True).split(X, y)):
        if np.asarray(train).dtype == bool:
            train, test = np.flatnonzero(train), np.flatnonzero(test)
        times = np.bincount(train, minlength=len(y))[data.kept]
        rows = np.flatnonzero(times)
        kept, label = data.kept[rows], data.label[rows]
        missing = np.setdiff1d(np.arange(len(unit.classes_)), label)
        if missing.size:
            raise ValueError(
                f"class {unit.classes_[missing[0]]} has no training row in split {number}: "
                "use fewer splits, or a stratified splitter"
            )
        c = unit._row_costs(rows, y[kept], label, weight[kept] * times[rows])
        folds.append(Fold(f"split {number}", rows, c, np.asarray(test)))
    return folds


def left_out_scores(unit, task: Task, data: Data, folds: np.ndarray, deadline: float) -> np.ndarray:
    """Scores of each row by weights that were found without its fold; 0 of rows in none."""
    parts, n_folds = [], int(folds.max()) + 1
    for f in range(n_folds):
        rows, test = np.flatnonzero(folds != f), np.flatnonzero(folds == f)
        parts.append(Fold(leaving_out(f, n_folds), rows, data.c[rows], test))
    (weights,), _ = _solved(unit, task, data, parts, [1.0], deadline)
    model, scores = copy(unit), []
    model.__dict__.pop("feature_names_in_", None)  # which the rows here have not
    for found, part in zip(weights, parts, strict=True):
        model.__dict__.update(unit._weights(found, task))
        scores.append(model._decided(data.X[part.test])[0])
    out = np.zeros((len(folds), scores[0].shape[1]))
    out[np.concatenate([part.test for part in parts])] = np.concatenate(scores)
    return out


def _solved(unit, task: Task, data: Data, folds: list[Fold], Cs: list[float], deadline: float):
    """Weights of shape (Cs, folds, problems, columns + 1), and the certificates."""
    answers, interrupted = _sweep_folds(task, folds, Cs, deadline)
    fits = []
    for f, fold in enumerate(folds):
        left = [j for j in range(len(Cs)) if not _answered(answers, task, j * len(folds) + f)]
        part = None
        if left:
            part = task._replace(rows=unit._to_train(data.X[fold.rows], task.rows.bias))
            part = part._replace(label=task.label[fold.rows])
        fits.append([part and part._replace(c=C * fold.c) for C in Cs])
    tasks = [fits[f][j] or task for j in range(len(Cs)) for f in range(len(folds))]
    starts = {}
    for (place, k), found in answers.items():
        if found.best.alpha.size:
            alpha = found.best.alpha[folds[place % len(folds)].rows]
            found = found._replace(best=found.best._replace(alpha=alpha))
        starts[place, k] = found
    if not interrupted:
        n = len(folds)
        paths = [[(j * n + f, C) for j, C in enumerate(Cs)] for f in range(n)]
        runs, interrupted = solve_all(tasks, deadline, starts, paths=paths)
    if interrupted:
        raise KeyboardInterrupt
    for j, C in enumerate(Cs):
        model = copy_with(unit, C)
        for f, fold in enumerate(folds):
            with on_behalf(fold.name):
                model._warn_unless_converged(runs[j * len(folds) + f])
    weights = np.array([task.vectors([run.best.w for run in fit]) for fit in runs])
    proofs: list[Any] = [[run.certificate for run in fit] for fit in runs]
    proofs = [proof[0] if len(proof) == 1 else proof for proof in proofs]
    by_C = [proofs[j * len(folds) : (j + 1) * len(folds)] for j in range(len(Cs))]
    return weights.reshape(len(Cs), len(folds), *weights.shape[1:]), by_C


def _answered(answers: Answers, task: Task, place: int) -> bool:
    """Whether all problems of a fit came to their end in the sweep."""
    found = [answers.get((place, k)) for k in range(len(task.targets))]
    return all(answer and answer.best.certificate.relative_gap <= task.stop.tol for answer in found)


def _sweep_folds(task: Task, folds: list[Fold], Cs: list[float], deadline: float):
    """Answers for (value * folds + fold, problem); whether Ctrl-C came."""
    shared = task.shared()
    if shared is None:
        return {}, False
    lanes, places, most = [], [], 0.0
    for f, fold in enumerate(folds):
        c = np.zeros(len(task.label))
        c[fold.rows] = fold.c
        budgets = [descent_budget(shared._replace(c=C * c), task.stop.tol) for C in Cs]
        most = max(most, *budgets)
        largest = max((C for C, budget in zip(Cs, budgets, strict=True) if budget), default=0.0)
        followed = largest < max(Cs)  # by another method, which begins with alpha
        for j in np.flatnonzero(budgets):
            light = task.stop.tol >= LEAST_TOL and not (followed and Cs[j] == largest)
            for k, target in enumerate(task.targets):
                lanes.append(Lane(target, Cs[j], task.centers[k], c, light))
                places.append((int(j) * len(folds) + f, k))
    many = Many(shared, task.label, lanes)
    return sweep(many, places, goal_of(task, deadline, most), task.seed)


def _accuracy(unit, task: Task, data, folds: list[Fold], Cs: list[float], weights) -> np.ndarray:
    """Of all values of C at once: each row is read once."""
    X, y = data
    X = validate_data(unit, X, reset=False, accept_sparse="csr", dtype=small_dtype(X))
    out = np.empty((len(Cs), len(folds)))
    for f, fold in enumerate(folds):
        each = weights[:, f].reshape(-1, weights.shape[-1])
        scores = scores_of(each, unit._rows(X[fold.test], task.rows.bias))
        scores = scores.reshape(len(fold.test), len(Cs), -1)
        for j in range(len(Cs)):
            numbers = chosen(class_scores(scores[:, j], len(unit.classes_), task.pairs))
            out[j, f] = np.mean(unit.classes_[numbers] == y[fold.test])
    return out


def _scored(scorer):
    """The same by a scorer, which asks a fitted model."""

    def score(unit, task: Task, data, folds: list[Fold], Cs: list[float], weights) -> np.ndarray:
        X, y = data
        out = np.empty((len(Cs), len(folds)))
        for j, C in enumerate(Cs):
            model = copy_with(unit, C)
            for name in unit._of_reading:
                if hasattr(unit, name):
                    setattr(model, name, getattr(unit, name))
            for f, fold in enumerate(folds):
                model.__dict__.update(unit._weights(weights[j, f], task))
                out[j, f] = scorer(model, _safe_indexing(X, fold.test), y[fold.test])
        return out

    return score
