"""Helpers: threads that wait for work, each on cores of its own while it works.

To start a thread takes longer than many a block of rows, so helpers stay. Where they run is not
left to the kernel alone: on some virtual machines it wakes a thread on the core of who woke it,
where the two take turns for ten milliseconds, longer than many a fit, while another core sleeps. So
helpers keep off the core of their caller, and off each other's.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Sequence
from typing import Any

Job = Callable[[], Any]


class Helper:
    """A thread that does one job after another, and between them is one of those at rest."""

    def __init__(self) -> None:
        self._asked = threading.Lock()
        self._asked.acquire()
        self._task: tuple[Job, threading.Lock, set[int]] | None = None
        self._cores: set[int] | None = None
        self._thread = threading.Thread(target=self._serve, name="pegasos", daemon=True)
        self._thread.start()

    def ask(self, job: Job, begin: set[int], go_on: set[int]) -> threading.Lock:
        """Do a job, which must not raise, from some cores on; the lock is released at its end."""
        done = threading.Lock()
        done.acquire()
        if begin != self._cores:
            self._cores = begin
            _confine(self._thread.native_id, begin)
        self._task = job, done, go_on
        self._asked.release()
        return done

    def _serve(self) -> None:
        while True:
            self._asked.acquire()
            assert self._task is not None
            (job, done, go_on), self._task = self._task, None
            if go_on != self._cores:
                self._cores = go_on
                _confine(0, go_on)
            job()
            del job  # with all that it holds
            _crew.rest(self)
            done.release()


class Crew:
    """All helpers of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._resting: list[Helper] = []
        self._size = 0

    def rest(self, helper: Helper) -> None:
        with self._lock:
            self._resting.append(helper)

    def send(
        self, jobs: Sequence[Job], taken: list[threading.Lock], most: float, busy: bool
    ) -> None:
        with self._lock:
            while len(self._resting) < len(jobs) and self._size < most:
                self._resting.append(Helper())
                self._size += 1
            n = min(len(jobs), len(self._resting))
            cores = os.sched_getaffinity(0) if _CAN_CONFINE else set()
            others = sorted(cores - {_core()} if busy else cores)
            for k in range(n):
                begin = set(others[k::n]) or cores
                taken.append(self._resting.pop().ask(jobs[k], begin, begin if busy else cores))


def send(
    jobs: Sequence[Job],
    taken: list[threading.Lock],
    most: float = float("inf"),
    busy: bool = True,
) -> None:
    """Give jobs to helpers, the first to who rests; new ones come while there are not `most`.

    `taken` gets a lock for each job that has found one, released when it is done. `busy`: this
    thread is going to work beside them; else they may soon run wherever there is room.
    """
    _crew.send(jobs, taken, most, busy)


def wait(taken: list[threading.Lock]) -> None:
    """Until all are done, or Ctrl-C comes."""
    for lock in taken:
        with lock:
            pass


def _confine(thread: int | None, cores: set[int]) -> None:
    """Let a thread (0: this one) run on these cores only; a refusal costs speed alone."""
    if _CAN_CONFINE and thread is not None:
        try:
            os.sched_setaffinity(thread, cores)
        except OSError:
            pass


def _core_of_this_thread() -> Callable[[], int]:
    try:
        return ctypes.CDLL(None).sched_getcpu
    except (AttributeError, OSError, TypeError):  # another system or libc
        return lambda: -1


_CAN_CONFINE = hasattr(os, "sched_setaffinity")
_core = _core_of_this_thread()
_crew = Crew()


def _forget() -> None:
    global _crew
    _crew = Crew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)  # threads do not survive a fork
