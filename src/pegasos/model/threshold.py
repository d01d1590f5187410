"""A threshold for two classes, chosen on rows kept aside: for a precision, a recall or a cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import confusion_matrix_at_thresholds

from pegasos.core.parameters import positive


class Target(NamedTuple):
    """What a threshold is for: `name` is precision, recall or cost, and `value` the least share, or
    the costs [[of 0 as 0, of 0 as 1], [of 1 as 0, of 1 as 1]]."""

    name: str
    value: Any


class Choice(NamedTuple):
    """A threshold and what it reached on the rows that it was chosen on, for the second class.

    `cost` is the sum of the costs, or None where there were none to choose by.
    """

    threshold: float
    precision: float
    recall: float
    cost: float | None = None

    def __str__(self) -> str:
        paid = "" if self.cost is None else f", cost {self.cost:g}"
        return (
            f"threshold {self.threshold:.6g}: precision {self.precision:.4f}, "
            f"recall {self.recall:.4f}{paid}"
        )


def target_of(precision: Any, recall: Any, cost: Any, classes: np.ndarray) -> Target:
    """The one target that is given."""
    given = {"precision": precision, "recall": recall, "cost": cost}
    found = [(name, value) for name, value in given.items() if value is not None]
    if len(found) != 1:
        names = ", ".join(name for name, _ in found) or "none"
        raise ValueError(f"give one of precision, recall and cost, got {names}")
    name, value = found[0]
    if name == "cost":
        return Target(name, _costs(value, classes))
    if positive(name, value) > 1.0:
        raise ValueError(f"{name} must be at most 1, got {value!r}")
    return Target(name, float(value))


def _costs(cost: Any, classes: np.ndarray) -> np.ndarray:
    if not isinstance(cost, Mapping) or not cost:
        raise TypeError(f"cost must be a dict of (true, predicted) to a number, got {cost!r}")
    names, out = classes.tolist(), np.zeros((2, 2))
    for pair, value in cost.items():
        if not isinstance(pair, tuple) or len(pair) != 2 or any(k not in names for k in pair):
            known = ", ".join(map(repr, names))
            raise ValueError(
                f"cost: {pair!r} is not a pair (true, predicted) of the classes {known}"
            )
        out[names.index(pair[0]), names.index(pair[1])] = positive("cost", value, zero=True)
    return out


def choose(scores: np.ndarray, truth: np.ndarray, weight: Any, target: Target) -> Choice:
    """The best threshold for the target; of equals the one nearest to 0."""
    _, fp, _, tp, heights = confusion_matrix_at_thresholds(truth, scores, sample_weight=weight)
    if tp[-1] == 0.0:
        raise ValueError("no row of the second class among those to choose a threshold on")
    tp, fp = np.append(0.0, tp), np.append(0.0, fp)  # where every row is told the first class
    precision, recall = tp / np.maximum(tp + fp, np.finfo(float).tiny), tp / tp[-1]
    (c00, c01), (c10, c11) = target.value if target.name == "cost" else np.zeros((2, 2))
    cost = c00 * (fp[-1] - fp) + c01 * fp + c10 * (tp[-1] - tp) + c11 * tp
    between = _between(heights)
    order = {"precision": (precision, recall), "recall": (recall, precision), "cost": (-cost,)}
    fits = np.arange(len(tp))
    if target.name != "cost":
        fits = np.flatnonzero(order[target.name][0] >= target.value - 1e-12)
    if not fits.size:
        best = int(np.lexsort((recall, precision))[-1])
        raise ValueError(
            f"precision {target.value:g} is beyond these {len(scores)} rows: the best possible is "
            f"{precision[best]:.4f}, at recall {recall[best]:.4f}"
        )
    keys = (-np.abs(between), *order[target.name])
    i = int(fits[np.lexsort(tuple(key[fits] for key in keys))[-1]])
    paid = float(cost[i]) if target.name == "cost" else None
    return Choice(float(between[i]), float(precision[i]), float(recall[i]), paid)


def _between(heights: np.ndarray) -> np.ndarray:
    """For falling scores the thresholds above all of them, between each two, and below all."""
    upper, lower = heights[:-1], heights[1:]
    middle = lower + 0.5 * (upper - lower)
    middle = np.where(middle < upper, middle, lower)
    return np.concatenate([heights[:1], middle, np.nextafter(heights[-1:], -np.inf)])
