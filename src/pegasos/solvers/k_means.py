"""k-means: centres, each the mean of the rows nearest to it.

It begins with twice as many rows as centres are wanted, drawn in a few rounds in proportion to the
squared distance from those of the rounds before. Of these as many as wanted stay, drawn in the same
way almost one by one, each with the weight of the rows that it is nearest to (Arthur and
Vassilvitskii 2007; Bahmani et al. 2012). Distances are those of `objective.nearest`, so of arrays
between rows that were moved to their mean. When time is up (`core.deadline`), the rows that lack
are drawn at once, and one pass is the last.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from pegasos.core.deadline import is_over
from pegasos.objective.kernel_points import Points, n_points, take
from pegasos.objective.nearest import nearest, places

_ROUNDS = 8  # of draws from all rows
_TURNS = 512  # of draws from these, at most
_PASSES = 5
_ROUNDING = 1e-7  # of the squared norm: a distance that may be none


def k_means(X: Any, k: int, rng: Any) -> Any:
    """Up to k centres of the rows of an array or CSR matrix, no two of them equal, as X is."""
    rows = places(X)
    means = X[_spread_out(rows, k, rng)]
    for _ in range(_PASSES):
        means = _means(X, nearest(rows, places(means, rows))[0][:, 0])
        if is_over():
            break
    return means


def _spread_out(rows: Points, k: int, rng: Any) -> np.ndarray:
    """Which rows to begin with."""
    first = _drawn(rows, np.ones(n_points(rows)), 2 * k, -(-2 * k // _ROUNDS), rng)
    if is_over():
        return first[:k]
    some = take(rows, first)
    weight = np.bincount(nearest(rows, some)[0][:, 0], minlength=first.size)
    return first[_drawn(some, weight, k, -(-k // _TURNS), rng)]


def _drawn(rows: Points, weight: np.ndarray, k: int, each: int, rng: Any) -> np.ndarray:
    """Up to k rows, drawn `each` at a time by weight times squared distance from those before."""
    n, away = n_points(rows), np.full(n_points(rows), np.inf)
    index = new = rng.choice(n, 1, p=weight / weight.sum())
    while True:
        np.minimum(away, nearest(rows, take(rows, new))[1][:, 0], out=away)
        away[away <= _ROUNDING * rows.sqnorms] = 0.0
        away[new] = 0.0
        mass = weight * away
        lack = k - index.size
        more = min(lack if is_over() else each, lack, np.count_nonzero(mass))
        if more > 0:
            new = rng.choice(n, more, replace=False, p=mass / mass.sum())
            index = np.append(index, new)
        if more in (0, lack):
            return index


def _means(X: Any, label: np.ndarray) -> Any:
    """Of the rows with each label that occurs."""
    _, label, sizes = np.unique(label, return_inverse=True, return_counts=True)
    entries = (1.0 / sizes)[label], (label, np.arange(label.size))
    return (sp.csr_array(entries, shape=(sizes.size, label.size)) @ X).astype(X.dtype)
