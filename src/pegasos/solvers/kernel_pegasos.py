"""Kernelised Pegasos: how often was a row met with a margin below 1?

Problem:   min_f lam/2 ||f||^2 + sum_i (c_i / sum c) max(0, 1 - y_i f(x_i)),  lam = 1 / sum c,
           which is P / sum(c) of `objective.problem`, for f in the space of a kernel
Update:    step t draws a row j; if y_j f_t(x_j) < 1, beta_j grows by 1 (by its weight r_j, where
           rows are not drawn in proportion to their weights)
           f_t = 1/(lam (t - 1)) sum_i beta_i y_i K(x_i, .), which is 0 at t = 1
Answer:    f_{T+1}, alpha_i = beta_i / (lam T); or the average of f_{k+1} with weights k, in which
           an increment made at step k weighs 2 (T + 1 - k) / (lam T (T + 1))
Offset:    K + 1 in place of K: b is the sum of all increments
Dual:      alpha, put into its box 0..c_i, gives the lower bound of the certificate
Budget:    of more than B rows with beta > 0 the one with the smallest beta_i sqrt(K(x_i, x_i)) is
           dropped, of several the one met first (merging: see `solvers.kernel_merge`)

Rows are drawn ahead, many at a time: their scores by what was learnt before come from blocks of the
kernel, and what they change among themselves from a small matrix of their own. Answers are those of
one row after the other. Several problems (classes) on the same rows share the blocks.

Shalev-Shwartz, Singer, Srebro, Cotter 2011, Figure 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from pegasos.core.jit import hot_allocating
from pegasos.objective.certificate import Certificate
from pegasos.objective.kernel_blocks import block, diagonal
from pegasos.objective.kernel_points import Points, joined, n_points, take
from pegasos.objective.kernel_sums import kernel_sums

BATCH = 256  # rows drawn ahead


class Rule(NamedTuple):
    """lam, the constant added to K (0 or 1), and how many rows may be kept (0: all)."""

    lam: float
    constant: float
    budget: int


class Counts(NamedTuple):
    """Of P problems on n points: beta_i y_i, the same with each increment times its step, and the
    sums over all increments of either; steps taken."""

    coef: np.ndarray
    late: np.ndarray
    offset: np.ndarray
    t: int


class Draws(NamedTuple):
    """Rows in the order of their steps, by index into the points; labels (of each draw and
    problem), weights of increments."""

    index: np.ndarray  # type: ignore[assignment]
    y: np.ndarray
    weight: np.ndarray


def no_counts(n: int, n_problems: int) -> Counts:
    return Counts(
        np.zeros((n, n_problems)), np.zeros((n, n_problems)), np.zeros((2, n_problems)), 0
    )


def portions(draws: Draws, size: int) -> Iterator[Draws]:
    """The draws, a few at a time."""
    for s in range(0, len(draws.index), size):
        yield Draws(*(part[s : s + size] for part in draws))


def learn(kernel: Any, points: Points, counts: Counts, draws: Draws, rule: Rule) -> Counts:
    """A batch of steps on points that stay; no budget."""
    used = np.flatnonzero(counts.coef.any(axis=1))
    rows = take(points, draws.index)
    scores = _scores(kernel, rows, take(points, used), counts.coef[used])
    t = steps(
        scores,
        (block(kernel, rows, rows), np.zeros((0, 0), scores.dtype)),
        draws,
        (counts.coef, counts.late, counts.offset),
        np.zeros(0),
        rule,
        counts.t,
    )
    return counts._replace(t=int(t))


def learn_new(
    kernel: Any, held: Points, counts: Counts, rows: Points, draws: Draws, rule: Rule
) -> tuple[Points, Counts]:
    """A batch of steps on new rows, in their order; what is kept of held and new points."""
    n, m = n_points(held), n_points(rows)
    before = block(kernel, rows, held)
    scores = np.ascontiguousarray((before @ counts.coef.astype(before.dtype)).T, dtype=np.float64)
    near = block(kernel, rows, rows)
    pool = joined(held, rows)
    coef, late = (np.pad(part, ((0, m), (0, 0))) for part in (counts.coef, counts.late))
    norms = np.sqrt(np.maximum(diagonal(kernel, pool), 0.0)) if rule.budget else np.zeros(0)
    draws = draws._replace(index=np.arange(n, n + m))
    t = steps(
        scores, (near, np.hstack([before, near])), draws, (coef, late, counts.offset), norms, rule,
        counts.t,
    )  # fmt: skip
    kept = np.flatnonzero(coef.any(axis=1))
    return take(pool, kept), Counts(coef[kept], late[kept], counts.offset, int(t))


def _scores(kernel: Any, rows: Points, held: Points, coef: np.ndarray) -> np.ndarray:
    """sum_i beta_i y_i K(x_i, x_s) of the rows of a batch, a line for each problem."""
    return np.ascontiguousarray(kernel_sums(kernel, rows, held, coef).T)


@hot_allocating
def steps(scores, blocks, draws, counts, norms, rule, t):
    """`blocks`: the rows of the batch against each other, and, for a budget, against all points."""
    near, every = blocks
    coef, late, offset = counts
    n_problems, m = scores.shape
    for s in range(m):
        t += 1
        j, r = draws.index[s], draws.weight[s]
        for p in range(n_problems):
            y = draws.y[s, p]
            z = 0.0
            if t > 1:
                z = y * (scores[p, s] + rule.constant * offset[0, p]) / (rule.lam * (t - 1))
            if z < 1.0:
                a = r * y
                coef[j, p] += a
                late[j, p] += a * t
                offset[0, p] += a
                offset[1, p] += a * t
                for q in range(s + 1, m):
                    scores[p, q] += a * near[s, q]
                if rule.budget > 0 and np.count_nonzero(coef[:, p]) > rule.budget:
                    least, i = np.inf, 0
                    for k in range(coef.shape[0]):
                        size = abs(coef[k, p]) * norms[k]
                        if coef[k, p] != 0.0 and size < least:
                            least, i = size, k
                    for q in range(s + 1, m):
                        scores[p, q] -= coef[i, p] * every[q, i]
                    coef[i, p] = 0.0
                    late[i, p] = 0.0
    return t


def answer(part: Any, late: Any, t: int, lam: float, average: bool, since: int = 0) -> Any:
    """The coefficients of f from the increments and their steps; an average from `since` on."""
    if not average or t == since:
        return part / (lam * max(t, 1))
    weights = 0.5 * (t * (t + 1.0) - since * (since + 1.0))
    return ((t + 1.0) * part - late) / (lam * weights)


def certify(
    kernel: Any, points: Points, y: np.ndarray, c: np.ndarray, coef: np.ndarray, constant: float
) -> list[Certificate]:
    """Of each problem: P of f = sum_i coef_i K(x_i, .), D of y_i coef_i put into its box.

    y and coef have a column for each problem. The point of the box is moved towards 0 where that
    raises D.
    """
    used = np.flatnonzero(coef.any(axis=1))
    alpha = np.clip(y * coef, 0.0, c[:, None])
    both = np.hstack([coef, y * alpha])
    F = kernel_sums(kernel, points, take(points, used), both[used], exact=True)
    F += constant * both.sum(axis=0)
    norms = (both * F).sum(axis=0)
    P = coef.shape[1]
    losses = c @ np.maximum(0.0, 1.0 - y * F[:, :P])
    found = []
    for p in range(P):
        total, norm = float(alpha[:, p].sum()), float(norms[P + p])
        share = min(1.0, total / norm) if norm > 0.0 else 1.0
        primal = 0.5 * float(norms[p]) + float(losses[p])
        found.append(Certificate(primal, share * total - 0.5 * share * share * norm))
    return found
