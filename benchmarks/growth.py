"""Growth: time to a fixed gap and memory, as the rows of a synthetic text set double.

The set: rows of about 60 distinct words out of 100,000, word k drawn with probability about
1 / (k + 10), weights log(1 + count) of a count, rows of length 1; the label is the sign of a random
direction over the words, wrong for one row in twenty. Each size is fitted in a process of its own
(hinge, C = 1, no intercept, relative gap 1e-3), on one thread and on two; the peak of its memory is
compared with the matrix as SciPy holds it.
"""

from __future__ import annotations

import multiprocessing
import time
import warnings

import numpy as np
from scipy import sparse

from benchmarks.table import save

WORDS, LENGTH = 100_000, 60
SIZES = (250_000, 500_000, 1_000_000, 2_000_000, 4_000_000)


def synthetic_text(n: int, seed: int = 0) -> tuple[sparse.csr_matrix, np.ndarray]:
    """CSR rows (float32, 32-bit columns) and labels -1, +1."""
    rng = np.random.default_rng(seed)
    share = np.cumsum(1.0 / (np.arange(WORDS) + 10.0))
    share /= share[-1]
    direction = rng.standard_normal(WORDS).astype(np.float32)
    counts = np.empty(n, dtype=np.int64)
    values, columns, scores = [], [], []
    for start in range(0, n, 50_000):
        size = min(50_000, n - start)
        words = np.sort(np.searchsorted(share, rng.random((size, LENGTH))), axis=1)
        first = np.ones(words.shape, dtype=bool)
        first[:, 1:] = words[:, 1:] != words[:, :-1]
        weight = np.where(first, np.log1p(rng.geometric(0.5, words.shape)), 0.0)
        weight /= np.linalg.norm(weight, axis=1, keepdims=True)
        scores.append((weight * direction[words]).sum(axis=1))
        counts[start : start + size] = first.sum(axis=1)
        values.append(weight[first].astype(np.float32))
        columns.append(words[first].astype(np.int32))
    starts = np.concatenate([[0], np.cumsum(counts)])
    starts = starts.astype(np.int32 if starts[-1] < 2**31 else np.int64)
    X = sparse.csr_matrix((np.concatenate(values), np.concatenate(columns), starts), (n, WORDS))
    wrong = rng.random(n) < 0.05
    return X, np.where((np.concatenate(scores) > 0.0) != wrong, 1.0, -1.0)


def _fit(n: int, threads: int, answer) -> None:
    from pegasos import LinearSVC

    model = LinearSVC(loss="hinge", intercept="none", random_state=0, n_threads=threads)
    model.fit(*synthetic_text(200_000))  # compiles
    X, y = synthetic_text(n)
    matrix = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak counts from here
    resident = _peak()
    warnings.simplefilter("error")
    times = []
    for _ in range(2):
        start = time.perf_counter()
        model.fit(X, y)
        times.append(time.perf_counter() - start)
    start = time.perf_counter()
    X @ model.coef_[0].astype(np.float32)
    product = time.perf_counter() - start
    answer.put(
        {
            "rows": n,
            "threads": threads,
            "matrix_MB": matrix / 1e6,
            "seconds": min(times),
            "epochs": int(model.n_iter_),
            "gap": model.certificate_.relative_gap,
            "product_s": product,
            "memory_of_matrix": 1.0 + (_peak() - resident) / matrix,
        }
    )


def _peak() -> float:
    """The highest resident memory so far, in bytes (Linux)."""
    with open("/proc/self/status") as file:
        lines = dict(line.split(":", 1) for line in file)
    return float(lines["VmHWM"].split()[0]) * 1024


def run(sizes: tuple[int, ...] = SIZES) -> None:
    context = multiprocessing.get_context("spawn")
    rows: list[dict] = []
    for n in sizes:
        for threads in (1, 2):
            answer = context.Queue()
            child = context.Process(target=_fit, args=(n, threads, answer))
            child.start()
            child.join()
            if child.exitcode:
                raise RuntimeError(f"the fit of {n} rows died (exit code {child.exitcode})")
            row = answer.get()
            half = [r for r in rows if r["rows"] * 2 == n and r["threads"] == threads]
            row["times_half"] = row["seconds"] / half[0]["seconds"] if half else None
            rows.append(row)
            print(row, flush=True)
            save("growth", [__doc__.split("\n\n")[0]], rows)
