"""Two threads against one: whole certified fits of text sets above a million entries, in turns.

Each set as it is: imdb, rcv1 and the synthetic million rows have two classes, 20 newsgroups and
news20 twenty, one against the rest; beside them the largest class of these two against all others,
the problem of the race. Hinge, no intercept, relative gap 1e-3; C goes from 0.1 to 10. The best of
several fits counts on both sides.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.datasets import load, load_classes
from benchmarks.growth import synthetic_text
from benchmarks.table import save

SETS = ("imdb", "rcv1", "20news", "news20", "synthetic")
SEVERAL = ("20news", "news20")
CS = (0.1, 1.0, 10.0)
REPEATS, LONG = 9, 6  # fits of each, and those of the synthetic set


def run() -> None:
    rows: list[dict] = []
    for name in SETS:
        for label, X, y in _works(name):
            for C in CS:
                repeats = LONG if name == "synthetic" else REPEATS
                rows.append({"set": name, "work": label, "C": C} | _measure(X, y, C, repeats))
                print(rows[-1], flush=True)
                save("threads", [_summary(rows)], rows)


def _works(name: str) -> list[tuple[str, Any, np.ndarray]]:
    if name == "synthetic":
        return [("two classes", *synthetic_text(1_000_000))]
    several = [("all classes", *load_classes(name))] if name in SEVERAL else []
    return [*several, ("one class" if several else "two classes", *load(name))]


def _measure(X: Any, y: np.ndarray, C: float, repeats: int) -> dict:
    from pegasos import LinearSVC

    models = [LinearSVC(loss="hinge", intercept="none", C=C, random_state=0) for _ in range(2)]
    best = [np.inf, np.inf]
    for k, model in enumerate(models):
        model.set_params(n_threads=k + 1).fit(X, y)  # compiles, loops of threads included
    for turn in range(repeats):
        for k in (turn % 2, 1 - turn % 2):
            start = time.perf_counter()
            models[k].fit(X, y)
            best[k] = min(best[k], time.perf_counter() - start)
    found = {"one_thread_s": best[0], "two_threads_s": best[1], "ratio": best[0] / best[1]}
    return found | {"worst_gap": max(_gap(model.certificate_) for model in models)}


def _gap(proof: Any) -> float:
    """The relative gap, or the worst of several classes."""
    proofs = proof if isinstance(proof, list) else [proof]
    return float(max(each.relative_gap for each in proofs))


def _summary(rows: list[dict]) -> str:
    whole = [row["ratio"] for row in rows if row["work"] != "one class"]
    pairs = [row["ratio"] for row in rows if row["work"] != "all classes"]
    means = [float(np.exp(np.log(ratios).mean())) for ratios in (whole, pairs) if ratios]
    told = "two threads are {:.3g} times as fast as one (geometric mean); "
    told += "with one class of 20 newsgroups and of news20 instead of all of them {:.3g}"
    return "Sets as they are: " + told.format(means[0] if whole else np.nan, means[-1]) + "."
