"""From scores of rows that a model has not learnt from to the function behind its probabilities."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.isotonic import IsotonicRegression

from pegasos.core.rng import bits_of
from pegasos.model.decision import Calibration

FOLDS = 5
KNOTS = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])  # in units of the median of |score|
_SMOOTH = 1e-3  # draws slopes of neighbouring pieces together, where no row says otherwise
_MOST_STEPS = 100
_ENTRIES = 1 << 14  # scores at a time: their ramps stay in the cache


def folds_of(digests: np.ndarray, label: np.ndarray, seed: int) -> np.ndarray:
    """The number of each row's fold: rows of each class dealt out in a random order.

    `digests` tell rows apart (see `core.digest`). Rows that are equal stay together, so a weight of
    k is k copies here too, and no row is judged by a model that learnt its copy. The only row of a
    class is in no fold (-1), always learnt from.
    """
    drawn = bits_of(np.uint64(seed), digests)
    out, dealt, most = np.empty(len(label), dtype=np.int64), 0, 0
    for k in range(int(label.max()) + 1):
        rows = np.flatnonzero(label == k)
        distinct, place = np.unique(drawn[rows], return_inverse=True)
        out[rows] = dealt + place if distinct.size > 1 else -1
        dealt, most = dealt + distinct.size, max(most, distinct.size)
    if most < 2:
        raise ValueError(
            "no class has two different rows, but probability=True leaves rows out in turn: give "
            "it more, or use probability=False"
        )
    return np.where(out < 0, out, out % min(FOLDS, most))


def leaving_out(fold: int, n_folds: int) -> str:
    """What a fit of the other folds is called."""
    return f"for probabilities, without part {fold + 1} of {n_folds}"


class Left(NamedTuple):
    """Rows that were left out: their scores (one column for two classes), numbers of their classes,
    weights, and how much weight each class has."""

    scores: np.ndarray
    label: np.ndarray
    weight: np.ndarray
    counts: np.ndarray

    def targets(self, part: slice) -> np.ndarray:
        """Platt's, a row per class: of the true one (N + 1) / (N + 2), the rest of the others."""
        counts, n_classes = self.counts[self.label[part]], len(self.counts)
        truth = np.arange(n_classes)[:, None] == self.label[part]
        return np.where(truth, counts + 1.0, 1.0 / (n_classes - 1)) / (counts + 2.0)


def calibrated(
    kind: str, scores: np.ndarray, label: np.ndarray, weight: np.ndarray, n_classes: int
) -> Calibration:
    """The function of its kind that fits rows with these scores and classes best."""
    left = Left(scores, label, weight, np.bincount(label, weight, n_classes))
    return _isotonic(left) if kind == "isotonic" else _sigmoid(left)


def _sigmoid(left: Left) -> Calibration:
    """Logits linear in pieces between KNOTS, of the largest likelihood."""
    unit = _median(np.abs(left.scores), left.weight) or 1.0
    slopes = _slopes(left, unit)
    values = np.append(0.0, np.cumsum(slopes[1:-1] * np.diff(KNOTS)))
    values -= values[KNOTS == 0.0]
    low, high = (slopes[[0, -1]] / unit).tolist()
    return Calibration(
        "sigmoid", tuple((KNOTS * unit).tolist()), tuple(values.tolist()), (low, high)
    )


def _slopes(left: Left, unit: float) -> np.ndarray:
    """Of the pieces, a >= 0 with the least log-loss: projected Newton steps."""
    a = np.ones(len(KNOTS) + 1)
    loss, slope, H = _sums(a, left, unit)
    for _ in range(_MOST_STEPS):
        free = (a > 0.0) | (slope < 0.0)
        step = np.zeros(len(a))
        step[free] = -np.linalg.solve(H[np.ix_(free, free)], slope[free])
        length, before, then = 1.0, loss, a
        while True:
            a = np.maximum(then + length * step, 0.0)
            promised = slope @ (a - then)
            loss, new_slope, H = _sums(a, left, unit)
            if loss <= before + 1e-4 * promised + 1e-13 * abs(before) or length < 1e-9:
                break
            length *= 0.5
        slope = new_slope
        if np.abs(a - then).max() <= 1e-12 * np.abs(a).max():
            break
    return a


