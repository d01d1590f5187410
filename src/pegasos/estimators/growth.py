"""m="auto": more prototypes while they help, and while there is time."""

from __future__ import annotations

import time
import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import train_test_split

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


def grown(estimator: Any, data: Data, kernel: Any) -> list[Tried]:
    """Trials with twice as many prototypes each, until that does not help."""
    rows = np.arange(len(data.label))
    try:
        train, test = train_test_split(rows, test_size=ASIDE, stratify=data.label, random_state=0)
    except ValueError:  # a class of one row
        train, test = train_test_split(rows, test_size=ASIDE, random_state=0)
    began, tried, m = time.perf_counter(), list[Tried](), FIRST
    while True:
        start = time.perf_counter()
        score = _score(estimator, data, kernel, m, train, test)
        tried.append(Tried(m, score, time.perf_counter() - start))
        m *= 2
        if m > min(MOST, len(train)) or not _goes_on(tried, len(test)):
            return tried
        ahead = DEARER * tried[-1].seconds / (1.0 - ASIDE)  # the last one, on all rows
        left = (estimator.max_time or np.inf) - (time.perf_counter() - began)
        if DEARER * tried[-1].seconds + ahead > left:
            return tried


def _goes_on(tried: list[Tried], n: int) -> bool:
    """Whether the last doubling gained more than chance would give."""
    if len(tried) < 2:
        return True
    before, score = max(t.score for t in tried[:-1]), tried[-1].score
    return score - before > ENOUGH * np.sqrt(max(score * (1.0 - score), 1.0 / n) / n)


def _score(estimator: Any, data: Data, kernel: Any, m: int, train, test) -> float:
    settings = {"m": m, "kernel": kernel, "C": 1.0, "lam": None, "class_weight": None}
    model = clone(estimator).set_params(**settings, stop=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is short of tol is judged as well
        model.fit(data.X[train], data.label[train], sample_weight=data.c[train])
    return float(np.mean(model.predict(data.X[test]) == data.label[test]))
