"""Threads over blocks of rows.

Loops release the GIL, so plain Python threads run them in parallel. Blocks depend on the data
alone, never on the number of threads, and partial sums are combined in the order of the blocks:
their result has the same bits whatever the number of threads.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from pegasos.core import crew

_local = threading.local()
_PATIENCE, _CALLS = 8.0, 16  # times the work; calls without threads after one that took longer


def available() -> int:
    """Number of cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def allowed() -> int:
    """Number of threads that the work of this thread may use."""
    return getattr(_local, "n", 1)


@contextlib.contextmanager
def use_threads(n: int) -> Iterator[None]:
    """Allow `n` threads to the work of this thread; BLAS gets one, blocks of rows the rest."""
    with _allowing(n), _blas().limit(limits=1):
        yield


@contextlib.contextmanager
def _allowing(n: int) -> Iterator[None]:
    previous = allowed()
    _local.n = n
    try:
        yield
    finally:
        _local.n = previous


@functools.cache
def _blas() -> Any:
    import numpy.linalg  # noqa: F401  (its BLAS must be loaded to be found)
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def in_order(items: Iterable[Any], work: Callable[[Any], Any], workers: int) -> Iterator[Any]:
    """Pairs (item, work(item)) in the order of the items, worked on by threads, a few ahead.

    One worker is this thread: it gives each pair before it asks for another item.
    """
    if workers == 1:
        yield from ((item, work(item)) for item in items)
        return
    queue: deque[tuple[Any, Future[Any]]] = deque()

    def first() -> tuple[Any, Any]:
        item, future = queue.popleft()
        return item, future.result()

    with ThreadPoolExecutor(workers) as pool:
        try:
            for item in items:
                queue.append((item, pool.submit(work, item)))
                while len(queue) > workers or (queue and queue[0][1].done()):
                    yield first()  # what is done does not wait for a slow source
            while queue:
                yield first()
        finally:
            for _, waiting in queue:
                waiting.cancel()


def side_by_side(
    work: Callable[[Any, Callable[[], bool]], Any], items: list[Any]
) -> tuple[list[Any], bool]:
    """[work(item, halted) for item in items] on the allowed threads; whether Ctrl-C came.

    From then on `halted()` is True, and work should soon return with what it has. Where items are
    fewer than threads, each may use several.
    """
    halt = threading.Event()
    workers = min(allowed(), max(1, len(items)))
    share = allowed() // workers
    found: list[Any] = [None] * len(items)
    errors: list[BaseException] = []
    waiting = iter(range(len(items)))  # a step of it is atomic

    def draw() -> None:
        with _allowing(share):
            for k in waiting:
                try:
                    found[k] = work(items[k], halt.is_set)
                except BaseException as error:
                    errors.append(error)
                    halt.set()

    taken: list[crew.Ticket] = []
    interrupted = False
    try:
        crew.send([draw] * workers, taken, busy=False)
        crew.wait(taken)
    except KeyboardInterrupt:
        interrupted = True
        halt.set()
        crew.wait(taken)
        draw()  # if it came before anybody was sent
    if errors:
        raise errors[0]
    return found, interrupted


def together(work: Callable[[int], Any], n: int, close: Callable[[], None]) -> list[Any]:
    """[work(0), …, work(n - 1)], all at the same time, each on a thread of its own.

    They may wait for each other: `close` ends that when one of them fails or Ctrl-C comes.
    """
    answers: list[Any] = [None] * n
    errors: list[BaseException] = []

    def one(k: int) -> None:
        try:
            answers[k] = work(k)
        except BaseException as error:
            close()
            errors.append(error)

    taken: list[crew.Ticket] = []
    try:
        crew.send([functools.partial(one, k) for k in range(1, n)], taken)
        one(0)
    except BaseException:
        close()
        raise
    finally:
        _until_done(taken)
    if errors:
        raise errors[0]
    return answers


class _Company:
    """Whether other programs keep threads waiting; after some calls alone it is tried again."""

    def __init__(self) -> None:
        self._calls = 0

    def is_bad(self) -> bool:
        self._calls -= 1
        return self._calls >= 0

    def judge(self, slow: bool) -> None:
        self._calls = _CALLS if slow else 0


_company = _Company()


def in_company(
    work: Callable[[int, int], Any], n: int, close: Callable[[], None], due: float
) -> list[Any]:
    """[work(k, k + 1) for k below n], all at the same time, or [work(0, n)] by this thread alone.

    Threads that wait for each other are slow where other programs need the cores. So where a call
    has taken several times the `due` nanoseconds, the next ones do without other threads.
    """
    if _company.is_bad():
        return together(lambda _: work(0, n), 1, close)
    began = time.perf_counter()
    found = together(lambda k: work(k, k + 1), n, close)
    _company.judge(1e9 * (time.perf_counter() - began) > _PATIENCE * due)
    return found


def _until_done(taken: list[crew.Ticket], needed: bool = True) -> None:
    """A Ctrl-C that comes meanwhile goes on afterwards."""
    try:
        crew.wait(taken, needed)
    except KeyboardInterrupt:
        crew.wait(taken, needed)
        raise


def run_blocks(work: Callable[[int, int], Any], n: int, block: int) -> list[Any]:
    """[work(start, stop) for each block of `block` indices below n], on the allowed threads.

    This thread takes part, and so do helpers that rest; one that wakes up when all is done is not
    waited for. Blocks within a block find none: what is asked of who is busy would wait, with all
    that it holds.
    """
    bounds = [(s, min(s + block, n)) for s in range(0, n, block)]
    helpers = min(allowed(), len(bounds)) - 1
    if helpers < 1:
        return [work(s, e) for s, e in bounds]
    found: list[Any] = [None] * len(bounds)
    errors: list[BaseException] = []
    waiting = iter(range(len(bounds)))  # a step of it is atomic

    def draw() -> None:
        for k in waiting:
            found[k] = work(*bounds[k])

    def help_out() -> None:
        try:
            draw()
        except BaseException as error:
            errors.append(error)

    taken: list[crew.Ticket] = []
    try:
        crew.send([help_out] * helpers, taken, most=available() - 1)
        with _allowing(allowed() // (helpers + 1)):
            draw()
    finally:
        for _ in waiting:  # after an error the others end with the block at hand
            pass
        _until_done(taken, needed=False)
    if errors:
        raise errors[0]
    return found
