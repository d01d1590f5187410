"""Certified gaps on every tall set: losses, C, readings of the intercept, tolerances.

Claims checked for each fit: no warning, relative gap at most tol, objective not above
LIBLINEAR's by more than the gap (where LIBLINEAR solves the same problem: intercept none or
penalised), and time beside LIBLINEAR's for a comparable answer: whole fits of both, its loosest
tolerance within tol of the optimum (`reached` says whether there is one). A penalised intercept
is a column of ones to LIBLINEAR.
"""

from __future__ import annotations

import contextlib
import itertools
import tempfile
import time
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.contest import contest
from benchmarks.datasets import TALL, load
from benchmarks.rivals.entrants import pins
from benchmarks.rivals.process import Problem, Worker, store
from benchmarks.table import merged, save

RIVAL = "liblinear"


def run(
    names: tuple[str, ...] = TALL, Cs: tuple[float, ...] = (0.01, 1.0, 100.0), alone: bool = False
) -> None:
    """All claims; `alone` leaves LIBLINEAR out (it needs most of the time)."""
    rows = []
    with contextlib.ExitStack() as stack:
        workers = {} if alone else {RIVAL: Worker(RIVAL)}
        for worker in workers.values():
            stack.callback(worker.stop)
        for name in names:
            X, y = load(name)
            shared = {} if alone else _shared(stack, X, y)
            for loss, C in itertools.product(("hinge", "squared_hinge"), Cs):
                for reading in ("none", "penalised", "free"):
                    case = {"set": name, "loss": loss, "C": C, "intercept": reading}
                    problem = Problem(*shared.get(reading, (X, y, "")), C, loss)
                    rows += _check(X, problem, workers, case)
    keys = ("set", "loss", "C", "intercept", "tol")
    rows = merged("certify", rows, keys, order=TALL)
    bad = [row for row in rows if row["warnings"] or row["gap"] > row["tol"] or row["above"] > 0]
    slow = [row for row in rows if row["ratio"] < 1]
    text = [
        f"{len(rows)} fits; {len(bad)} with a warning, a gap above tol or an objective above "
        f"LIBLINEAR's by more than the gap; {len(slow)} slower than LIBLINEAR."
    ]
    save("certify", text, rows, rivals=pins((RIVAL,)))


def _shared(stack: contextlib.ExitStack, X: Any, y: np.ndarray) -> dict[str, tuple]:
    """X, y and their folder for each reading of the intercept that LIBLINEAR has."""
    ones = np.ones((len(y), 1), X.dtype)
    more = sp.hstack([X, ones], format="csr") if sp.issparse(X) else np.hstack([X, ones])
    shared = {}
    for reading, matrix in (("none", X), ("penalised", more)):
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        store(matrix, y, folder)
        shared[reading] = (matrix, y, folder)
    return shared


def _check(X: Any, problem: Problem, workers: dict[str, Worker], case: dict) -> list[dict]:
    rows = []
    compared = bool(problem.folder)
    optimum = _fit(X, problem, case, 1e-8)[1].certificate_.dual if compared else np.nan
    for tol in (1e-3, 1e-6):
        seconds, model, warned = _fit(X, problem, case, tol)
        proof = model.certificate_
        row = case | {"tol": tol, "gap": proof.relative_gap, "ms": 1e3 * seconds}
        row |= {"solver": model.solver_.name, "warnings": warned, "above": 0.0}
        row |= {"liblinear_ms": np.nan, "ratio": np.nan, "reached": False}
        if compared:
            goal = optimum * (1 + tol)
            answer = contest(workers, problem, tol, goal, repeats=2, patience=5.0)[RIVAL]
            row["above"] = max(0.0, proof.primal - answer.primal - proof.gap * (1 + 1e-9))
            row["reached"] = answer.seconds is not None
            if answer.seconds is not None:
                row |= {"liblinear_ms": 1e3 * answer.seconds, "ratio": answer.seconds / seconds}
        rows.append(row)
        print(
            " ".join(
                f"{k}={v:.3g}" if isinstance(v, float) else f"{k}={v}" for k, v in row.items()
            ),
            flush=True,
        )
    return rows


def _fit(X: Any, problem: Problem, case: dict, tol: float) -> tuple[float, Any, int]:
    from pegasos import LinearSVC

    model = LinearSVC(C=problem.C, loss=problem.loss, intercept=case["intercept"], tol=tol)
    model.set_params(n_threads=1)
    best = np.inf
    for _ in range(2):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            start = time.perf_counter()
            model.fit(X, problem.y)
            best = min(best, time.perf_counter() - start)
    return best, model, len(caught)
