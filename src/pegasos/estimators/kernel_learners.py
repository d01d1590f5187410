"""Who learns a kernel classifier row by row: one that counts (and may drop), one that merges.

batch                              rows that are best learnt at once
learn(rows, index, y, weight)      a step on each of rows[index], in that order
answer(average)                    support vectors, their coefficients, offsets
origin                             points like which new rows are made ready
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from pegasos.core.rows import n_columns
from pegasos.objective.kernel_points import Points, joined, n_points, take, without_matrix
from pegasos.solvers import kernel_merge, kernel_pegasos
from pegasos.solvers.kernel_pegasos import Draws, Rule, answer, no_counts


class Learner(Protocol):
    kernel: Any
    rule: Rule
    batch: int
    origin: Points

    @property
    def t(self) -> int: ...
    def learn(self, rows: Points, index: Any, y: np.ndarray, weight: np.ndarray) -> None: ...
    def answer(self, average: bool) -> tuple[Points, np.ndarray, np.ndarray]: ...
    def coefficients(self, average: bool) -> np.ndarray: ...


def learner_of(kernel, rows, n_problems, rule, merges, stays=False) -> Learner:
    """`stays`: whether the same rows are drawn again and again."""
    if merges:
        return Merging(kernel, rows, n_problems, rule)
    return Counting(kernel, rows, n_problems, rule, stays and not rule.budget)


class Counting:
    """Counts of rows; of those that stay by their index, of others by themselves."""

    batch = kernel_pegasos.BATCH

    def __init__(self, kernel: Any, rows: Points, n_problems: int, rule: Rule, stays: bool):
        self.kernel, self.rule, self.stays = kernel, rule, stays
        self.held = rows if stays else take(rows, np.arange(0))
        self.counts = no_counts(n_points(self.held), n_problems)

    @property
    def origin(self) -> Points:
        return self.held

    @property
    def t(self) -> int:
        return self.counts.t

    def learn(self, rows: Points, index: Any, y: np.ndarray, weight: np.ndarray) -> None:
        draws = Draws(index, y, weight)
        if self.stays:
            self.counts = kernel_pegasos.learn(self.kernel, rows, self.counts, draws, self.rule)
            return
        new = take(rows, index)
        self.held, self.counts = kernel_pegasos.learn_new(
            self.kernel, self.held, self.counts, new, draws, self.rule
        )

    def coefficients(self, average: bool) -> np.ndarray:
        """Of all rows that stay."""
        coef, late, _, t = self.counts
        return answer(coef, late, t, self.rule.lam, average)

    def answer(self, average: bool) -> tuple[Points, np.ndarray, np.ndarray]:
        coef = self.coefficients(average)
        used = np.flatnonzero(coef.any(axis=1))
        sums = answer(*self.counts.offset, self.t, self.rule.lam, average)
        return without_matrix(take(self.held, used)), coef[used], self.rule.constant * sums


class Merging:
    """A set of merged support vectors for each problem."""

    batch = kernel_merge.BATCH

    def __init__(self, kernel: Any, rows: Points, n_problems: int, rule: Rule):
        self.kernel, self.rule = kernel, rule
        d, dtype = n_columns(rows.rows), rows.rows.values.dtype
        self.center = rows.center
        self.sets = [kernel_merge.nothing_merged(rule.budget, d, dtype) for _ in range(n_problems)]

    @property
    def origin(self) -> Points:
        return kernel_merge.support(self.sets[0], self.center)

    @property
    def t(self) -> int:
        return int(self.sets[0].tally[1])

    def learn(self, rows: Points, index: Any, y: np.ndarray, weight: np.ndarray) -> None:
        new = take(rows, index)
        for p, held in enumerate(self.sets):
            column = np.ascontiguousarray(y[:, p])
            kernel_merge.learn_merging(self.kernel, held, new, column, weight, self.rule)

    def coefficients(self, average: bool) -> np.ndarray:
        raise NotImplementedError("merged vectors are no rows")

    def answer(self, average: bool) -> tuple[Points, np.ndarray, np.ndarray]:
        lam, P = self.rule.lam, len(self.sets)
        sizes = [int(held.tally[0]) for held in self.sets]
        coef = np.zeros((sum(sizes), P))
        sums = np.zeros(P)
        vectors = None
        for p, held in enumerate(self.sets):
            n, first = sizes[p], sum(sizes[:p])
            coef[first : first + n, p] = answer(held.coef[:n], held.late[:n], self.t, lam, average)
            sums[p] = answer(*held.offset, self.t, lam, average)
            own = kernel_merge.support(held, self.center)
            vectors = own if vectors is None else joined(vectors, own)
        assert vectors is not None
        return vectors, coef, self.rule.constant * sums
