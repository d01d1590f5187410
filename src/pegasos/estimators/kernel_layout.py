"""Between the binary problems of a kernel machine and scikit-learn's parameters and attributes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pegasos.estimators.parts import Part
from pegasos.model.pairs import couples


class Layout(NamedTuple):
    """Support vectors by class: their rows, how many of each class, coefficients, offsets."""

    support: np.ndarray
    counts: np.ndarray
    dual_coef: np.ndarray
    intercept: np.ndarray


def assembled(parts: list[Part], found: list[np.ndarray], label: np.ndarray, pairs: bool) -> Layout:
    """`found` holds (beta, b) per problem; `pairs`: they are one-vs-one (LIBSVM's layout)."""
    used = np.zeros(len(label), dtype=bool)
    for part, w in zip(parts, found, strict=True):
        used[part.rows[w[:-1] != 0.0]] = True
    support = np.flatnonzero(used)
    support = support[np.argsort(label[support], kind="stable")]
    n_classes = int(label.max()) + 1
    counts = np.bincount(label[support], minlength=n_classes)
    place = np.full(len(label), -1)
    place[support] = np.arange(support.size)
    dual_coef = np.zeros((n_classes - 1 if pairs else len(parts), support.size))
    ij = couples(n_classes)
    for k, (part, w) in enumerate(zip(parts, found, strict=True)):
        rows, beta = part.rows[used[part.rows]], w[:-1][used[part.rows]]
        if pairs:
            i, j = ij[k]
            line = np.where(label[rows] == i, j - 1, i)
        else:
            line = np.full(rows.size, k)
        dual_coef[line, place[rows]] = beta
    return Layout(support, counts, dual_coef, np.array([w[-1] for w in found]))


def linear_coef(layout: Layout, vectors, pairs: bool):
    """w of each problem for the linear kernel; `vectors` are the support vectors."""
    if not pairs:
        return np.asarray((vectors.T @ layout.dual_coef.T).T)
    ends = np.cumsum(layout.counts)
    of = [slice(e - c, e) for e, c in zip(ends, layout.counts, strict=True)]
    K = len(layout.counts)

    def product(coef: np.ndarray, rows: slice) -> np.ndarray:
        return np.asarray(vectors[rows].T @ coef[rows])

    return np.array(
        [
            product(layout.dual_coef[j - 1], of[i]) + product(layout.dual_coef[i], of[j])
            for i, j in couples(K)
        ]
    )
