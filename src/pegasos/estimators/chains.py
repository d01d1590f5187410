"""The order of fits that a sweep has left: along a path of C each begins where the last one ended.

Newton's method gains from it: w changes little from one value of C to the next, and alpha / c too.
Descent does not (docs/decisions/011).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pegasos.estimators.sweeps import SEVERAL, Answers
from pegasos.objective.certificate import Evaluation

if TYPE_CHECKING:
    import numpy as np

Path = list[tuple[int, float]]  # numbers of fits of the same rows, each with its C
Item = tuple[int, int]  # a fit and a problem of it


class Neighbour(NamedTuple):
    """A start from the answer for another C: the same w, the same alpha / c."""

    best: Evaluation
    C: float
    told: str = ""
    epochs: int = 0

    def at(self, C: float) -> Neighbour:
        alpha: np.ndarray = self.best.alpha * (C / self.C)
        told = f"begun at the answer for C = {self.C:.3g}"
        return self._replace(best=self.best._replace(alpha=alpha), told=told)


def neighbour(best: Evaluation, C: float) -> Neighbour | None:
    """What the next value may begin with, if alpha was kept."""
    return Neighbour(best, C) if best.alpha.size else None


class Chain(NamedTuple):
    """Items with their C, solved one after the other, and the neighbour of the first, if any."""

    items: list[tuple[Item, float]]
    last: Neighbour | None = None


def chains_of(fits: list[Any], answers: Answers, paths: list[Path]) -> list[Chain]:
    """All items: along each path those that no sweep has begun, the others one by one.

    Chains come first, since they take longest, then the largest values of C.
    """
    chains = []
    for path in paths:
        rising = sorted(path, key=lambda place: place[1])
        for k in range(len(fits[path[0][0]].targets)):
            chains += _chain(fits, answers, [((j, k), C) for j, C in rising])
    chained = {item for chain in chains for item, _ in chain.items}
    value = {j: C for path in paths for j, C in path}
    every = [(j, k) for j, task in enumerate(fits) for k in range(len(task.targets))]
    single = sorted(set(every) - chained, key=lambda item: (-value.get(item[0], 0.0), item))
    return chains + [Chain([(item, value.get(item[0], 0.0))]) for item in single]


def _chain(fits: list[Any], answers: Answers, items: list[tuple[Item, float]]) -> list[Chain]:
    """Fewer items than a sweep would have taken may all be for descent."""
    left = [(item, C) for item, C in items if item not in answers and _cold(fits[item[0]])]
    if len(left) < SEVERAL:
        return []
    below = [(item, C) for item, C in items if item in answers and C < left[0][1]]
    last = neighbour(answers[below[-1][0]].best, below[-1][1]) if below else None
    return [Chain(left, last)]


def _cold(task: Any) -> bool:
    return task.solver == "auto" and not task.stop.rules and task.starts is None
