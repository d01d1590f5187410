"""Reading and predicting from a 500 MB LIBSVM text, beside scikit-learn and LIBLINEAR's program.

The text is rcv1 (real rows), repeated in random orders. Reading: `load_svmlight` against
scikit-learn's loader, the same matrix; its peak memory in a process of its own, as a multiple of
the matrix; and once more from the binary cache. Predicting: `pegasos predict` against
LIBLINEAR's `predict`, both as commands from text to labels, start-up included. Compilation is done
before the clock starts.
"""

from __future__ import annotations

import lzma
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.datasets import FOLDER
from benchmarks.table import save

SOURCE = "rcv1_subsets.binary.svm.xz"
_PEAK = r"""
import re, sys
from pegasos import load_svmlight
X, y = load_svmlight(sys.argv[1])
matrix = (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes + y.nbytes) / 1024
print(int(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1]) / matrix)
"""


def run(megabytes: int = 500, repeats: int = 3) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder  # a cache of its own; compiled loops too
        rows = _measure(Path(folder), megabytes, repeats)
    s = {row["what"]: row["ratio"] for row in rows}
    text = [
        "; ".join(f"{what}: {value:.3g}" for what, value in s.items())
        + f" (a text of {megabytes} MB; ratios of time, rival / pegasos)"
    ]
    save("files", text, rows)


def _measure(folder: Path, megabytes: int, repeats: int) -> list[dict]:
    small, big = _texts(folder, megabytes)
    rows = [_reading(small, big, repeats), _memory(big), _cached(big, repeats)]
    program = shutil.which("liblinear-predict") or shutil.which("predict")
    if program is None:
        print("predict: skipped, LIBLINEAR's programs are not installed (liblinear-tools)")
        return rows
    return [*rows, _predicting(folder, small, big, program, repeats)]


def _texts(folder: Path, megabytes: int) -> tuple[Path, Path]:
    """The real text, and one of many megabytes made of its lines."""
    small, big = folder / "small.svm", folder / "big.svm"
    small.write_bytes(lzma.open(FOLDER / SOURCE).read())
    lines = small.read_bytes().splitlines(keepends=True)
    rng = np.random.default_rng(0)
    with open(big, "wb") as file:
        while file.tell() < megabytes * 1e6:
            file.write(b"".join(lines[i] for i in rng.permutation(len(lines))))
    return small, big


def _best(work, repeats: int) -> tuple[float, object]:
    times = []
    for _ in range(repeats):
        result = None  # the last one is gone before the next begins
        start = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - start)
    return min(times), result


def _reading(small: Path, big: Path, repeats: int) -> dict:
    from sklearn.datasets import load_svmlight_file

    from pegasos import load_svmlight

    load_svmlight(small)
    ours, (X, y) = _best(lambda: load_svmlight(big), repeats)
    theirs, (A, b) = _best(lambda: load_svmlight_file(str(big), dtype=np.float32), repeats)
    same = all(np.array_equal(getattr(X, n), getattr(A, n)) for n in ("data", "indices", "indptr"))
    assert same and np.array_equal(y, b), "not the same matrix"
    return _row("reading, scikit-learn / pegasos", theirs / ours, ours, theirs)


def _memory(big: Path) -> dict:
    command = [sys.executable, "-c", _PEAK, str(big)]
    peak = float(subprocess.check_output(command, text=True))
    return _row("peak memory of the process / matrix", peak, np.nan, np.nan)


def _cached(big: Path, repeats: int) -> dict:
    from pegasos import load_svmlight

    load_svmlight(big, cache=True)
    ours, _ = _best(lambda: load_svmlight(big, cache=True), repeats)
    return _row("seconds from the cache", ours, ours, np.nan)


def _predicting(folder: Path, small: Path, big: Path, program: str, repeats: int) -> dict:
    model, text_model = folder / "m.pegasos", folder / "m.liblinear"
    pegasos = [sys.executable, "-m", "pegasos.cli.main"]
    subprocess.run([*pegasos, "train", small, "-m", model], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([*pegasos, "convert", model, text_model], check=True)

    def ours() -> None:
        subprocess.run([*pegasos, "predict", model, big, "-o", folder / "ours"], check=True)

    def theirs() -> None:
        command = [program, big, text_model, folder / "theirs"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    subprocess.run([*pegasos, "predict", model, small, "-o", folder / "ours"], check=True)
    seconds, _ = _best(ours, repeats)
    rival, _ = _best(theirs, repeats)
    a, b = (np.loadtxt(folder / name, dtype=int) for name in ("ours", "theirs"))
    assert np.mean(a == b) > 0.99999, "other labels"  # float32 against float64 at a score of 0
    return _row("predicting, LIBLINEAR / pegasos", rival / seconds, seconds, rival)


def _row(what: str, ratio: float, ours: float, theirs: float) -> dict:
    print(f"{what}: {ratio:.3g}", flush=True)
    return {"what": what, "ratio": ratio, "pegasos_s": ours, "rival_s": theirs}
