"""Newton steps among the free variables of a working set.

Problem:   max over d of -f'd - 1/2 d'K d on the free variables F, sum d = 0 if the offset is free
Update:    d from the Cholesky factor of K_FF (with a ridge, for K may be singular); who would leave
           the box goes to its bound, and the others are solved for again; then beta += t d with the
           best t <= 1
Stopping:  nobody leaves the box any more, or a few factors

Pairs need many steps where K_FF is ill-conditioned, as it is for large C. A step never lowers the
dual value, since t is the best along d.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from pegasos.solvers.smo import BIG, Board

_MOST = 4096  # free variables: the time of a factor grows with their cube
_FACTORS = 6
_RIDGE = {4: 4e-6, 8: 1e-12}  # of the largest K_ii: what rounding of its values leaves


def free_step(board: Board, balanced: bool) -> bool:
    """Move the free variables of a board together; `balanced`: sum beta stays. Whether it did."""
    m = len(board.beta)
    K = board.K.reshape(len(board.K), -1)[:m, :m]
    up, down = board.up.reshape(-1), board.down.reshape(-1)
    free = np.flatnonzero((board.beta > board.low) & (board.beta < board.high))
    if not 2 <= free.size <= _MOST:
        return False
    f = np.where(up < BIG, up, down).astype(np.float64)
    beta, low, high = board.beta[free], board.low[free], board.high[free]
    A = K[np.ix_(free, free)].astype(np.float64)
    d = _direction(A, f[free], (low - beta, high - beta), balanced, _RIDGE[K.dtype.itemsize])
    if d is None:
        return False
    slope, bend = -float(f[free] @ d), float(d @ (A @ d))
    if not slope > 0.0:
        return False
    t = 1.0 if bend <= slope else slope / bend
    new = np.clip(beta + t * d, low, high)
    board.beta[free] = new
    f += K[:, free] @ (new - beta).astype(K.dtype)
    up[:] = np.where(board.beta < board.high, f, BIG)
    down[:] = np.where(board.beta > board.low, f, -BIG)
    return True


def _direction(A: np.ndarray, f: np.ndarray, room: Any, balanced: bool, ridge: float) -> Any:
    """The step to the optimum, as far as the bounds of `room` that it meets are guessed right;
    None if there is none."""
    d, inside = np.zeros(len(f)), np.ones(len(f), dtype=bool)
    for _ in range(_FACTORS):
        there = np.flatnonzero(inside)
        if there.size < 2:
            break
        rest = f[there] + A[np.ix_(there, np.flatnonzero(~inside))] @ d[~inside]
        total = -float(d[~inside].sum()) if balanced else None
        found = _solved(A[np.ix_(there, there)], -rest, total, ridge)
        if found is None:
            return None
        d[there] = found
        within = (d >= room[0]) & (d <= room[1])
        if within[there].all():
            return d
        d = np.clip(d, *room)
        inside &= within
    return _rebalanced(d, room) if balanced else d


def _solved(A: np.ndarray, right: np.ndarray, total: float | None, ridge: float) -> Any:
    """x of A x = right, with sum x = total if that is given."""
    A[np.diag_indices_from(A)] += ridge * np.abs(A.diagonal()).max()
    try:
        factor = cho_factor(A, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return None
    x = cho_solve(factor, right, check_finite=False)
    if total is not None:
        u = cho_solve(factor, np.ones(len(x)), check_finite=False)
        x += (total - x.sum()) / u.sum() * u
    return x if np.isfinite(x).all() else None


def _rebalanced(d: np.ndarray, room: Any) -> Any:
    """d with sum 0: the side that weighs more is scaled down, which leaves it within the room."""
    plus, minus = float(d[d > 0.0].sum()), -float(d[d < 0.0].sum())
    if not min(plus, minus) > 0.0:
        return None
    return np.where(d > 0.0, d * min(1.0, minus / plus), d * min(1.0, plus / minus))
