"""Kernel machines in one form: hinge and pinball loss in signed dual variables.

    P(beta, b) = 1/2 beta'K beta + sum_i c_i l(y_i (s_i + b)),          s = K beta
    D(beta)    = p'beta - 1/2 beta'K beta,          low <= beta <= high, sum beta = 0 if b is free

with beta_i = y_i alpha_i, p = y and box y_i [-tau c_i, c_i] (tau = 0: hinge). The gradient of -D is
f = K beta - p. A penalised offset is the kernel K + 1, so here b is free or there is none.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pegasos.core.threads import run_blocks
from pegasos.data.check import frozen
from pegasos.objective.kernel_blocks import diagonal, precise
from pegasos.objective.kernel_points import Points, in_precision_of, n_points, take
from pegasos.objective.losses import Pinball
from pegasos.objective.problem import MAX_WEIGHT

_PIECE = 512  # points of a block of float64 values, 2 MB


class KernelProblem(NamedTuple):
    """`points` are as given, `fast` the same in float32; q_i = K(x_i, x_i)."""

    kernel: Any
    points: Points
    fast: Points
    y: np.ndarray
    c: np.ndarray
    p: np.ndarray
    low: np.ndarray
    high: np.ndarray
    q: np.ndarray
    loss: Pinball
    free: bool

    @property
    def center(self) -> np.ndarray:
        """Kernel machines are penalised from 0."""
        return np.zeros(1)


def make_kernel_problem(
    kernel: Any, points: Points, y: np.ndarray, c: np.ndarray, loss: Pinball, free: bool
) -> KernelProblem:
    """A checked problem."""
    if not isinstance(loss, Pinball):
        raise ValueError(
            f"kernel machines are for hinge and pinball loss, got {type(loss).__name__}: "
            "use LinearSVC on a map of the features"
        )
    q = diagonal(kernel, points)
    weight = float((c * np.abs(q)).max(initial=0.0))
    if not weight < MAX_WEIGHT:
        raise ValueError(
            f"C times the size of the kernel is {weight:.0e}, beyond {MAX_WEIGHT:.0e}: the "
            "penalty would be lost in rounding. Scale the features (StandardScaler) or lower C."
        )
    ends = np.stack([-loss.tau * c * y, c * y])
    low, high = ends.min(axis=0), ends.max(axis=0)
    fast = in_precision_of(points, np.float32)
    y = frozen(y)
    return KernelProblem(
        kernel, points, fast, y, frozen(c), y, frozen(low), frozen(high), q, loss, bool(free)
    )


def expand(kernel: Any, a: Points, b: Points, coef: np.ndarray) -> np.ndarray:
    """K(a, b) coef in float64, block by block."""
    columns = _pieces(b)
    out = np.zeros(n_points(a))

    def part(start: int, stop: int) -> None:
        rows = in_precision_of(take(a, slice(start, stop)), np.float64)
        for s, others in columns:
            K = precise(kernel, rows, others)
            out[start:stop] += K @ coef[s : s + K.shape[1]]

    run_blocks(part, out.size, _PIECE)
    return out


def expand_self(kernel: Any, a: Points, coef: np.ndarray) -> np.ndarray:
    """K(a, a) coef in float64, each pair computed once."""
    pieces = _pieces(a)

    def part(start: int, stop: int) -> np.ndarray:
        total = np.zeros(coef.size)
        for k in range(start, stop):
            s, rows = pieces[k]
            for t, others in pieces[k:]:
                K = precise(kernel, rows, others)
                total[s : s + len(K)] += K @ coef[t : t + K.shape[1]]
                if t > s:
                    total[t : t + K.shape[1]] += coef[s : s + len(K)] @ K
        return total

    return sum(run_blocks(part, len(pieces), 1), np.zeros(coef.size))


def _pieces(points: Points) -> list[tuple[int, Points]]:
    """Where each piece of the points begins, and the piece in float64."""
    n = n_points(points)
    starts = range(0, n, _PIECE)
    parts = [take(points, slice(s, min(s + _PIECE, n))) for s in starts]
    return [(s, in_precision_of(part, np.float64)) for s, part in zip(starts, parts, strict=True)]
