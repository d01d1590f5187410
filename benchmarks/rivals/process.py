"""The harness's side of a worker: data handed over, fits asked for, patience kept."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from benchmarks.rivals.entrants import ENTRANTS
from benchmarks.rivals.environments import interpreter

ROOT = Path(__file__).parents[2]
WARM_ROWS = 2000
WARM_SECONDS = 300.0  # compilation included


class FitError(Exception):
    """A fit that gave no answer, in one line."""


class Problem(NamedTuple):
    """A data set, the folder where workers find it, C and loss."""

    X: Any
    y: np.ndarray
    folder: str
    C: float
    loss: str


def store(X: Any, y: np.ndarray, folder: str) -> None:
    """Write a data set for the workers."""
    if sp.issparse(X):
        sp.save_npz(Path(folder, "X.npz"), X, compressed=False)
    else:
        np.save(Path(folder, "X.npy"), X)
    np.save(Path(folder, "y.npy"), y)


class Worker:
    """An entrant's process, started when it is needed and again after it was ended."""

    def __init__(self, name: str):
        entrant = ENTRANTS[name]
        self.name = name
        self.python = interpreter(entrant.environment, entrant.packages)
        self.process: subprocess.Popen | None = None
        self.warm: set = set()
        self.folder = tempfile.TemporaryDirectory()

    def fit(self, problem: Problem, setting: dict, seconds: float) -> tuple[float, np.ndarray]:
        """Seconds of the whole fit, and w; a fit that takes longer than allowed is ended."""
        case = (problem.folder, problem.loss, tuple(setting))  # the values compile nothing new
        if case not in self.warm:
            self._ask(problem, setting, max(1, len(problem.y) // WARM_ROWS), WARM_SECONDS)
            self.warm.add(case)
        return self._ask(problem, setting, 1, seconds)

    def _ask(self, problem: Problem, setting: dict, rows: int, seconds: float):
        process = self._running()
        out = os.path.join(self.folder.name, "w.npy")
        request = {"folder": problem.folder, "rows": rows, "C": problem.C, "loss": problem.loss}
        print(json.dumps(request | {"setting": setting, "out": out}), file=process.stdin)
        timer = threading.Timer(seconds, process.kill)
        start = time.monotonic()
        timer.start()
        reply = process.stdout.readline()
        timer.cancel()
        if not reply:
            self.stop()
            late = time.monotonic() - start >= seconds
            raise FitError(f"ended after {seconds:.3g} s" if late else self._last_words())
        answer = json.loads(reply)
        if "error" in answer:
            raise FitError(answer["error"].splitlines()[0])
        return answer["seconds"], np.load(out)

    def _running(self) -> Any:
        if self.process is not None and self.process.poll() is not None:  # died since
            self.stop()
        if self.process is None:
            paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
            with open(self._log(), "w") as log:
                self.process = subprocess.Popen(
                    [self.python, "-m", "benchmarks.rivals.worker", self.name],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                    bufsize=1,
                    env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
                )
        return self.process

    def _log(self) -> Path:
        return Path(self.folder.name, "log")

    def _last_words(self) -> str:
        return (self._log().read_text().splitlines() or ["the process ended without a word"])[-1]

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None
            self.warm.clear()
