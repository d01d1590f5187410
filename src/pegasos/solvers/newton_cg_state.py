"""The state of the truncated Newton method (`solvers.newton_cg`)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pegasos.solvers.linalg import Factor
from pegasos.solvers.newton import Curvature
from pegasos.solvers.small import Room


class Response(NamedTuple):
    """At w: its scores X w, a, h, P(w), and the gap of w and `alpha`, which is a or foretold (inf:
    not known); g, if anybody has needed it."""

    w: np.ndarray
    scores: np.ndarray
    a: np.ndarray
    h: np.ndarray
    objective: float
    gap: float
    alpha: np.ndarray
    gradient: np.ndarray | None = None


class Direction(NamedTuple):
    """d, the residual g + H d, and the number of products with H."""

    d: np.ndarray
    rest: np.ndarray
    products: int


class Preconditioner(NamedTuple):
    """M: over `columns`, those that hold anything, by its factor; without one its diagonal.

    `curvature` is the Gram matrix behind it, from which the next one may begin.
    """

    columns: np.ndarray
    diagonal: np.ndarray
    factor: Factor | None
    curvature: Curvature | None = None


class NewtonCGState(NamedTuple):
    """w, the response there (None: not yet computed), M, iterations of the last step, all work."""

    w: np.ndarray
    at: Response | None
    M: Preconditioner | None
    last: float
    passes: float
    epoch: int
    exhausted: bool
    room: Room | None = None  # to work in, for one thread at a time: nothing is remembered

    @property
    def estimate(self) -> float:
        return np.inf if self.at is None else self.at.gap

    @property
    def objective(self) -> float:
        return np.inf if self.at is None else self.at.objective
