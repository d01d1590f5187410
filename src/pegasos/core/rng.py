"""A counter-based random generator whose state is an array: [key, counter].

Draw number n is a hash of (key, n) (the finaliser of SplitMix64), so a stream is reproducible,
resumable from its two numbers, and independent of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pegasos.core.dispatch import helper
from pegasos.core.jit import hot

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)
_GROUPS = 512  # of neighbouring rows, at least
_S30, _S27, _S31, _S11, _ONE = (np.uint64(k) for k in (30, 27, 31, 11, 1))


def stream(seed: int) -> np.ndarray:
    """The state of a new generator."""
    return np.array([seed, 0], dtype=np.uint64)


@helper
def bits_of(key: Any, n: Any) -> Any:
    """The 64 bits of draw number n, which no other has; in Python n may be an array."""
    x = key + n * _GOLDEN
    x = (x ^ (x >> _S30)) * _MIX1
    x = (x ^ (x >> _S27)) * _MIX2
    return x ^ (x >> _S31)


@helper
def uniform(rng: np.ndarray) -> float:
    """The next number in [0, 1), with 53 random bits."""
    rng[1] += _ONE
    return np.float64(bits_of(rng[0], rng[1]) >> _S11) * 2.0**-53


@helper
def permute(items: np.ndarray, n: int, rng: np.ndarray) -> None:
    """Permute items[:n] in place (Fisher-Yates)."""
    for s in range(n - 1):
        j = s + np.int64(uniform(rng) * (n - s))
        items[s], items[j] = items[j], items[s]


@hot
def shuffle(items: np.ndarray, n: int, rng: np.ndarray) -> None:
    """`permute` for callers in Python."""
    permute(items, n, rng)


@helper
def _draw(groups: np.ndarray, room: np.ndarray, dealt: tuple, rng: np.ndarray) -> None:
    """The numbers of all groups in a random order; `dealt`: whether, and for whom (see `deal`)."""
    split, (hands, parts) = dealt
    many = groups.shape[0]
    each = many // hands if split else many
    order = room[:each] if split and hands > 1 else groups
    for g in range(each):
        order[g] = g
    permute(order, each, rng)
    if not split or hands == 1:
        return
    at = 0
    for p in range(parts):
        for k in range(hands):
            for b in range(p * each // parts, (p + 1) * each // parts):
                groups[at] = order[b] * hands + (k + b) % hands
                at += 1
    for g in range(at, many):
        groups[g] = g


@helper
def deal(rows: np.ndarray, n: int, stays: np.ndarray, out: np.ndarray, pace: tuple) -> int:
    """Leave of rows[:n] those i with stays[i], and write them to out in a random order; returns
    their number.

    With pace = (near, rng, hands), groups of up to `near` neighbours come in any order, one row of
    each of four groups in turns, all forwards or all backwards: memory is read in four streams, and
    yet a stretch of rows is one of several places. Of few rows groups are smaller, so that there
    are always many; groups of one are any permutation. hands = (K, parts): each of so many parts is
    for K threads, of which each has one of K neighbouring groups, so that all have the like.
    """
    near, rng, hands = pace
    left = 0
    for s in range(n):
        i = rows[s]
        rows[left] = i
        left += stays[i] != 0
    near = max(1, min(near, left // _GROUPS))
    many = (left + near - 1) // near
    groups = out[left - many : left]  # what comes to stand there has been read by then
    _draw(groups, out, (near > 1, hands), rng)
    count, last = 0, many - 1
    for g in range(0, many, 4):
        h, k, m = min(g + 1, last), min(g + 2, last), min(g + 3, last)
        four = groups[g], groups[h], groups[k], groups[m]
        backwards = near > 1 and uniform(rng) < 0.5
        for t in range(near):
            for place in range(min(4, many - g)):
                s = four[place] * near + (near - 1 - t if backwards else t)
                if s < left:
                    out[count] = rows[s]
                    count += 1
    return left


@hot
def arrange(rows: np.ndarray, n: int, stays: np.ndarray, out: np.ndarray, pace: tuple) -> int:
    """`deal` for callers in Python."""
    return deal(rows, n, stays, out, pace)
