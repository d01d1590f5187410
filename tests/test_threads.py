"""Blocks on threads: in order, and nothing waits in a queue with what it holds."""

import threading
import weakref

import numpy as np
import pytest

from pegasos.core.threads import allowed, run_blocks, use_threads


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