def _sums(a: np.ndarray, left: Left, unit: float) -> tuple[float, np.ndarray, np.ndarray]:
    """Log-loss of softmax(sum_j a_j ramp_j) with its first and second derivatives by a."""
    differences = np.diff(np.eye(len(a)), axis=0)
    H = _SMOOTH * (differences.T @ differences) + 1e-9 * np.eye(len(a))
    slope = H @ a
    loss = 0.5 * float(a @ slope)
    size = max(1, _ENTRIES // len(left.counts))
    for start in range(0, len(left.label), size):
        part = slice(start, start + size)
        ramps, target = _ramps(left.scores[part].T / unit), left.targets(part)
        weight = left.weight[part]
        h = np.tensordot(a, ramps, 1)
        h -= h.max(axis=0)
        p = np.exp(h)
        total = p.sum(axis=0)
        p /= total
        loss -= float(weight @ ((target * h).sum(axis=0) - np.log(total)))
        slope += ramps.reshape(len(a), -1) @ (weight * (p - target)).ravel()
        ramps -= (ramps * p).sum(axis=1, keepdims=True)
        spread = ramps.reshape(len(a), -1)
        H += (spread * (weight * p).ravel()) @ spread.T
    return loss, slope, H


def _ramps(scores: np.ndarray) -> np.ndarray:
    """How far each score reaches, from 0, into each piece between KNOTS and beyond them."""
    if len(scores) == 1:  # the first of two classes has the score 0
        scores = np.vstack([np.zeros(scores.shape[1]), scores])
    ends = np.concatenate([[-np.inf], KNOTS, [np.inf]])
    out = np.empty((len(KNOTS) + 1, *scores.shape))
    for j, (low, high) in enumerate(zip(ends[:-1], ends[1:], strict=True)):
        np.clip(scores, low, high, out=out[j])
        out[j] -= np.clip(0.0, low, high)
    return out


def _median(values: np.ndarray, weight: np.ndarray) -> float:
    """The least value up to which half of the weight lies; a row's weight is of each column."""
    weight = np.repeat(weight, values.shape[1])
    order = np.argsort(values, axis=None, kind="stable")
    heights = np.cumsum(weight[order])
    return float(values.ravel()[order[np.searchsorted(heights, 0.5 * heights[-1])]])


def _isotonic(left: Left) -> Calibration:
    """Steps of the largest likelihood; of two classes below 1/2 for scores below 0, and above."""
    scores, weight, target = left.scores, left.weight, left.targets(slice(None))
    if scores.shape[1] == 1:
        s, t = scores[:, 0], target[1]
        below = _steps(s[s < 0.0], t[s < 0.0], weight[s < 0.0], (0.0, 0.5))
        above = _steps(s[s > 0.0], t[s > 0.0], weight[s > 0.0], (0.5, 1.0))
        x = np.concatenate([below[0], [0.0], above[0]])
        share = np.concatenate([below[1], [0.5], above[1]])
        h = np.log(share) - np.log1p(-share)
    else:
        x, share = _steps(scores.ravel(), target.T.ravel(), np.repeat(weight, scores.shape[1]))
        h = np.log(share)
    return Calibration("isotonic", tuple(x.tolist()), tuple(h.tolist()), (0.0, 0.0))


def _steps(
    s: np.ndarray, t: np.ndarray, weight: np.ndarray, bounds: tuple[float, float] = (0.0, 1.0)
) -> tuple[np.ndarray, np.ndarray]:
    if not s.size:
        return np.zeros(0), np.zeros(0)
    found = IsotonicRegression(y_min=bounds[0], y_max=bounds[1]).fit(s, t, weight)
    return found.X_thresholds_, found.y_thresholds_
