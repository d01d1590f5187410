"""A sample of the rows, on which Newton's methods begin."""

from __future__ import annotations

import numpy as np

from pegasos.core.cross import gathered
from pegasos.core.rows import n_columns, n_rows
from pegasos.data.check import frozen
from pegasos.objective.problem import Problem

SHARE = 8  # the sample is this part of the rows, but at least
PER_COLUMN = 16  # so many for each column


def stride(problem: Problem) -> int:
    """One of so many rows is enough; below 2 there is no sample."""
    n = n_rows(problem.rows)
    return n // max(1, n // SHARE, PER_COLUMN * n_columns(problem.rows))


def sampled(problem: Problem, every: int) -> Problem:
    """One row of each `every` that follow one another, drawn at random; weights scaled up."""
    first = np.arange(0, n_rows(problem.rows) - every + 1, every)
    chosen = first + np.random.default_rng(0).integers(0, every, first.size)
    y, c, q = (frozen(values[chosen]) for values in (problem.y, problem.c, problem.q))
    return problem._replace(rows=gathered(problem.rows, chosen), y=y, c=frozen(every * c), q=q)
