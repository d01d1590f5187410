"""Numbers and names given by users: checked once, with messages that say what would work."""

from __future__ import annotations

import functools
import math
from numbers import Integral, Real
from typing import Any

import numpy as np

from pegasos.core.threads import available


def positive(name: str, value: Any, zero: bool = False) -> float:
    """A finite number above (or from) zero."""
    kind = "a number >= 0" if zero else "a number > 0"
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise TypeError(f"{name} must be {kind}, got {value!r}")
    if not math.isfinite(value) or value < 0 or (value == 0 and not zero):
        raise ValueError(f"{name} must be finite and {kind}, got {value!r}")
    return float(value)


def count(name: str, value: Any) -> int:
    """An integer from 1."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer >= 1, got {value!r}")
    if value < 1:
        raise ValueError(f"{name} must be an integer >= 1, got {value!r}")
    return int(value)


def one_of(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """A string from a list."""
    if not isinstance(value, str) or value not in allowed:
        listed = ", ".join(repr(a) for a in allowed)
        raise ValueError(f"{name} must be one of {listed}, got {value!r}")
    return value


def threads_of(n_threads: Any) -> int:
    """Number of threads; None or -1 means all cores."""
    if n_threads is None or n_threads == -1:
        return available()
    return count("n_threads", n_threads)


def seed_of(random_state: Any) -> int:
    """A seed, drawn from what scikit-learn accepts: None, an integer or a RandomState."""
    if type(random_state) is int:
        return _seed_from(random_state)
    return _drawn(random_state)


@functools.lru_cache(maxsize=64)
def _seed_from(number: int) -> int:
    """To set up a generator for one number takes as long as an epoch over a small table."""
    return _drawn(number)


def _drawn(random_state: Any) -> int:
    from sklearn.utils import check_random_state  # here: others of this room start without it

    return int(check_random_state(random_state).randint(2**31 - 1))
