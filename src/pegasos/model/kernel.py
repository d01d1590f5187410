"""A kernel machine: what prediction needs, and scores by blocks of matrix products.

Support vectors are stored once, ordered by class. Their coefficients are in LIBSVM's layout for
one-vs-one problems: row j - 1 (i < j) of the support vectors of class i, and row i of those of
class j, belong to the pair (i, j).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pegasos.core.threads import run_blocks
from pegasos.objective.kernel_blocks import block, values_dtype
from pegasos.objective.kernel_points import Points, points, take

_ROWS, _COLUMNS = 256, 2048


class KernelModel(NamedTuple):
    """Support points, coefficients (a row per problem, or in LIBSVM's layout if `pairs`), how many
    of the support points are of each class, offsets."""

    kernel: Any
    support: Points
    coef: np.ndarray
    counts: np.ndarray
    intercept: np.ndarray
    pairs: bool


def scores_of(model: KernelModel, X: Any) -> np.ndarray:
    """Scores of rows, a column per problem."""
    sizes = model.counts if model.pairs else [model.coef.shape[1]]
    groups = [
        (int(end - size), int(end)) for end, size in zip(np.cumsum(sizes), sizes, strict=True)
    ]
    sums = [np.zeros((X.shape[0], len(model.coef))) for _ in groups]
    rows = points(model.kernel, X, model.support)
    for (first, last), total in zip(groups, sums, strict=True):
        for s in range(first, last, _COLUMNS):
            e = min(s + _COLUMNS, last)
            _add(model, rows, (s, e), total)
    if not model.pairs:
        return sums[0] + model.intercept
    return of_pairs(sums) + model.intercept


def _add(model: KernelModel, rows: Points, bounds: tuple[int, int], total: np.ndarray) -> None:
    """total += K(rows, support) coef' of some of the support points."""
    chosen = slice(*bounds)
    columns = take(model.support, chosen)
    coef = np.ascontiguousarray(model.coef[:, chosen].T, dtype=values_dtype(rows.rows))

    def part(start: int, stop: int) -> None:
        a = take(rows, slice(start, stop))
        total[start:stop] += block(model.kernel, a, columns) @ coef

    run_blocks(part, len(total), _ROWS)


def of_pairs(sums: list[np.ndarray]) -> np.ndarray:
    """Scores of the pairs from the sums over the support vectors of each class."""
    K = len(sums)
    pairs = [(i, j) for i in range(K) for j in range(i + 1, K)]
    return np.column_stack([sums[i][:, j - 1] + sums[j][:, i] for i, j in pairs])


def votes(scores: np.ndarray, n_classes: int) -> np.ndarray:
    """The number of the class that wins most pairs; of equals the first."""
    count = np.zeros((len(scores), n_classes), dtype=np.int64)
    k = 0
    for i in range(n_classes):
        for j in range(i + 1, n_classes):
            first = scores[:, k] > 0.0
            count[:, i] += first
            count[:, j] += ~first
            k += 1
    return count.argmax(axis=1)
