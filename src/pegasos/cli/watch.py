"""Looking on while a model is fitted: the progress line, signals, checkpoints."""

from __future__ import annotations

import os
import signal
import time
import zlib
from pathlib import Path
from types import FrameType
from typing import Any

from pegasos import __version__
from pegasos.data.errors import DataError
from pegasos.estimators.one_vs_all import Task
from pegasos.model import checkpoint
from pegasos.solvers.driver import Driver, Progress, Run

STOPPING = [signal.SIGINT, signal.SIGTERM]
if hasattr(signal, "SIGHUP"):
    STOPPING.append(signal.SIGHUP)


class Signals:
    """The first signal asks the fit to stop at the next safe point, the second ends it at once."""

    def __init__(self) -> None:
        self.received: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Signals:
        self._before = {s: signal.signal(s, self._hear) for s in STOPPING}
        return self

    def __exit__(self, *_: Any) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _hear(self, number: int, _: FrameType | None) -> None:
        if self.received is not None:
            os._exit(128 + number)
        self.received = number


class Checkpoints:
    """Keeps the state of a fit in a file, and brings a fit back to it.

    `path` None: nothing is kept. The file is removed by `done` when the model is safe.
    """

    def __init__(self, path: Path | None, every: float):
        self.path, self.every = path, every
        self.resumed = False
        self._finished: list[Any] = []
        self._last = time.monotonic()
        self._saved: Any = None
        self._owner: dict[str, Any] = {}

    def begin(self, task: Task, k: int, driver: Driver) -> Run | None:
        """The finished run of problem k, or its driver restored, if the file says so."""
        if self.path is None:
            return None
        if k == 0:
            self._owner = owner_of(task)
            if self.path.exists():
                self._saved = checkpoint.load(self.path, self._owner, driver.problem)
                self._check_shape(task)
                self.resumed = True
                self._finished = list(self._saved[0])
        if self._saved is None:
            return None
        finished, current = self._saved
        if k < len(finished):
            saved = finished[k]
            return Run(saved.best, list(saved.history), saved.stop_reason, saved.state)
        if k == len(finished) and current is not None:
            # problems in it belong to the first; this driver's has its own labels
            driver.restore(_on(current, driver))
        return None

    def _check_shape(self, task: Task) -> None:
        good = isinstance(self._saved, tuple) and len(self._saved) == 2
        if not good or len(self._saved[0]) > len(task.targets):
            raise DataError(f"{self.path}: content: not the states of a fit")

    def step(self, driver: Driver, stopping: bool) -> None:
        """Save if it is time, or if the fit ends here."""
        now = time.monotonic()
        if self.path is not None and (stopping or now - self._last >= self.every):
            self._save(driver.snapshot())
            self._last = now

    def end(self, run: Run) -> None:
        """A problem is solved: what later steps need of it is kept."""
        choice = getattr(run.state, "choice", None)
        kept = checkpoint.Finished(run.state.epoch, choice)
        self._finished.append(
            checkpoint.Finished_run(run.best, list(run.history), run.stop_reason, kept)
        )

    def _save(self, snapshot: Any) -> None:
        assert self.path is not None
        checkpoint.save(self.path, self._owner, (tuple(self._finished), snapshot))

    def done(self) -> None:
        """The model is written: the checkpoint has served."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def _on(snapshot: Any, driver: Driver) -> Any:
    return snapshot


def owner_of(task: Task) -> dict[str, Any]:
    """What a checkpoint belongs to: the data, the settings that shape the run, the version."""
    rows = task.rows
    arrays = {
        name: getattr(rows, name) for name in rows._fields if hasattr(getattr(rows, name), "nbytes")
    }
    arrays |= {"label": task.label, "weights": task.c, "center": task.centers}
    return {
        "version": __version__,
        "data": {
            name: zlib.crc32(array.tobytes() if not array.flags.c_contiguous else array)
            for name, array in arrays.items()
        },
        "rows": int(len(task.label)),
        "loss": repr(task.loss),
        "intercept": [float(rows.bias), bool(task.free)],
        "solver": task.solver,
        "tol": float(task.stop.tol).hex(),
        "seed": task.seed,
    }


class Watcher:
    """What the command line shows and keeps during a fit (see estimators.one_vs_all.Watch)."""

    def __init__(self, signals: Signals, checkpoints: Checkpoints, show: Any):
        self.signals, self.checkpoints, self.show = signals, checkpoints, show
        self.name = ""

    def begin(self, task: Task, k: int, driver: Driver) -> Run | None:
        self.name = task.names[k] if len(task.targets) > 1 else ""
        return self.checkpoints.begin(task, k, driver)

    def step(self, driver: Driver, progress: Progress) -> bool:
        stopping = self.signals.received is not None and progress.stop is None
        self.checkpoints.step(driver, stopping)
        self.show(self.name, progress)
        return stopping

    def end(self, run: Run) -> None:
        self.checkpoints.end(run)
