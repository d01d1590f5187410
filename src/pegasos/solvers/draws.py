"""Which rows a stochastic method meets, epoch after epoch.

A row of weight k is met as if it were there k times, to the draw: rows are drawn by their place in
an order that depends on what they hold, not on where they stand, so that equal rows stand together
and k copies are as good as one of weight k.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pegasos.core.dispatch import helper
from pegasos.core.rng import uniform

SAMPLINGS = ("replacement", "permuted", "order")


def epochs(
    digests: np.ndarray, label: np.ndarray, c: np.ndarray, sampling: str, seed: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows and the weights of their steps, for each epoch of as many steps as rows differ.

    `digests` tell rows apart (see `core.digest`). replacement: drawn in proportion to c, each with
    weight 1. permuted: each different row once, in a new random order; order: all rows as they
    stand; both with weights c over their mean.
    """
    n = len(c)
    if sampling == "order":
        while True:
            yield np.arange(n), c * (n / c.sum())
    order, first = _by_content(digests, label)
    ends = np.cumsum(c[order])
    rng = np.random.default_rng(seed)
    weight = np.diff(np.append(0.0, ends[np.append(first[1:], n) - 1]))
    weight *= len(first) / ends[-1]
    while True:
        if sampling == "replacement":
            place = np.searchsorted(ends, ends[-1] * rng.random(len(first)), side="right")
            yield order[np.minimum(place, n - 1)], np.ones(len(first))
        else:
            drawn = rng.permutation(len(first))
            yield order[first[drawn]], weight[drawn]


def _by_content(digests: np.ndarray, label: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """An order in which equal rows of one label stand together, and where each kind begins."""
    order = np.lexsort((label, digests))
    new = (np.diff(digests[order]) != 0) | (np.diff(label[order]) != 0)
    return order, np.flatnonzero(np.append(True, new))


@helper
def draw(order, rng, rule, place, n):
    """Where the rows of the next step stand in the order."""
    if rule.sampling != 0:
        return place
    for r in range(rule.k if rule.k < n else 0):
        j = r + np.int64(uniform(rng) * (n - r))
        order[r], order[j] = order[j], order[r]
    return 0
