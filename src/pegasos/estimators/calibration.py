"""From scores of rows that a model has not learnt from to the function behind its probabilities."""

from __future__ import annotations

import numpy as np
from sklearn.isotonic import IsotonicRegression

from pegasos.core.digest import row_digests
from pegasos.data.check import as_rows
from pegasos.estimators import parameters as par
from pegasos.estimators.classifier import Data
from pegasos.model.decision import Calibration

FOLDS = 5
KNOTS = np.array([-1.0, 0.0, 1.0])  # in units of the median of |score|
_SMOOTH = 1e-3  # draws slopes of neighbouring pieces together, where no row says otherwise
_MOST_STEPS = 100


def folds_of(data: Data, classes: np.ndarray, seed: int) -> np.ndarray:
    """The number of each row's fold: rows of each class dealt out in a random order.

    Rows that are equal stay together, so a weight of k is k copies here too, and no row is judged
    by a model that learnt its copy.
    """
    drawn = row_digests(as_rows(data.X)) ^ np.random.default_rng(seed).integers(2**63, dtype="u8")
    drawn = drawn * np.uint64(0x9E3779B97F4A7C15)
    drawn ^= drawn >> np.uint64(32)
    drawn *= np.uint64(0xBF58476D1CE4E5B9)
    out, dealt, most = np.empty(len(data.label), dtype=np.int64), 0, 0
    for k, name in enumerate(classes):
        rows = np.flatnonzero(data.label == k)
        distinct, place = np.unique(drawn[rows], return_inverse=True)
        if distinct.size < 2:
            raise ValueError(
                f"class {par.shown(name)} has one row (or copies of it), but probability=True "
                "leaves each row out once: give it a second row, or use probability=False"
            )
        out[rows] = dealt + place
        dealt, most = dealt + distinct.size, max(most, distinct.size)
    return out % min(FOLDS, most)


def calibrated(
    kind: str, scores: np.ndarray, label: np.ndarray, weight: np.ndarray, n_classes: int
) -> Calibration:
    """The function of its kind that fits rows with these scores and classes best."""
    counts = np.bincount(label, weight, n_classes)
    truth = np.arange(n_classes) == label[:, None]
    target = (1.0 + truth * counts[label][:, None]) / (counts[label][:, None] + n_classes)
    fitted = _isotonic if kind == "isotonic" else _sigmoid
    return fitted(scores, target, weight)


def _sigmoid(scores: np.ndarray, target: np.ndarray, weight: np.ndarray) -> Calibration:
    """Logits linear in pieces between KNOTS, of the largest likelihood (Platt's targets)."""
    unit = _median(np.abs(scores), np.broadcast_to(weight[:, None], scores.shape)) or 1.0
    ends = np.concatenate([[-np.inf], KNOTS, [np.inf]])
    ramps = [
        np.clip(scores / unit, low, high) - np.clip(0.0, low, high)
        for low, high in zip(ends[:-1], ends[1:], strict=True)
    ]
    if scores.shape[1] == 1:  # the first class has the logit 0
        ramps = [np.column_stack([np.zeros(len(ramp)), ramp]) for ramp in ramps]
    slopes = _slopes(np.array(ramps), target, weight)
    inner = slopes[1:-1] * np.diff(KNOTS)
    values = np.concatenate([[0.0], np.cumsum(inner)])
    values -= values[len(KNOTS) // 2]  # h(0) = 0, where the middle knot is
    low, high = (slopes[[0, -1]] / unit).tolist()
    return Calibration(
        "sigmoid", tuple((KNOTS * unit).tolist()), tuple(values.tolist()), (low, high)
    )


def _slopes(ramps: np.ndarray, target: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The a >= 0 with the least log-loss of softmax(sum_j a_j ramp_j): projected Newton steps."""
    differences = np.diff(np.eye(len(ramps)), axis=0)
    penalty = _SMOOTH * (differences.T @ differences) + 1e-9 * np.eye(len(ramps))

    def at(a: np.ndarray) -> tuple[float, np.ndarray]:
        h = np.tensordot(a, ramps, 1)
        h -= h.max(axis=1, keepdims=True)
        log_p = h - np.log(np.exp(h).sum(axis=1, keepdims=True))
        loss = -float(weight @ np.einsum("ik,ik->i", target, log_p)) + 0.5 * a @ penalty @ a
        return loss, np.exp(log_p)

    a = np.ones(len(ramps))
    loss, p = at(a)
    for _ in range(_MOST_STEPS):
        slope = np.einsum("i,jik,ik->j", weight, ramps, p - target) + penalty @ a
        free = (a > 0.0) | (slope < 0.0)
        step = np.zeros(len(a))
        H = _curvature(ramps[free], p, weight) + penalty[np.ix_(free, free)]
        step[free] = -np.linalg.solve(H, slope[free])
        length, before = 1.0, loss
        while True:
            new = np.maximum(a + length * step, 0.0)
            loss, p = at(new)
            if loss <= before + 1e-4 * slope @ (new - a) or length < 1e-9:
                break
            length *= 0.5
        moved, a = np.abs(new - a).max(), new
        if moved <= 1e-12 * np.abs(a).max() or length < 1e-9:
            break
    return a


def _curvature(ramps: np.ndarray, p: np.ndarray, weight: np.ndarray) -> np.ndarray:
    mean = np.einsum("jik,ik->ji", ramps, p)
    spread = ramps - mean[:, :, None]
    return np.einsum("aik,bik,ik->ab", spread, spread, p * weight[:, None])


def _median(values: np.ndarray, weight: np.ndarray) -> float:
    """The least value up to which half of the weight lies."""
    values, weight = values.ravel(), weight.ravel()
    order = np.argsort(values, kind="stable")
    heights = np.cumsum(weight[order])
    return float(values[order[np.searchsorted(heights, 0.5 * heights[-1])]])


def _isotonic(scores: np.ndarray, target: np.ndarray, weight: np.ndarray) -> Calibration:
    """Steps of the largest likelihood; of two classes below 1/2 for scores below 0, and above."""
    if scores.shape[1] == 1:
        s, t = scores[:, 0], target[:, 1]
        below = _steps(s[s < 0.0], t[s < 0.0], weight[s < 0.0], (0.0, 0.5))
        above = _steps(s[s > 0.0], t[s > 0.0], weight[s > 0.0], (0.5, 1.0))
        x = np.concatenate([below[0], [0.0], above[0]])
        share = np.concatenate([below[1], [0.5], above[1]])
        h = np.log(share) - np.log1p(-share)
    else:
        x, share = _steps(scores.ravel(), target.ravel(), np.repeat(weight, scores.shape[1]))
        h = np.log(share)
    return Calibration("isotonic", tuple(x.tolist()), tuple(h.tolist()), (0.0, 0.0))


def _steps(
    s: np.ndarray, t: np.ndarray, weight: np.ndarray, bounds: tuple[float, float] = (0.0, 1.0)
) -> tuple[np.ndarray, np.ndarray]:
    if not s.size:
        return np.zeros(0), np.zeros(0)
    found = IsotonicRegression(y_min=bounds[0], y_max=bounds[1]).fit(s, t, weight)
    return found.X_thresholds_, found.y_thresholds_
