"""Kernelised Pegasos among functions of given support vectors: what a budget needs to average.

Problem and update are those of `solvers.kernel_pegasos`, but f stays in the span of K(z_1, .), ...,
K(z_B, .): where beta_j would grow, the projection of K(x_j, .) onto the span is added instead, with
the coefficients G^-1 (K(z_b, x_j))_b, G the matrix of the z. So functions of different steps are
sums over the same z, and their average (with weights t) is one too. The last function on a budget
is a noisy one; an average of functions whose support vectors are merged on the way is worse still,
since an error made in merging is mended by later steps in the last function but in no average.

Wang, Crammer, Vucetic 2012 (projection); Shalev-Shwartz et al. 2011.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pegasos.objective.kernel_blocks import block, precise
from pegasos.objective.kernel_points import Points, n_points
from pegasos.solvers.kernel_pegasos import Draws, Rule, steps

_RIDGE = 1e-6  # of the mean of K(z, z): support vectors may be equal


class Basis(NamedTuple):
    """The z, G^-1, increments (see `Counts`), steps taken before and in all."""

    points: Points
    inverse: np.ndarray
    coef: np.ndarray
    late: np.ndarray
    offset: np.ndarray
    since: int
    t: int


def basis(kernel: Any, points: Points, coef: np.ndarray, offset: float, t: int) -> Basis:
    """Go on from what was learnt in t steps; the average begins with it."""
    G = precise(kernel, points, points)
    G[np.diag_indices_from(G)] += _RIDGE * max(1e-300, float(np.diagonal(G).mean()))
    coef, sums = coef.astype(np.float64), np.array([[offset], [(t + 1.0) * offset]])
    return Basis(points, np.linalg.inv(G), coef, (t + 1.0) * coef, sums, t, t)


def learn_projected(
    kernel: Any, held: Basis, rows: Points, y: np.ndarray, weight: np.ndarray, rule: Rule
) -> Basis:
    """A batch of steps on rows, in their order."""
    m = n_points(rows)
    values = block(kernel, rows, held.points).astype(np.float64, copy=False)
    shares = values @ held.inverse
    scores = np.ascontiguousarray((values @ held.coef)[None, :])
    made, late = np.zeros((m, 1)), np.zeros((m, 1))
    draws = Draws(np.arange(m), y[:, None], weight)
    rule = rule._replace(budget=0)
    blocks = np.ascontiguousarray(shares @ values.T), np.zeros((0, 0))
    t = steps(scores, blocks, draws, (made, late, held.offset), np.zeros(0), rule, held.t)
    return held._replace(
        coef=held.coef + made[:, 0] @ shares, late=held.late + late[:, 0] @ shares, t=int(t)
    )
