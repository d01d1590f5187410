"""Kernelised Pegasos on a budget: two support vectors become one (Gaussian kernel).

Problem, update and answer are those of `solvers.kernel_pegasos`. When a row would be the B + 1st
support vector, the one with the smallest coefficient a and a partner with coefficient b of the same
sign are replaced by

    z = h x_a + (1 - h) x_b    with coefficient    a k^((1-h)^2) + b k^(h^2),   k = K(x_a, x_b),

the h that loses the least of f, and the partner with which the least is lost:
||a K(x_a,.) + b K(x_b,.) - c K(z,.)||^2. That loss, relative to (a + b)^2, is a function of
m = a/(a + b) and k alone: partners are compared by a table of it, h is found by a search. Without a
partner the smallest is dropped.

Time and memory of a row do not depend on how many came before it. The offset, the sum of all
increments, is kept apart and loses nothing.

Wang, Crammer, Vucetic 2012 (budgeted SGD); Glasmachers, Qaadan 2018 (the table).
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from pegasos.core.cross import written_out
from pegasos.core.dispatch import helper
from pegasos.core.elementary import exponential
from pegasos.core.jit import hot_allocating
from pegasos.core.rows import DenseRows
from pegasos.objective.kernel_blocks import block
from pegasos.objective.kernel_points import Points
from pegasos.solvers.kernel_pegasos import Rule

BATCH = 64  # rows drawn ahead; changes among the support vectors are told to each that waits
_GRID = 100
_GOLDEN = 0.6180339887498949


class Merged(NamedTuple):
    """Support vectors in the columns of `T`, their increments (see `Counts`), and the sums of all;
    tally: support vectors, steps."""

    T: np.ndarray
    coef: np.ndarray
    late: np.ndarray
    offset: np.ndarray
    tally: np.ndarray


def nothing_merged(budget: int, d: int, dtype: Any) -> Merged:
    T = np.zeros((d, budget + 1), dtype)
    return Merged(T, np.zeros(budget + 1), np.zeros(budget + 1), np.zeros(2), np.zeros(2, np.int64))


def support(held: Merged, center: np.ndarray) -> Points:
    """The support vectors as points."""
    values = np.ascontiguousarray(held.T[:, : held.tally[0]].T)
    sqnorms = np.einsum("ij,ij->i", values, values, dtype=np.float64)
    return Points(DenseRows(values, 0.0), sqnorms, center)


def learn_merging(
    kernel: Any, held: Merged, rows: Points, y: np.ndarray, weight: np.ndarray, rule: Rule
) -> Merged:
    """A batch of steps on rows, in their order; `held` is changed."""
    rows = rows._replace(rows=DenseRows(written_out(rows.rows), 0.0))
    known = support(held, rows.center)
    values = block(kernel, rows, known)
    scores = (values @ held.coef[: len(known.sqnorms)].astype(values.dtype)).astype(np.float64)
    gamma = held.T.dtype.type(kernel.gamma)
    batch = np.ascontiguousarray(rows.rows.values.T), block(kernel, rows, rows), scores
    _merging_steps(gamma, held, batch, y, weight, rule, _losses())
    return held


@hot_allocating
def _merging_steps(gamma, held, batch, y, weight, rule, table):
    X, near, scores = batch
    m = scores.shape[0]
    work = np.empty((3, max(held.coef.shape[0], m)), X.dtype)
    for s in range(m):
        held.tally[1] += 1
        t = held.tally[1]
        z = 0.0
        if t > 1:
            z = y[s] * (scores[s] + rule.constant * held.offset[0]) / (rule.lam * (t - 1))
        if z < 1.0:
            n, a = held.tally[0], weight[s] * y[s]
            for j in range(X.shape[0]):
                held.T[j, n] = X[j, s]
            held.coef[n], held.late[n] = a, a * t
            held.offset[0] += a
            held.offset[1] += a * t
            held.tally[0] = n + 1
            for q in range(s + 1, m):
                scores[q] += a * near[s, q]
            if n + 1 > rule.budget:
                _make_room(gamma, held, (X[:, s + 1 :], scores[s + 1 :]), table, work)


@helper
def _make_room(gamma, held, waiting, table, work):
    """One support vector less; the rows that wait are told."""
    n, coef, late = held.tally[0], held.coef, held.late
    i = np.argmin(np.abs(coef[:n]))
    k = work[0, :n]
    _values(gamma, held.T[:, :n], held.T[:, i], k)
    j = _partner(coef[:n], i, k, table)
    _tell(gamma, held.T[:, i], -coef[i], waiting, work)
    if j >= 0:
        _tell(gamma, held.T[:, j], -coef[j], waiting, work)
        near = np.float64(k[j])
        h = _place(coef[i], coef[j], near)
        to_i, to_j = near ** ((1.0 - h) * (1.0 - h)), near ** (h * h)
        for f in range(held.T.shape[0]):
            held.T[f, j] = h * held.T[f, i] + (1.0 - h) * held.T[f, j]
        coef[j] = coef[i] * to_i + coef[j] * to_j
        late[j] = late[i] * to_i + late[j] * to_j
        _tell(gamma, held.T[:, j], coef[j], waiting, work)
    coef[i], late[i] = coef[n - 1], late[n - 1]
    for f in range(held.T.shape[0]):
        held.T[f, i] = held.T[f, n - 1]
    held.tally[0] = n - 1


@helper
def _partner(coef, i, k, table):
    """With whom i should merge; -1 if no other has its sign."""
    least, j = np.inf, -1
    for q in range(coef.shape[0]):
        if q != i and coef[q] * coef[i] > 0.0:
            total = coef[i] + coef[q]
            loss = total * total * _looked_up(table, coef[i] / total, np.float64(k[q]))
            if loss < least:
                least, j = loss, q
    return j


@helper
def _looked_up(table, m, k):
    """Between the four entries around (m, k)."""
    size = table.shape[0] - 1
    x, y = m * size, min(max(k, 0.0), 1.0) * size
    a, b = min(np.int64(x), size - 1), min(np.int64(y), size - 1)
    u, v = x - a, y - b
    low = table[a, b] * (1.0 - v) + table[a, b + 1] * v
    high = table[a + 1, b] * (1.0 - v) + table[a + 1, b + 1] * v
    return low * (1.0 - u) + high * u


@helper
def _kept(m, k, h):
    return m * k ** ((1.0 - h) * (1.0 - h)) + (1.0 - m) * k ** (h * h)


@helper
def _place(a, b, k):
    """The best h: by golden section around the best of eleven (there may be two hills)."""
    m = a / (a + b)
    best = 0
    for s in range(1, 11):
        if _kept(m, k, 0.1 * s) > _kept(m, k, 0.1 * best):
            best = s
    low, high = max(0.0, 0.1 * best - 0.1), min(1.0, 0.1 * best + 0.1)
    for _ in range(24):
        third = _GOLDEN * (high - low)
        if _kept(m, k, high - third) > _kept(m, k, low + third):
            high = low + third
        else:
            low = high - third
    return 0.5 * (low + high)


@helper
def _tell(gamma, x, a, waiting, work):
    """The rows that wait gain a K(x, .)."""
    X, scores = waiting
    values = work[1, : scores.shape[0]]
    _values(gamma, X, x, values)
    for q in range(scores.shape[0]):
        scores[q] += a * values[q]


@helper
def _values(gamma, T, x, out):
    """out[q] = exp(-gamma ||x - t_q||^2) for the columns of T"""
    out[:] = 0.0
    for j in range(T.shape[0]):
        _add_squares(x[j], T[j], out)
    for q in range(out.shape[0]):
        out[q] = exponential(-gamma * out[q])


@helper
def _add_squares(x, line, out):
    for q in range(out.shape[0]):
        e = x - line[q]
        out[q] += e * e


@functools.cache
def _losses() -> np.ndarray:
    """What merging loses at best, for m and k on a grid; relative to (a + b)^2."""
    m, k, h = np.meshgrid(*(np.linspace(0.0, 1.0, _GRID + 1),) * 3, indexing="ij")
    kept = (m * k ** ((1.0 - h) ** 2) + (1.0 - m) * k ** (h**2)).max(axis=2)
    m, k = m[:, :, 0], k[:, :, 0]
    return np.maximum(0.0, m**2 + (1.0 - m) ** 2 + 2.0 * m * (1.0 - m) * k - kept**2)
