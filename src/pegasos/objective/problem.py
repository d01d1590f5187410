"""The objective, in one place.

    P(w) = 1/2 ||w - w0||^2 + sum_i c_i l(y_i x_i.w),        c_i = C class_weight sample_weight_i

The last entry of w belongs to the virtual column of the rows (see `core.rows`): b = bias * w[-1].
Three readings of the intercept: none (bias = 0), penalised (bias = its scale, penalty as for the
other weights), free (`free` is True: the last entry carries no penalty).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pegasos.core.matrix import sqnorms
from pegasos.core.rows import n_columns
from pegasos.data.check import frozen
from pegasos.objective.losses import check_loss, domain

MAX_WEIGHT = 1e30  # of c_i ||x_i||^2: far beyond any use, far below overflow


class Problem(NamedTuple):
    """Rows, labels -1 and +1, weights c_i > 0, q_i = ||x_i||^2, loss, centre w0, reading of b."""

    rows: Any
    y: np.ndarray
    c: np.ndarray
    q: np.ndarray
    loss: Any
    center: np.ndarray
    free: bool


def C_from_lam(lam: float, total_weight: float) -> float:  # noqa: N802
    """lam/2 ||w||^2 + mean loss is P / (C N) with C = 1 / (lam N), N the sum of sample weights."""
    return 1.0 / (lam * total_weight)


def check_weight(c: np.ndarray, q: np.ndarray) -> None:
    """Overflow is refused here, so that no solver meets it."""
    if float(c @ q) < MAX_WEIGHT:  # then so is each
        return
    weight = float((c * q).max(initial=0.0))
    if not weight < MAX_WEIGHT:
        raise ValueError(
            f"C times the squared size of the data is {weight:.0e}, beyond {MAX_WEIGHT:.0e}: the "
            "penalty would be lost in rounding. Scale the features (StandardScaler) or lower C."
        )


def make_problem(rows, y, c, loss, center=None, free=False) -> Problem:
    """A checked problem."""
    if center is None:
        center = np.zeros(n_columns(rows) + 1)
    q = sqnorms(rows)
    check_weight(c, q)
    low, high = domain(check_loss(loss))
    if free and not low <= 0.0 <= high:
        raise ValueError(
            f"{type(loss).__name__} has slopes from {-high:g} to {-low:g}, never 0: a free "
            "intercept could lower it for ever; use intercept='penalised' or 'none'"
        )
    center = np.ascontiguousarray(center)  # as compiled loops take for granted
    return Problem(rows, frozen(y), frozen(c), q, check_loss(loss), center, bool(free))
