"""Looking on while a model is fitted: signals, checkpoints and the progress line."""

from __future__ import annotations

import math
import signal
import sys
import time
from types import FrameType
from typing import Any

from pegasos.cli.checkpoints import LIMITS, Checkpoints
from pegasos.cli.console import note
from pegasos.cli.stop import STOPPING, Terminated
from pegasos.estimators.one_vs_all import Task
from pegasos.solvers.driver import Driver, Progress, Run


class Signals:
    """The first signal asks the fit to stop at the next safe point, the second ends it.

    While it is `waiting` for data the first one does, since nothing is unsafe then; and where
    nobody `looks` on any more it is Ctrl-C at once.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self.waiting = False
        self.looks = True
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Signals:
        heard = [s for s in STOPPING if signal.getsignal(s) is not signal.SIG_IGN]
        self._before = {number: signal.signal(number, self._hear) for number in heard}
        return self

    def __exit__(self, *_: Any) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _hear(self, number: int, _: FrameType | None) -> None:
        again, self.received = self.received is not None, self.received or number
        if again or self.waiting:
            raise Terminated(number)
        if not self.looks:
            raise KeyboardInterrupt


class Watcher:
    """What the command line shows and keeps during a fit (see estimators.one_vs_all.Watch)."""

    def __init__(self, signals: Signals, checkpoints: Checkpoints, line: ProgressLine):
        self.signals, self.checkpoints, self.line = signals, checkpoints, line
        self._name = ""

    def begin(self, task: Task, k: int, driver: Driver) -> Run | None:
        self._name = f"{task.names[k]} ({k + 1} of {len(task.targets)})"
        if len(task.targets) == 1:
            self._name = ""
        self.line.begin(driver.stop.tol)
        return self.checkpoints.begin(task, k, driver)

    def step(self, driver: Driver, progress: Progress) -> None:
        stopping = self.signals.received is not None and progress.stop is None
        if progress.stop is None or progress.stop in LIMITS:
            self.checkpoints.step(driver, now=stopping)
        objective = float(driver.state.objective)
        self.line.show(self._name, progress, objective)
        if stopping:
            raise KeyboardInterrupt

    def end(self, run: Run) -> None:
        self.checkpoints.end(run)

    def leave(self) -> None:
        self.signals.looks = False


class ProgressLine:
    """Epoch, gap and time on a terminal, with a bar from the first gap to tol; else nothing."""

    def __init__(self) -> None:
        self.compiled = 0
        self._live: Any = None
        self._shown = 0.0
        self._first: float | None = None
        self._tol = 1e-3
        if sys.stderr is not None and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn
            from rich.progress import Progress as Bar

            console = Console(stderr=True, highlight=False)
            self._live = Bar(
                BarColumn(10), TextColumn("{task.description}"), console=console, transient=True
            )
            self._task = self._live.add_task("", total=1.0)

    def __enter__(self) -> ProgressLine:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Clear the line: what follows is words."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    @property
    def live(self) -> bool:
        """Whether there is a terminal to show it."""
        return self._live is not None

    def say(self, words: str) -> None:
        """Words in place of the figures."""
        if self._live is not None:
            self._live.update(self._task, description=words)

    def compiling(self, loop: str) -> None:
        """A loop is being compiled, which takes seconds."""
        self.compiled += 1
        self.say("compiling (at first use only)")

    def at(self, words: str, share: float) -> None:
        """Words, and how much of the work is done."""
        now = time.monotonic()
        if self._live is not None and now - self._shown >= 0.1:
            self._shown = now
            self._live.update(self._task, description=words, completed=min(1.0, share))

    def begin(self, tol: float) -> None:
        self._first, self._tol = None, max(tol, 1e-12)

    def show(self, name: str, progress: Progress, objective: float) -> None:
        now = time.monotonic()
        if self._live is None or now - self._shown < 0.1:
            return
        self._shown = now
        gap, sign = progress.estimate / objective if objective else math.inf, "about "
        if progress.certificate is not None:
            gap, sign = progress.certificate.relative_gap, ""
        words = f"epoch {progress.epoch}  {progress.seconds:.1f} s  {name}"
        if math.isfinite(gap) and gap > 0.0:
            self._first = max(gap, self._first or gap)
            share = math.log(self._first / gap) / math.log(max(self._first / self._tol, 1.0 + 1e-9))
            words = f"gap {sign}{gap:.1e} to {self._tol:g}  {words}"
            self._live.update(self._task, completed=min(1.0, max(0.0, share)))
        self._live.update(self._task, description=words)


class Teller:
    """A stream: one line that changes on a terminal, else a line whenever the rows have doubled."""

    def __init__(self, line: ProgressLine, rows: int):
        self.line, self._first, self._next = line, rows, rows + 1
        self._start: float | None = None

    def tell(self, met: Any) -> None:
        if not self.line.live and met.rows < self._next:
            return
        words = f"{met.rows:,} rows  error {100 * met.error_rate:.2f} %  loss {met.loss:.4f}"
        if self._start is None:  # the first batch also loads or compiles the loops
            self._first, self._start = met.rows, time.perf_counter()
        else:
            pace = (met.rows - self._first) / max(1e-9, time.perf_counter() - self._start)
            words += f"  {pace:,.0f} rows/s"
        if self.line.live:
            self.line.say(words)
        else:
            note(words)
            self._next = 2 * met.rows
