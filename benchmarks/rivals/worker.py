"""The process of one entrant: requests and replies are lines of JSON.

A request names a folder with the data, C, loss, a setting, every how many rows (1: all) and
where to put w; the reply has the seconds of the whole fit, or the error.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np


def main() -> None:
    from benchmarks.rivals.entrants import ENTRANTS

    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a package prints is not a reply
    warnings.simplefilter("ignore")  # "not converged": the objective decides
    fit = ENTRANTS[sys.argv[1]].fit
    for line in sys.stdin:
        print(json.dumps(_answer(fit, **json.loads(line))), file=replies, flush=True)


def _answer(fit, folder, rows, C, loss, setting, out) -> dict[str, Any]:
    X, y = _data(folder)
    if rows > 1:
        X, y = X[::rows].copy(), y[::rows].copy()
    try:
        start = time.perf_counter()
        w = fit(X, y, C, loss, setting)
        seconds = time.perf_counter() - start
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    np.save(out, w)
    return {"seconds": seconds}


def _data(folder: str) -> tuple[Any, np.ndarray]:
    file = next(Path(folder).glob("X.*")).resolve()  # folders may share a matrix
    return _matrix(file), np.load(Path(folder, "y.npy"))


@functools.lru_cache(maxsize=1)
def _matrix(file: Path) -> Any:
    from scipy.sparse import load_npz

    return load_npz(file) if file.suffix == ".npz" else np.load(file)


if __name__ == "__main__":
    main()
