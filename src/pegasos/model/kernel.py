"""A kernel machine: what prediction needs, and scores by blocks of matrix products.

Support vectors are stored once, ordered by class. Their coefficients are in LIBSVM's layout for
one-vs-one problems: row j - 1 (i < j) of the support vectors of class i, and row i of those of
class j, belong to the pair (i, j).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pegasos.model.pairs import couples
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


def are_of_pairs(coef: np.ndarray, n_classes: int) -> bool:
    """Whether coefficients are in the layout of pairs, which has a row less than classes."""
    return n_classes > 2 and len(coef) < n_classes


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
    return np.column_stack([sums[i][:, j - 1] + sums[j][:, i] for i, j in couples(len(sums))])
