"""A kernel machine: what prediction needs, and scores by blocks of matrix products.

Support vectors are stored once, ordered by class. Their coefficients are in LIBSVM's layout for
one-vs-one problems: row j - 1 (i < j) of the support vectors of class i, and row i of those of
class j, belong to the pair (i, j).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pegasos.objective.kernel_points import Points, points, take
from pegasos.objective.kernel_sums import kernel_sums


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
    rows = points(model.kernel, X, model.support)
    sums = []
    for chosen in (slice(*group) for group in groups):
        some, coef = take(model.support, chosen), model.coef[:, chosen].T
        sums.append(kernel_sums(model.kernel, rows, some, np.ascontiguousarray(coef)))
    if not model.pairs:
        return sums[0] + model.intercept
    return of_pairs(sums) + model.intercept


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
