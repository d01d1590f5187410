"""When work should come to an end with what it has."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator
from contextvars import ContextVar

_end = ContextVar("end", default=math.inf)


@contextlib.contextmanager
def until(end: float) -> Iterator[None]:
    """Let the work inside end at this time of `time.perf_counter`, or earlier if that was asked."""
    token = _end.set(min(end, _end.get()))
    try:
        yield
    finally:
        _end.reset(token)


def is_over() -> bool:
    """Whether it is time to end."""
    return time.perf_counter() >= _end.get()
