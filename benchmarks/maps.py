"""Nyström maps: which prototypes, how fast the map, and covtype with all its rows.

selection  magic04, shuttle, skin (the binary problems of `benchmarks.uci`, standardised): for each
           of SEEDS a split (stratified, two thirds to train) and a choice of m prototypes; error of
           FixedSizeSVC(C=10) with gamma = 1 / number of columns on the rest
mapping    `transform` of float32 rows beside scikit-learn's Nystroem: covtype (features to [0, 1]),
           gamma = 8, both cores, best of REPEATS
covtype    all rows, 80/20, class 2 against the rest, features to [0, 1], gamma = 8, m = 2000:
           FixedSizeSVC on all training rows beside Nystroem + LinearSVC of scikit-learn, with its
           default C, on as many as are given; each in a process of its own, map included
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks.datasets import FOLDER
from benchmarks.table import cell, into_page, markdown, merged, save
from benchmarks.uci import read

SETS, SIZES, SEEDS, REPEATS = ("magic04", "shuttle", "skin_nonskin"), (50, 200), 10, 3
METHODS = ("random", "entropy", "leverage", "kmeans")
TRAIN, GAMMA, M = 464_809, 8.0, 2000
RIVAL_ROWS = 200_000  # 16 bytes a value in LIBLINEAR and 12 in arrays: all rows would take 26 GB


def selection(names: tuple[str, ...] = SETS) -> None:
    rows = [row for name in names for row in _selected(name)]
    report(merged("selection", rows, ("set", "m"), order=SETS))


def report(rows: list[dict]) -> None:
    errors = np.array([[np.mean(row[method]) for method in METHODS] for row in rows])
    behind = np.exp(np.log(errors / errors.min(axis=1, keepdims=True)).mean(axis=0))
    each = [f"{method} {ratio:.2f}" for method, ratio in zip(METHODS, behind, strict=True)]
    text = [
        f"Test error with m prototypes, mean ± standard deviation of {SEEDS} splits and choices. "
        f"Error as a multiple of the least in its row, geometric mean: {', '.join(each)}."
    ]
    save("selection", text, rows)
    if {row["set"] for row in rows} == set(SETS):
        into_page("docs/guide/maps.md", "selection", [*text, markdown(rows)])


def _selected(name: str) -> list[dict]:
    from pegasos import FixedSizeSVC

    X, y = read(name)
    rows = []
    for m in SIZES:
        row: dict = {"set": name, "rows": len(y), "m": m}
        for method in METHODS:
            errors = []
            for seed in range(SEEDS):
                A, B, a, b = train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=seed)
                scaler = StandardScaler().fit(A)
                A, B = (scaler.transform(part).astype(np.float32) for part in (A, B))
                model = FixedSizeSVC(
                    m=m, gamma="auto", C=10.0, prototypes=method, random_state=seed
                ).fit(A, a)
                errors.append(1.0 - model.score(B, b))
            row[method] = errors
        rows.append(row)
        print(" ".join(f"{k}={cell(v)}" for k, v in row.items()), flush=True)
    return rows


def mapping() -> None:
    from sklearn.kernel_approximation import Nystroem

    from pegasos import NystroemMap

    X = _covtype()[0][:20_000]
    rows = []
    for m in (100, 300, 1000, 2000):
        known = {"gamma": GAMMA, "random_state": 0}
        theirs = Nystroem(n_components=m, **known).fit(X[:5000])
        ours = NystroemMap(m=m, prototypes="random", **known).fit(X[:5000])
        times = {"ours": _fastest(ours, X), "scikit-learn": _fastest(theirs, X)}
        row = {"m": m} | {f"{who}, rows/s": round(len(X) / t) for who, t in times.items()}
        rows.append(row | {"ratio": times["scikit-learn"] / times["ours"]})
        print(rows[-1], flush=True)
    worst = min(row["ratio"] for row in rows)
    text = [
        "Rows of covtype (54 columns, float32) mapped per second on two cores, beside "
        f"scikit-learn's Nystroem.transform: at least {worst:.1f} times as many."
    ]
    save("mapping", text, rows)
    into_page("docs/guide/maps.md", "mapping", [*text, markdown(rows)])


def _fastest(made, X) -> float:
    made.transform(X[:1000])
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        made.transform(X)
        times.append(time.perf_counter() - start)
    return min(times)


def _covtype():
    """All rows in a random order, features to [0, 1]."""
    stored = np.load(FOLDER / "covtype.npz")
    order = np.random.default_rng(0).permutation(len(stored["y"]))
    X = stored["X"].astype(np.float32)[order]
    low, high = X.min(axis=0), X.max(axis=0)
    return (X - low) / (high - low), np.where(stored["y"][order] == 2, 1, -1)


def covtype(who: tuple[str, ...] = ("ours", "scikit-learn")) -> None:
    """Each entrant in a process of its own, for its memory; ours after a small fit that compiles"""
    rows = []
    for name in who:
        found = subprocess.run(
            [sys.executable, "-m", "benchmarks.maps", name], capture_output=True, check=True
        )
        rows.append(json.loads(found.stdout.splitlines()[-1]))
        print(rows[-1], flush=True)
    rows = merged("covtype_map", rows, ("set",), order=("ours", "scikit-learn"))
    if len(rows) == 2:
        ours, theirs = rows
        text = [
            f"covtype, m = {M}: {ours['accuracy']:.2f} % in {ours['seconds']:.0f} s on "
            f"{ours['rows']} rows, {ours['resident MB']} MB resident; scikit-learn's Nystroem and "
            f"LinearSVC: {theirs['accuracy']:.2f} % in {theirs['seconds']:.0f} s on "
            f"{theirs['rows']} rows, {theirs['resident MB']} MB."
        ]
        save("covtype_map", text, rows)
        into_page("docs/guide/maps.md", "covtype", [*text, markdown(rows)])


def enter(name: str) -> None:
    """The run of one entrant; its last line is what is reported."""
    X, y = _covtype()
    A, a, B, b = X[:TRAIN].copy(), y[:TRAIN], X[TRAIN:].copy(), y[TRAIN:]
    del X
    row = _ours(A, a, B, b) if name == "ours" else _theirs(A[:RIVAL_ROWS], a[:RIVAL_ROWS], B, b)
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps({"set": name} | row | {"resident MB": resident}))


def _ours(A, a, B, b) -> dict:
    from pegasos import FixedSizeSVC

    known = {"gamma": GAMMA, "cache_size": 100, "random_state": 0}
    FixedSizeSVC(m=50, **known | {"cache_size": 1}).fit(A[:20_000], a[:20_000])
    start = _clocks()
    model = FixedSizeSVC(m=M, **known).fit(A, a)
    seconds = _clocks() - start
    start = time.perf_counter()
    score = model.score(B, b)
    gap = model.certificate_.relative_gap
    return _row(A, seconds, time.perf_counter() - start, score) | {"gap": f"{gap:.1e}"}


def _theirs(A, a, B, b) -> dict:
    from sklearn.kernel_approximation import Nystroem
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    model = make_pipeline(Nystroem(gamma=GAMMA, n_components=M, random_state=0), LinearSVC())
    start = _clocks()
    model.fit(A, a)
    seconds = _clocks() - start
    start = time.perf_counter()
    right = [np.sum(model.predict(B[s : s + 10_000]) == b[s : s + 10_000]) for s in _starts(B)]
    score = float(np.sum(right)) / len(b)
    return _row(A, seconds, time.perf_counter() - start, score) | {"gap": "-"}


def _starts(B) -> range:
    return range(0, len(B), 10_000)


def _clocks() -> np.ndarray:
    """Of the wall and of the processors."""
    return np.array([time.perf_counter(), time.process_time()])


def _row(A, seconds: np.ndarray, prediction: float, score: float) -> dict:
    return {
        "rows": len(A),
        "seconds": float(seconds[0]),
        "CPU seconds": float(seconds[1]),
        "prediction s": prediction,
        "accuracy": 100.0 * score,
    }


if __name__ == "__main__":
    enter(sys.argv[1])
