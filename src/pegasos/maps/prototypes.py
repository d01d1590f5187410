"""Prototypes of a Nyström map: which m points stand for all.

entropy   the quadratic Renyi entropy -log(1/m^2 sum_ij K(z_i, z_j)) raised by swaps: a random
          candidate takes the place of the prototype whose going lowers the sum most, if it does.
          Sums over the rows of the m x m matrix are kept, so that a trial costs O(m) (Suykens et
          al. 2002, chapter 6; Jumutc, Huang, Suykens 2013, Algorithm 2)
kmeans    centres of k-means, in the storage of the rows (Zhang, Tsang, Kwok 2008)
leverage  rows drawn by approximate ridge leverage, 1/rho (K(x, x) - k(x)' (K + rho I)^-1 k(x)),
          with random rows behind K and k (Musco and Musco 2017); rho is raised where K has
          negative eigenvalues
random    rows drawn at random; the set with which entropy begins
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigvalsh

from pegasos.core.deadline import is_over
from pegasos.core.jit import hot
from pegasos.core.matrix import sqnorms
from pegasos.core.rows import CsrRows, DenseRows
from pegasos.core.threads import run_blocks
from pegasos.data.check import as_matrix, as_rows
from pegasos.objective.kernel_blocks import block, diagonal, precise
from pegasos.objective.kernel_points import Points, n_points, take
from pegasos.solvers.k_means import k_means

_BATCH = 256  # candidates whose kernel values are computed together


class Chosen(NamedTuple):
    """Prototypes, and which of the points they are (empty: they are none of them)."""

    prototypes: Points
    rows: np.ndarray


def renyi_entropy(kernel: Any, prototypes: Points) -> float:
    """-log of the mean of K(z_i, z_j), in float64; infinite if it is not above zero."""
    mean = float(precise(kernel, prototypes, prototypes).mean())
    return -float(np.log(mean)) if mean > 0.0 else np.inf


def by_random(kernel: Any, points: Points, m: int, rng: np.random.Generator) -> Chosen:
    index = rng.permutation(n_points(points))[:m]
    return Chosen(take(points, index), index)


def by_entropy(kernel: Any, points: Points, m: int, rng: np.random.Generator) -> Chosen:
    order = rng.permutation(n_points(points))
    index, others = order[:m].copy(), order[m:]
    K = block(kernel, take(points, index), take(points, index))
    sums = K.sum(axis=1, dtype=np.float64)
    for s in range(0, len(others), _BATCH):
        if is_over():
            break
        names = others[s : s + _BATCH]
        batch = take(points, names)
        towards = block(kernel, batch, take(points, index))
        _swap(K, sums, towards, block(kernel, batch, batch), names, index)
    return Chosen(take(points, index), index)


@hot
def _swap(K, sums, towards, among, names, index):
    """Candidates enter where that lowers sum_ij K_ij.

    K: of the prototypes, `sums` over its rows; `towards`: of candidates and prototypes, `among`: of
    candidates. Without prototype t and with candidate b the sum changes by
    -2 sums_t + K_tt + 2 (sum_j towards_bj - towards_bt) + among_bb.
    """
    m = K.shape[0]
    for b in range(names.shape[0]):
        line = towards[b]
        total = 0.0
        for j in range(m):
            total += line[j]
        t, least = 0, np.inf
        for j in range(m):
            change = K[j, j] - 2.0 * (sums[j] + line[j])
            if change < least:
                t, least = j, change
        if not least + 2.0 * total + among[b, b] < 0.0:
            continue
        for j in range(m):
            sums[j] += np.float64(line[j]) - np.float64(K[t, j])
            K[t, j] = line[j]
            K[j, t] = line[j]
        K[t, t] = among[b, b]
        sums[t] = total - line[t] + among[b, b]
        index[t] = names[b]
        for c in range(b + 1, names.shape[0]):
            towards[c, t] = among[c, b]


def by_kmeans(kernel: Any, points: Points, m: int, rng: np.random.Generator) -> Chosen:
    if not isinstance(points.rows, DenseRows | CsrRows):
        raise ValueError("prototypes='kmeans' is for rows of numbers; use 'random' or 'entropy'")
    rows = as_rows(k_means(as_matrix(points.rows), m, rng))
    return Chosen(Points(rows, sqnorms(rows), points.center), np.arange(0))


def by_leverage(kernel: Any, points: Points, m: int, rng: np.random.Generator) -> Chosen:
    n = n_points(points)
    some = take(points, rng.permutation(n)[:m])
    K = precise(kernel, some, some)
    values = eigvalsh(K, check_finite=False)
    least = 1e-10 * float(abs(values).max()) + 1e-300
    rho = max(float(np.median(values)), least) - min(float(values[0]), 0.0)
    K[np.diag_indices_from(K)] += rho
    lower = cho_factor(K, lower=True, check_finite=False)
    own, leverage = diagonal(kernel, points), np.empty(n)

    def part(start: int, stop: int) -> None:
        k = block(kernel, take(points, slice(start, stop)), some).astype(np.float64)
        explained = np.einsum("ij,ji->i", k, cho_solve(lower, k.T, check_finite=False))
        leverage[start:stop] = own[start:stop] - explained

    run_blocks(part, n, max(64, (1 << 19) // m))
    leverage = np.maximum(leverage, 1e-6 * abs(own).max() + 1e-300)
    index = rng.choice(n, m, replace=False, p=leverage / leverage.sum())
    return Chosen(take(points, index), index)


SELECTIONS = {
    "entropy": by_entropy,
    "random": by_random,
    "kmeans": by_kmeans,
    "leverage": by_leverage,
}
