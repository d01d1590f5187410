"""Time to within 1e-3 of the optimum: LinearSVC on one thread against LIBLINEAR.

Hinge loss, no intercept. For both solvers the loosest tolerance whose objective is within 1e-3
of the optimum, or the time at the iteration limit if there is none; the whole `fit` of ours,
validation and certificate included, but the training alone of LIBLINEAR. `ratio_proven` is the
same with tol=1e-3 for ours: the answer is then proven, not only true. Ours reads the float32
data as they are, LIBLINEAR in its own float64 format. The optimum is known from our dual bound
(`bound_known_to`). Best of several repetitions, side by side in one process; compilation is done
before the clock starts and reported apart.
"""

from __future__ import annotations

import time
import warnings

import numpy as np

from benchmarks.datasets import TALL, TEXT, load
from benchmarks.rivals import Liblinear, objective
from benchmarks.table import into_page, markdown, merged, save

CS = (0.1, 1.0, 10.0, 100.0)
TOLS = (1e-2, 3e-3, 1e-3)


def run(names: tuple[str, ...] = TALL + TEXT, Cs: tuple[float, ...] = CS, repeats: int = 3) -> None:
    rows = [row for name in names for row in race(name, Cs, repeats)]
    rows = merged("speed", rows, ("set", "C"), order=TALL + TEXT)
    ratios = np.array([row["ratio"] for row in rows])
    mean = _mean(ratios)
    proven = _mean([row["ratio_proven"] for row in rows])
    text = [
        f"Time to within 1e-3 of the optimum, hinge, no intercept, one thread. "
        f"LIBLINEAR / pegasos in geometric mean over {len(rows)} cases: {mean:.2f} "
        f"({proven:.2f} with the answer proven by tol=1e-3); smallest {ratios.min():.2f}; "
        f"LIBLINEAR did not get there in "
        f"{sum(not row['reached'] for row in rows)} of them (marked *; its iteration limit counts)."
    ]
    save("speed", text, rows)
    if len(rows) == len(TALL + TEXT) * len(CS):
        into_page("README.md", "speed", [*text, markdown(_short_rows(rows))])


def _mean(ratios) -> float:
    return float(np.exp(np.log(ratios).mean()))


def _short_rows(rows: list[dict]) -> list[dict]:
    """One row per data set: the ratio LIBLINEAR / pegasos for each C."""
    short: dict[str, dict] = {}
    for row in rows:
        mark = "" if row["reached"] else "*"
        line = short.setdefault(row["set"], {"data set": row["set"]})
        line[f"C = {row['C']:g}"] = f"{row['ratio']:.1f}{mark} ({row['pegasos_ms']:.0f} ms)"
    return list(short.values())


def race(name: str, Cs: tuple[float, ...], repeats: int) -> list[dict]:
    from pegasos import LinearSVC

    X, y = load(name)
    rival = Liblinear(X, y)
    start = time.perf_counter()
    some = slice(None, None, max(1, len(y) // 2000))
    for C in (1e-3, 10.0):
        _fit(LinearSVC, X[some], y[some], C, 1e-3)
    warm = time.perf_counter() - start
    rows = []
    for C in Cs:
        best = _fit(LinearSVC, X, y, C, 1e-6)[1]
        optimum = best.certificate_.dual
        goal = optimum * (1 + 1e-3)
        answer, reached = rival.best(C, "hinge", goal, repeats)
        for tol in TOLS:
            ours = [_fit(LinearSVC, X, y, C, tol) for _ in range(repeats)]
            seconds, model = min(ours, key=lambda pair: pair[0])
            primal = max(objective(X, y, m.coef_[0], C, "hinge") for _, m in ours)
            if primal <= goal:
                break
        proven = seconds if tol == 1e-3 else _quickest(LinearSVC, X, y, C, repeats)
        rows.append(
            {
                "set": name,
                "C": C,
                "ratio": answer.seconds / seconds,
                "ratio_proven": answer.seconds / proven,
                "pegasos_ms": 1e3 * seconds,
                "liblinear_ms": 1e3 * answer.seconds,
                "reached": reached,
                "liblinear_above": answer.primal / optimum - 1,
                "pegasos_above": primal / optimum - 1,
                "tol": tol,
                "solver": model.solver_.name,
                "bound_known_to": best.certificate_.relative_gap,
                "compile_s": warm,
            }
        )
        print(" ".join(f"{k}={_short(v)}" for k, v in rows[-1].items()), flush=True)
    return rows


def _quickest(cls, X, y, C, repeats) -> float:
    return min(_fit(cls, X, y, C, 1e-3)[0] for _ in range(repeats))


def _fit(cls, X, y, C, tol):
    model = cls(
        C=C, loss="hinge", intercept="none", tol=tol, n_threads=1, max_time=60, max_iter=20000
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        model.fit(X, y)
        return time.perf_counter() - start, model


def _short(value) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
