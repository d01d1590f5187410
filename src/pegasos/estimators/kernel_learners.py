"""Who learns a kernel classifier row by row: one that counts (and may drop), one that merges, one
that keeps its support vectors where they are.

batch                              rows that are best learnt at once
learn(rows, index, y, weight)      a step on each of rows[index], in that order
answer(average)                    support vectors, their coefficients, offsets
origin                             points like which new rows are made ready
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from scipy.linalg import block_diag

from pegasos.core.rows import n_columns
from pegasos.objective.kernel_points import Points, joined, n_points, take, without_matrix
from pegasos.solvers import kernel_merge, kernel_pegasos, kernel_project
from pegasos.solvers.kernel_pegasos import Draws, Rule, answer, no_counts

Answer = tuple[Points, np.ndarray, np.ndarray]


class Learner(Protocol):
    kernel: Any
    rule: Rule
    batch: int

    @property
    def origin(self) -> Points: ...
    @property
    def t(self) -> int: ...
    def learn(self, rows: Points, index: Any, y: np.ndarray, weight: np.ndarray) -> None: ...
    def answer(self, average: bool) -> Answer: ...
    def increments(self) -> list[tuple[Points, np.ndarray, float]]: ...


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

    def increments(self) -> list[tuple[Points, np.ndarray, float]]:
        found = []
        for coef, offset in zip(self.counts.coef.T, self.counts.offset[0], strict=True):
            used = np.flatnonzero(coef)
            found.append((take(self.held, used), coef[used], float(offset)))
        return found

    def answer(self, average: bool) -> Answer:
        coef = self.coefficients(average)
        used = np.flatnonzero(coef.any(axis=1))
        made, late = self.counts.offset
        sums = answer(made, late, self.t, self.rule.lam, average)
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

    def increments(self) -> list[tuple[Points, np.ndarray, float]]:
        return [
            (kernel_merge.support(held, self.center), held.coef[: held.tally[0]], held.offset[0])
            for held in self.sets
        ]

    def answer(self, average: bool) -> Answer:
        lam, t = self.rule.lam, self.t
        parts = [
            (vectors, answer(coef, 0.0, t, lam, False), answer(offset, 0.0, t, lam, False))
            for vectors, coef, offset in self.increments()
        ]
        return _side_by_side(parts, self.rule)


class Projecting:
    """Support vectors that stay, a set for each problem: what another learner has at that time."""

    batch = kernel_pegasos.BATCH

    def __init__(self, learner: Learner):
        self.kernel, self.rule, self.origin = learner.kernel, learner.rule, learner.origin
        self.sets = [
            kernel_project.basis(self.kernel, vectors, coef, offset, learner.t)
            for vectors, coef, offset in learner.increments()
        ]

    @property
    def t(self) -> int:
        return self.sets[0].t

    def learn(self, rows: Points, index: Any, y: np.ndarray, weight: np.ndarray) -> None:
        new = take(rows, index)
        self.sets = [
            kernel_project.learn_projected(self.kernel, held, new, y[:, p], weight, self.rule)
            for p, held in enumerate(self.sets)
        ]

    def increments(self) -> list[tuple[Points, np.ndarray, float]]:
        return [(held.points, held.coef, held.offset[0, 0]) for held in self.sets]

    def answer(self, average: bool) -> Answer:
        lam = self.rule.lam
        parts = [
            (
                held.points,
                answer(held.coef, held.late, held.t, lam, average, held.since),
                answer(held.offset[0, 0], held.offset[1, 0], held.t, lam, average, held.since),
            )
            for held in self.sets
        ]
        return _side_by_side(parts, self.rule)


def _side_by_side(parts: list[tuple[Points, np.ndarray, float]], rule: Rule) -> Answer:
    """Support vectors of several problems, each of one of them only."""
    vectors, sums = parts[0][0], np.array([offset for _, _, offset in parts])
    for own, _, _ in parts[1:]:
        vectors = joined(vectors, own)
    coef = block_diag(*(coef[:, None] for _, coef, _ in parts))
    return without_matrix(vectors), coef, rule.constant * sums
