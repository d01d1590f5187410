"""The state of dual coordinate descent (`solvers.dual`), and what it tells."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pegasos.solvers.excerpt import Excerpt
from pegasos.solvers.moves import Moves
from pegasos.solvers.steps import Place, Tally

_FAST = 0.55  # at the end of an epoch, the root of a fall from one to the next


class DualState(NamedTuple):
    """alpha and w, the rows order[:active] of the epoch, the place in it, what it has summed.

    `listed` has the same rows as they lie in memory, `stays` marks those of the next epoch; `aside`
    is the loss of the others, as it was when they left, `mark` the estimate at which they are
    looked at; `still` says that nothing has moved since the last exact evaluation; `visits` counts
    steps on rows; `gain` is what the dual gained by steps since the last move was closed; `summed`
    are the terms of the last whole epoch; k and r are those of `bend`, `weight` is the mean of
    c_i ||x_i||^2, `noise` that of `solvers.steps.foreseen` in the first epoch; `shared`: threads
    share the epoch at hand, with each of the `quarrels` half as many. Where there is an `excerpt`,
    arrays are of its rows and columns (see `solvers.excerpt`).
    """

    alpha: np.ndarray
    w: np.ndarray
    order: np.ndarray
    listed: np.ndarray
    stays: np.ndarray
    rng: np.ndarray
    active: int
    cursor: int
    radius: float
    terms: float
    losses: float
    aside: float
    mark: float
    gain: float
    moves: int
    quarrels: int
    visits: int
    summed: float
    estimate: float
    objective: float
    epoch: int
    still: bool
    exhausted: bool
    past: Moves | None
    k: float
    r: float
    weight: float
    noise: float
    shared: bool = False
    excerpt: Excerpt | np.ndarray | None = None

    @property
    def n(self) -> int:
        """The number of all rows."""
        return len(self.excerpt.alpha if isinstance(self.excerpt, Excerpt) else self.order)

    @property
    def left_out(self) -> tuple[float, float]:
        """||w||^2 and ||w - w0||^2 on columns that the arrays leave out."""
        part = self.excerpt
        return (part.size, part.away) if isinstance(part, Excerpt) else (0.0, 0.0)

    @property
    def passes(self) -> float:
        """The work done, in passes over all rows."""
        return self.visits / self.n

    def plus(self, steps: int, tally: Tally) -> DualState:
        """After so many steps."""
        added = {name: getattr(self, name) + x for name, x in tally._asdict().items()}
        return self._replace(cursor=self.cursor + steps, visits=self.visits + steps, **added)


def falls_fast(state: DualState) -> bool:
    """Whether the gap fell far in the last epoch."""
    return state.summed > 0.0 and state.estimate <= _FAST * state.summed


def is_vague(state: DualState) -> bool:
    """Whether terms say little: they are of margins that were foreseen, or fall since then; or of
    those at which several threads took the gap further down than they know."""
    return (state.noise < 1.0 and state.epoch < 2) or (state.shared and falls_fast(state))


def place_of(state: DualState) -> Place:
    where = state.alpha, state.w, state.order, state.stays
    noise = state.noise if state.epoch == 0 else 1.0
    return Place(*where, state.radius, state.k, state.r, state.weight, noise)
