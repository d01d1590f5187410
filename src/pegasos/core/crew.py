"""Helpers: threads that wait for work, each on cores of its own while it works.

To start a thread takes longer than many a block of rows, so helpers stay. Where they run is not
left to the kernel alone: on some virtual machines it wakes a thread on the core of who woke it,
where the two take turns for ten milliseconds, longer than many a fit, while another core sleeps. So
helpers keep off the core of their caller, and off each other's (decision 026).
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any, NamedTuple

Job = Callable[[], Any]


class Ticket(NamedTuple):
    """Of a job: a lock that who begins it takes, or who no longer needs it; one released at its
    end."""

    claim: threading.Lock
    done: threading.Lock


class Task(NamedTuple):
    """A job, which must not raise; its ticket; the cores of all; whether who sent it works beside
    it, and the helper keeps off their core."""

    job: Job
    ticket: Ticket
    cores: set[int]
    busy: bool


class Helper:
    """A thread that does one task after another, and between them is one of those at rest."""

    def __init__(self, crew: Crew) -> None:
        self.inbox: SimpleQueue[Task] = SimpleQueue()
        self._crew = crew
        self._cores: set[int] | None = None
        self.home: set[int] = set()
        self._thread = threading.Thread(target=self._serve, name="pegasos", daemon=True)
        self._thread.start()

    def begin_on(self, cores: set[int]) -> None:
        """Wake up there, and nowhere else."""
        if cores != self._cores:
            self._cores = cores
            _confine(self._thread.native_id, cores)

    def roam(self, cores: set[int]) -> None:
        """Go on wherever there is room: said by the thread itself."""
        if cores != self._cores:
            self._cores = cores
            _confine(0, cores)

    def _serve(self) -> None:
        _here.helper = self
        at_rest = True
        while at_rest:
            task = self.inbox.get()
            self.home = task.cores
            try:
                if not task.busy:
                    self.roam(task.cores)
                if task.ticket.claim.acquire(blocking=False):
                    task.job()
            except BaseException:  # a job tells of its errors itself; what comes then is too late
                pass
            done, busy = task.ticket.done, task.busy
            del task  # with all that its job holds
            at_rest = self._crew.rest(self, busy)
            done.release()


class Crew:
    """All helpers of this process: those at rest, how many there are, and how many of them stand in
    for a caller that only waits."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._resting: list[Helper] = []
        self._size = 0
        self._standing_in = 0

    def rest(self, helper: Helper, busy: bool) -> bool:
        """Whether the helper is to stay: some may have been hired for more work than usual."""
        with self._lock:
            self._standing_in -= not busy
            if len(self._resting) >= _ENOUGH:
                self._size -= 1
                return False
            self._resting.append(helper)
            return True

    def send(self, jobs: Sequence[Job], taken: list[Ticket], most: float, busy: bool):
        with self._lock:
            limit = most + self._standing_in
            while len(self._resting) < len(jobs) and self._size < limit:
                self._resting.append(Helper(self))
                self._size += 1
            n = min(len(jobs), len(self._resting))
            cores = os.sched_getaffinity(0) if _CAN_CONFINE else set()
            others = sorted(cores - {_core()} if busy else cores)
            for k in range(n):
                ticket = Ticket(threading.Lock(), threading.Lock())
                ticket.done.acquire()
                self._resting[-1].begin_on(set(others[k::n]) or cores)
                self._give(Task(jobs[k], ticket, cores, busy), taken)

    def _give(self, task: Task, taken: list[Ticket]) -> None:
        """To the last at rest. A Ctrl-C shows where a call ends: the task is then with the helper,
        who is no longer at rest, and its ticket among those taken; or nothing has happened."""
        inbox, sent = self._resting[-1].inbox, False
        try:
            taken.append(task.ticket)
            sent = True
            inbox.put(task)
        finally:
            if sent:
                self._standing_in += not task.busy
                del self._resting[-1]
            elif taken and taken[-1] is task.ticket:
                del taken[-1]


def send(
    jobs: Sequence[Job],
    taken: list[Ticket],
    most: float = float("inf"),
    busy: bool = True,
) -> None:
    """Give jobs to helpers, the first to who rests; new ones come while there are not `most`.

    `taken` gets a ticket for each job that has found one. `busy`: this thread is going to work
    beside them; else they may soon run wherever there is room, and do not count among the `most`.
    """
    _crew.send(jobs, taken, most, busy)


def wait(taken: list[Ticket], needed: bool = True) -> None:
    """Until all are done, or Ctrl-C comes; those no longer `needed` only if they have begun: a
    helper may wake up late."""
    for ticket in taken:
        if needed or not ticket.claim.acquire(blocking=False):
            with ticket.done:
                pass


def roam() -> None:
    """Let this thread run wherever there is room, if it is a helper: it may start threads that
    inherit where they may run, as the code of a user does."""
    helper = getattr(_here, "helper", None)
    if helper is not None:
        helper.roam(helper.home)


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
_ENOUGH = max(1, os.cpu_count() or 1)  # helpers at rest
_here = threading.local()
_core = _core_of_this_thread()
_crew = Crew()


def _forget() -> None:
    global _crew
    _crew = Crew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)  # threads do not survive a fork
