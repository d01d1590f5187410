"""A place where threads inside hot loops wait for each other: 0.1 us when all are awake.

Waking a sleeping thread costs a thousand times that, so who waits stays awake, and lets others
have the core now and then. In compiled loops `arrive`, `arrived`, `relax` and `pause` are
instructions and a system call; see `core.llvm`.
"""

from __future__ import annotations

import threading
import time

import numpy as np

from pegasos.core.dispatch import helper

_lock = threading.Lock()


def gate() -> np.ndarray:
    """A new meeting place: the number of arrivals, and whether it is closed."""
    return np.zeros(2, dtype=np.int64)


def close(gate: np.ndarray) -> None:
    """Nobody waits any more: somebody will not come."""
    gate[1] = 1


def arrive(gate: np.ndarray) -> int:
    """Count an arrival; returns how many came before."""
    with _lock:
        gate[0] += 1
        return int(gate[0]) - 1


def arrived(gate: np.ndarray, index: int) -> int:
    """gate[index] as other threads left it."""
    return int(gate[index])


def relax() -> None:
    """Tell the processor that this thread waits: a virtual one may be given to who works."""


def pause() -> None:
    """Let another thread have the core."""
    time.sleep(0)


@helper
def meet(gate, n):
    """Wait until n threads have come, or the gate is closed; what they wrote is then seen."""
    until = (arrive(gate) // n + 1) * n
    tries = 0
    while arrived(gate, 0) < until and arrived(gate, 1) == 0:
        tries += 1
        relax()
        if tries % 256 == 0:
            pause()
