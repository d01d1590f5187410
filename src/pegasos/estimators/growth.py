"""m="auto": more prototypes while they help, and while there is time."""

from __future__ import annotations

import time
import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from pegasos.estimators.classifier import Data

FIRST, MOST = 64, 8192
ASIDE = 0.2  # of the rows, to judge by
ENOUGH = 0.5  # standard errors of the score that a doubling must gain
DEARER = 4.0  # a doubling of m, in time


class Tried(NamedTuple):
    """A number of prototypes, the share of rows kept aside that it got right, and its time."""

    m: int
    score: float
    seconds: float


def grown(estimator: Any, data: Data, kernel: Any, most: int) -> list[Tried]:
    """Trials with twice as many prototypes each, up to `most`, until that does not help.

    A trial may take as long as the fit of all rows after it. There is none if there are too few
    rows to keep some aside.
    """
    train, test = _split(data.label)
    end = time.perf_counter() + (estimator.max_time or np.inf)
    tried, most = list[Tried](), min(most, MOST, len(train))
    m = min(FIRST, most)
    while test.size:
        start = time.perf_counter()
        share = (end - start) / (1.0 + 1.0 / (1.0 - ASIDE))
        score = _score(_trial(estimator, kernel, m, share), data, train, test)
        now = time.perf_counter()
        tried.append(Tried(m, score, now - start))
        m *= 2
        ahead = DEARER * tried[-1].seconds * (1.0 + 1.0 / (1.0 - ASIDE))  # and the fit of all rows
        if m > most or not _goes_on(tried, len(test)) or ahead > end - now:
            break
    return tried


def _split(label: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows to learn from, of each class at least one, and rows to judge by, in proportion."""
    order = np.random.default_rng(0).permutation(len(label))
    order = order[np.argsort(label[order], kind="stable")]
    others = np.delete(order, np.unique(label[order], return_index=True)[1])
    every = round(1.0 / ASIDE)
    test = np.sort(others[every - 1 :: every])
    return np.setdiff1d(np.arange(len(label)), test), test


def _goes_on(tried: list[Tried], n: int) -> bool:
    """Whether the last doubling gained more than chance would give."""
    if len(tried) < 2:
        return True
    before, score = max(t.score for t in tried[:-1]), tried[-1].score
    return score - before > ENOUGH * np.sqrt(max(score * (1.0 - score), 1.0 / n) / n)


def _trial(estimator: Any, kernel: Any, m: int, seconds: float) -> Any:
    settings = {"m": m, "kernel": kernel, "C": 1.0, "lam": None, "class_weight": None}
    settings["probability"] = False
    limit = max(seconds, 1e-9) if np.isfinite(seconds) else None
    return clone(estimator).set_params(**settings, stop=None, max_time=limit)


def _score(model: Any, data: Data, train: np.ndarray, test: np.ndarray) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is short of tol is judged as well
        model.fit(data.X[train], data.label[train], sample_weight=data.c[train])
    return float(np.mean(model.predict(data.X[test]) == data.label[test]))
