"""Keeping a fit in a file while it runs, and bringing a fit back to it."""

from __future__ import annotations

import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from pegasos import __version__
from pegasos.cli.console import note
from pegasos.data.atomic import destination
from pegasos.data.errors import DataError
from pegasos.estimators.one_vs_all import Task
from pegasos.model import checkpoint
from pegasos.solvers.driver import Driver, Run, Snapshot

LIMITS = {"max_iter", "max_time"}


class Checkpoints:
    """The checkpoint of a fit: read when it begins, written every so many seconds.

    With path None nothing is kept.
    """

    def __init__(self, path: Path | None, every: float):
        self.path, self.every = path, every
        self.resumed = False
        self._solved: list[checkpoint.Solved | Snapshot] = []
        self._last = time.monotonic()
        self._saved: checkpoint.Saved | None = None
        self._owner: dict[str, Any] = {}
        self._stopped: Snapshot | None = None

    def begin(self, task: Task, k: int, driver: Driver) -> Run | None:
        """The run of problem k if the file has it; its driver goes on from there if it began."""
        if self.path is None:
            return None
        if k == 0:
            self._open(self.path, task)
        if self._saved is None or k > self._saved.n_solved:
            return None
        self._stopped = None
        if k == self._saved.n_solved:
            driver.restore(self._saved.current(driver.problem))
            return None
        one = self._saved.solved(k, driver.problem)
        if isinstance(one, Snapshot):  # a limit stopped it, which may be higher now
            driver.restore(one)
            self._stopped = one if driver.stop_reason != "running" else None
            return None
        self._solved.append(one)
        return Run(one.best, list(one.history), one.stop_reason, one.state)

    def _open(self, path: Path, task: Task) -> None:
        self._owner = owner_of(task)
        if path.exists():
            self._saved = checkpoint.Saved(path, self._owner)
            if self._saved.n_solved > len(task.targets):
                raise DataError(f"{path}: solved: more problems than there are")
            self.resumed = True

    def step(self, driver: Driver, now: bool) -> None:
        """Save if it is time, or `now`."""
        if self.path is None:
            return
        if driver.stop_reason in LIMITS:
            self._stopped = driver.snapshot()
            return
        self._stopped = None
        if not (now or time.monotonic() - self._last >= self.every):
            return
        checkpoint.save(self.path, self._owner, self._solved, driver.snapshot())
        self._last = time.monotonic()

    def end(self, run: Run) -> None:
        """A problem is solved, or a limit stopped it: then its whole state is kept."""
        if self._stopped is not None:
            self._solved.append(self._stopped)
            return
        kept = checkpoint.Finished(run.state.epoch, getattr(run.state, "choice", None))
        best = run.best._replace(margins=np.empty(0))  # which nobody reads again
        history = tuple(run.history)
        self._solved.append(checkpoint.Solved(best, history, run.stop_reason, kept))

    def done(self, reasons: str | list[str]) -> None:
        """The model is safe: the checkpoint has served, unless a limit stopped the fit."""
        if self.path is None:
            return
        if LIMITS.isdisjoint([reasons] if isinstance(reasons, str) else reasons):
            destination(self.path).unlink(missing_ok=True)
            return
        checkpoint.save(self.path, self._owner, self._solved, None)
        note(f"the state is kept in {self.path}: with a higher limit the fit goes on")


def owner_of(task: Task) -> dict[str, Any]:
    """What a checkpoint belongs to: the data, the settings that shape the run, the version."""
    rows = {name: part for name, part in task.rows._asdict().items() if name != "bias"}
    return {
        "versions": __version__,
        "numbers of rows": len(task.label),
        "problems": task.names,
        "data": sums_of({**rows, "label": task.label}),
        "C or weights": sums_of({"c": task.c}),
        "centres": sums_of({"center": task.centers}),
        "losses": repr(task.loss),
        "intercepts": [float(task.rows.bias), bool(task.free)],
        "solvers": repr(task.solver),
        "values of tol": float(task.stop.tol),
        "seeds": task.seed,
    }


def sums_of(parts: dict[str, Any]) -> dict[str, int]:
    """Checksums of the parts, one by one, and of what is inside tuples with names among them."""
    sums: dict[str, int] = {}
    for name, part in parts.items():
        if isinstance(part, np.ndarray):
            sums[name] = zlib.crc32(np.ascontiguousarray(part).data)
        elif hasattr(part, "_asdict"):
            sums |= {f"{name}.{k}": value for k, value in sums_of(part._asdict()).items()}
        else:
            sums[name] = zlib.crc32(repr(part).encode())
    return sums
