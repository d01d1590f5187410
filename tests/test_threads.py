"""Blocks on threads: in order, nothing waits in a queue with what it holds, cores are dealt out."""

import os
import queue
import threading
import time
import weakref

import numpy as np
import pytest

from pegasos.core import crew
from pegasos.core.threads import allowed, run_blocks, side_by_side, together, use_threads

on_cores = pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2,
    reason="needs two cores, and a system that says which",
)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_blocks_come_in_order_and_share_the_threads(threads):
    def work(start, stop):
        return start, stop, allowed()

    with use_threads(threads):
        found = run_blocks(work, 10, 4)
        assert allowed() == threads
    assert [block[:2] for block in found] == [(0, 4), (4, 8), (8, 10)]
    assert {block[2] for block in found} == {1}


def test_a_block_within_a_block_holds_nothing_when_it_is_done():
    """While the other thread is busy with a long block."""
    here, last = threading.current_thread(), threading.Event()
    arrays: list[weakref.ref] = []

    def sum_of_zeros():
        zeros = np.zeros(1000)
        arrays.append(weakref.ref(zeros))
        return sum(run_blocks(lambda s, e: zeros[s:e].sum(), 1000, 100))

    def outer(start, stop):
        if threading.current_thread() is not here:
            return last.wait(10.0)
        assert sum_of_zeros() == 0.0
        if len(arrays) == 20:
            last.set()
        return sum(array() is not None for array in arrays) == 0

    with use_threads(2):
        assert all(run_blocks(outer, 21, 1))


def test_an_error_of_a_helper_is_raised_and_it_helps_again():
    here = threading.current_thread()

    def work(start, stop):
        if threading.current_thread() is not here:
            raise ZeroDivisionError("of a helper")
        threading.Event().wait(0.01)  # so that the helper gets its share
        return start

    with use_threads(2):
        if run_blocks(lambda s, e: threading.current_thread() is here, 100, 1).count(False):
            with pytest.raises(ZeroDivisionError, match="of a helper"):
                run_blocks(work, 40, 1)
        assert run_blocks(lambda s, e: s, 9, 2) == [0, 2, 4, 6, 8]


def test_side_by_side_answers_in_order_and_raises_what_one_raised():
    with use_threads(2):
        assert side_by_side(lambda x, halted: x * x, [1, 2, 3]) == ([1, 4, 9], False)
        assert side_by_side(lambda x, halted: allowed(), [1]) == ([2], False)
        with pytest.raises(KeyError):
            side_by_side(lambda x, halted: {}[x] if x == 2 else x, [1, 2, 3])
        assert allowed() == 2


def test_after_an_error_the_others_are_halted():
    def work(item, halted):
        if item == 0:
            raise KeyError(item)
        while not halted():
            threading.Event().wait(0.001)

    with use_threads(2), pytest.raises(KeyError):
        side_by_side(work, [0, 1])


@on_cores
def test_who_works_together_works_on_different_cores():
    """From the first moment on, however little there is to do."""
    cores = os.sched_getaffinity(0)

    def where(k):
        return os.sched_getaffinity(0), crew._core()

    for _ in range(20):
        (_, mine), (theirs, at) = together(where, 2, lambda: None)
        assert at in theirs < cores
        assert theirs == cores - {mine} or mine in theirs  # moved since it asked
    assert os.sched_getaffinity(0) == cores


@on_cores
def test_side_by_side_nobody_is_confined_for_long():
    cores = os.sched_getaffinity(0)
    with use_threads(2):
        found, _ = side_by_side(lambda item, halted: os.sched_getaffinity(0), list(range(6)))
    assert all(each == cores for each in found)


def test_blocks_within_the_work_of_one_who_stands_in_have_a_helper():
    """Who waits for its work needs no core."""
    threads = set()

    def block(start, stop):
        threads.add(threading.get_ident())
        threading.Event().wait(0.01)

    with use_threads(2):
        side_by_side(lambda item, halted: run_blocks(block, 10, 1), [0])
    assert len(threads) == min(2, os.cpu_count() or 1)


@on_cores
def test_code_of_users_may_run_anywhere():
    def work(k):
        confined = os.sched_getaffinity(0)
        crew.roam()
        return confined, os.sched_getaffinity(0)

    cores = os.sched_getaffinity(0)
    (mine, then), (theirs, free) = together(work, 2, lambda: None)
    assert mine == then == free == cores != theirs


def test_a_ctrl_c_at_any_call_loses_no_helper(monkeypatch):
    """It shows where a call ends: after the lock is taken note of, or the task handed over."""

    class Taken(list):
        def append(self, lock):
            super().append(lock)
            raise KeyboardInterrupt

    class Inbox:
        def __init__(self, inbox):
            self.inbox = inbox

        def put(self, task):
            self.inbox.put(task)
            raise KeyboardInterrupt

    fresh = crew.Crew()
    monkeypatch.setattr(crew, "_crew", fresh)
    ran, taken = threading.Event(), Taken()
    with pytest.raises(KeyboardInterrupt):
        crew.send([ran.set], taken)
    assert not taken and len(fresh._resting) == 1 and not ran.is_set()
    helper, noted = fresh._resting[0], []
    inbox, helper.inbox = helper.inbox, Inbox(helper.inbox)
    with pytest.raises(KeyboardInterrupt):
        crew.send([ran.set], noted)
    helper.inbox = inbox
    crew.wait(noted)
    assert len(noted) == 1 and ran.is_set()
    assert fresh._resting == [helper]


def test_a_helper_that_wakes_up_late_is_not_waited_for(monkeypatch):
    awake = threading.Event()

    class Late(queue.SimpleQueue):
        def get(self):
            task = super().get()
            awake.wait(60.0)
            return task

    fresh, asked = crew.Crew(), []
    monkeypatch.setattr(crew, "_crew", fresh)
    monkeypatch.setattr(crew, "SimpleQueue", Late)
    monkeypatch.setattr("pegasos.core.threads.available", lambda: 2)
    with use_threads(2):
        for _ in range(3):
            assert run_blocks(lambda s, e: asked.append(s) or s, 6, 2) == [0, 2, 4]
    assert asked == 3 * [0, 2, 4] and fresh._size == 1 and not fresh._resting
    awake.set()
    for _ in range(6000):
        if fresh._resting:
            break
        time.sleep(0.01)
    assert len(fresh._resting) == 1 and len(asked) == 9  # what was taken back is not done


def _in_child(answer):
    with use_threads(2):
        answer.put(run_blocks(lambda s, e: s, 6, 2))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_helpers_after_a_fork():
    """Threads do not survive it: the child hires its own."""
    import multiprocessing

    with use_threads(2):
        assert run_blocks(lambda s, e: s, 6, 2) == [0, 2, 4]
    context = multiprocessing.get_context("fork")
    answer = context.Queue()
    child = context.Process(target=_in_child, args=(answer,))
    child.start()
    assert answer.get(timeout=30) == [0, 2, 4]
    child.join()
