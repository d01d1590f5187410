"""Kernelised Pegasos on a budget beside the exact SVC; a stream of a million rows; kernel blocks.

Accuracy: ijcnn1 (its training and test part, C = 32, gamma = 2), magic04 (standardised, 80/20,
C = 8, gamma = 0.125), the parameters of the exact machine for both. Stream: covtype, whole and
then again in another order, a thousand rows at a time; microseconds a row and resident memory for
each hundred thousand. Blocks: 128 rows against 20,000, one thread, nanoseconds a value.
"""

from __future__ import annotations

import time

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from benchmarks.datasets import FOLDER, load
from benchmarks.table import into_page, markdown, save

BUDGET = 500
SEEDS = (0, 1, 2)
STREAM, BATCH = 1_000_000, 1000


def run() -> None:
    rows = [row for name in ("magic04", "ijcnn1") for row in _accuracy(name)]
    _report(rows, _stream(), [_block(name) for name in ("ijcnn1", "mnist38", "a9a", "rcv1")])


def _report(rows: list[dict], stream: list[dict], blocks: list[dict]) -> None:
    first, last = stream[0], stream[-1]
    chosen = [r for r in rows if r["average"] and r["maintenance"] == "merge"]
    behind = {r["set"]: 100 * (r["svc_accuracy"] - r["worst"]) for r in chosen}
    text = [
        f"With {BUDGET} support vectors, merged and averaged, the worst of {len(SEEDS)} seeds is "
        f"behind the exact SVC by {behind['magic04']:.2f} points on magic04, "
        f"{behind['ijcnn1']:.2f} on ijcnn1.",
        f"A million rows streamed: {first['us_a_row']:.1f} us a row and "
        f"{first['resident_mb']:.0f} MB (data included) for the first hundred thousand, "
        f"{last['us_a_row']:.1f} us and {last['resident_mb']:.0f} MB for the last.",
        "Gaussian blocks beside scikit-learn's rbf_kernel: "
        + ", ".join(f"{b['set']} {b['ratio']:.1f}x" for b in blocks)
        + ".",
    ]
    save("kernel_online", text, rows, [markdown(stream), markdown(blocks)])
    into_page("docs/guide/kernels.md", "kernel_online", [*text[:2], markdown(rows)])


def _parts(name: str):
    """Training and test part, C, gamma."""
    if name == "ijcnn1":
        parts = []
        for part in ("ijcnn1", "ijcnn1.t"):
            path = FOLDER / f"{part}.npz"
            X = sp.load_npz(path).toarray().astype(np.float32)
            parts += [X, np.load(path)["y"]]
        return *parts, 32.0, 2.0
    X, y = load(name)
    order = np.random.default_rng(0).permutation(len(y))
    a, b = order[: int(0.8 * len(y))], order[int(0.8 * len(y)) :]
    return X[a], y[a], X[b], y[b], 8.0, 0.125


def _accuracy(name: str) -> list[dict]:
    from pegasos import KernelPegasosClassifier

    X, y, Z, z, C, gamma = _parts(name)
    seconds, exact = _timed(lambda: SVC(C=C, gamma=gamma, cache_size=2000).fit(X, y))
    score = exact.score(Z, z)
    rows = []
    for options in (
        {"max_iter": 5},
        {"max_iter": 5, "average": True},
        {"max_iter": 5, "average": True, "maintenance": "remove"},
    ):
        model = KernelPegasosClassifier(C=C, gamma=gamma, budget=BUDGET, **options)
        model.set_params(max_iter=1).fit(X[:2000], y[:2000])  # compiled before the clock starts
        model.set_params(**options)
        times, found = [], []
        for s in SEEDS:
            took, _ = _timed(lambda s=s, m=model: m.set_params(random_state=s).fit(X, y))
            times.append(took)
            found.append(model.score(Z, z))
        rows.append(
            {
                "set": name,
                "maintenance": model.maintenance,
                "average": model.average,
                "epochs": model.max_iter,
                "fit_s": min(times),
                "mean": float(np.mean(found)),
                "worst": float(np.min(found)),
                "svc_accuracy": float(score),
                "svc_support": len(exact.support_),
                "svc_fit_s": seconds,
            }
        )
        print(rows[-1], flush=True)
    return rows


def _stream() -> list[dict]:
    from pegasos import KernelPegasosClassifier

    X, y = load("covtype")
    rng = np.random.default_rng(0)
    order = np.concatenate([rng.permutation(len(y)), rng.permutation(len(y))])[:STREAM]
    model = KernelPegasosClassifier(gamma=0.1, lam=1e-5, budget=BUDGET)
    rows, wrong, start = [], 0, 0.0
    for s in range(0, STREAM, BATCH):
        some = order[s : s + BATCH]
        A, b = X[some], y[some]
        if s:
            wrong += int(np.count_nonzero(model.predict(A) != b))
        before = time.perf_counter()
        model.partial_fit(A, b, classes=[-1.0, 1.0])
        start += time.perf_counter() - before
        if (s + BATCH) % 100_000 == 0:
            rows.append(
                {
                    "rows": s + BATCH,
                    "us_a_row": 10.0 * start,
                    "resident_mb": _resident(),
                    "support_vectors": model.dual_coef_.shape[1],
                    "error_before_learning": wrong / 100_000,
                }
            )
            print(rows[-1], flush=True)
            wrong, start = 0, 0.0
    return rows


def _resident() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 1e6


def _block(name: str) -> dict:
    from pegasos.core.threads import use_threads
    from pegasos.objective.kernel_blocks import block
    from pegasos.objective.kernel_points import points, take
    from pegasos.objective.kernels import Gaussian

    X, _ = load(name)
    X = X[:20_000].toarray() if name == "ijcnn1" else X[:20_000]
    kernel = Gaussian(1.0 / X.shape[1])
    P = points(kernel, X)
    A = take(P, np.arange(128))
    out = np.empty((128, X.shape[0]), X.dtype)
    with use_threads(1):
        ours = _best(lambda: block(kernel, A, P, out))
        theirs = _best(lambda: rbf_kernel(X[:128], X, gamma=kernel.gamma))
    each = 1e9 / out.size
    return {
        "set": name,
        "storage": "CSR" if sp.issparse(X) else "array",
        "columns": X.shape[1],
        "pegasos_ns": each * ours,
        "scikit_learn_ns": each * theirs,
        "ratio": theirs / ours,
    }


def _timed(work):
    start = time.perf_counter()
    answer = work()
    return time.perf_counter() - start, answer


def _best(work, repeats: int = 5) -> float:
    work()
    return min(_timed(work)[0] for _ in range(repeats))


if __name__ == "__main__":
    run()
