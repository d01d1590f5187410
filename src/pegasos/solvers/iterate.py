"""What the stochastic methods carry from step to step (see `solvers.subgradient`)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pegasos.core.rng import stream

NONE = np.zeros(0)


class Vectors(NamedTuple):
    """What steps write: v over columns; of v and past the coefficients over rows; order, lengths.

    On a stream there are no coefficients but past itself, over columns, and `scores`: w.x + b of
    the rows before their steps.
    """

    v: np.ndarray
    past: np.ndarray
    alpha: np.ndarray
    alpha_past: np.ndarray
    scores: np.ndarray
    order: np.ndarray
    rng: np.ndarray
    lengths: np.ndarray


class Scalars(NamedTuple):
    """scale, ||v||^2, b; held and mass of the average, its b; terms and losses of the epoch."""

    scale: float
    sqnorm: float
    b: float
    held: float
    mass: float
    b_sum: float
    terms: float
    losses: float


class SubgradientState(NamedTuple):
    """Vectors and scalars, X w0, steps taken, the place in the epoch.

    On a stream the vectors over rows are those of the batch at hand, and empty between batches.
    """

    vectors: Vectors
    scalars: Scalars
    base: np.ndarray
    t: int
    cursor: int
    estimate: float
    objective: float
    epoch: int
    exhausted: bool


def empty_state(d: int, seed: int) -> SubgradientState:
    """The state before the first row, for weights of length d."""
    rows = (NONE, NONE, NONE, np.arange(0))
    vectors = Vectors(np.zeros(d), np.zeros(d), *rows, stream(seed), np.full(1, np.inf))
    scalars = Scalars(1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    return SubgradientState(vectors, scalars, NONE, 0, 0, np.inf, np.inf, 0, False)
