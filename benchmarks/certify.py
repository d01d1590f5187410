"""Certified gaps on every tall set: losses, C, readings of the intercept, tolerances.

Claims checked for each fit: no warning, relative gap at most tol, objective not above
LIBLINEAR's by more than the gap (where LIBLINEAR solves the same problem: intercept none or
penalised), and time beside LIBLINEAR's for a comparable answer (its fastest tolerance within tol
of the optimum, or its iteration limit).
"""

from __future__ import annotations

import itertools
import time
import warnings

import numpy as np

from benchmarks.datasets import TALL, load
from benchmarks.rivals import Liblinear
from benchmarks.table import merged, save

BIAS = {"none": -1.0, "penalised": 1.0}


def run(
    names: tuple[str, ...] = TALL, Cs: tuple[float, ...] = (0.01, 1.0, 100.0), alone: bool = False
) -> None:
    """All claims; `alone` leaves LIBLINEAR out (it needs most of the time)."""
    rows = []
    for name in names:
        X, y = load(name)
        rivals = {} if alone else {r: Liblinear(X, y, bias) for r, bias in BIAS.items()}
        for loss, C in itertools.product(("hinge", "squared_hinge"), Cs):
            for reading in ("none", "penalised", "free"):
                rows += _check(X, y, rivals.get(reading), name, loss, C, reading)
    keys = ("set", "loss", "C", "intercept", "tol")
    rows = merged("certify", rows, keys, order=TALL)
    bad = [row for row in rows if row["warnings"] or row["gap"] > row["tol"] or row["above"] > 0]
    slow = [row for row in rows if row["ratio"] < 1]
    text = [
        f"{len(rows)} fits; {len(bad)} with a warning, a gap above tol or an objective above "
        f"LIBLINEAR's by more than the gap; {len(slow)} slower than LIBLINEAR."
    ]
    save("certify", text, rows)


def _check(X, y, rival, name, loss, C, reading) -> list[dict]:
    rows = []
    optimum = _fit(X, y, loss, C, reading, 1e-8)[1].certificate_.dual if rival else np.nan
    for tol in (1e-3, 1e-6):
        seconds, model, warned = _fit(X, y, loss, C, reading, tol)
        proof = model.certificate_
        row = {"set": name, "loss": loss, "C": C, "intercept": reading, "tol": tol}
        row |= {"gap": proof.relative_gap, "ms": 1e3 * seconds, "solver": model.solver_.name}
        row |= {
            "warnings": warned,
            "above": 0.0,
            "liblinear_ms": np.nan,
            "ratio": np.nan,
            "reached": False,
        }
        if rival is not None:
            answer, reached = rival.best(C, loss, optimum * (1 + tol), repeats=2, patience=5.0)
            above = max(0.0, proof.primal - answer.primal - proof.gap * (1 + 1e-9))
            row |= {"above": above, "liblinear_ms": 1e3 * answer.seconds}
            row |= {"ratio": answer.seconds / seconds, "reached": reached}
        rows.append(row)
        print(
            " ".join(
                f"{k}={v:.3g}" if isinstance(v, float) else f"{k}={v}" for k, v in row.items()
            ),
            flush=True,
        )
    return rows


def _fit(X, y, loss, C, reading, tol):
    from pegasos import LinearSVC

    model = LinearSVC(C=C, loss=loss, intercept=reading, tol=tol, n_threads=1)
    best = np.inf
    for _ in range(2):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            start = time.perf_counter()
            model.fit(X, y)
            best = min(best, time.perf_counter() - start)
    return best, model, len(caught)
