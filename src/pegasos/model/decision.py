"""What becomes of scores: a class by a threshold, probabilities by a rising function.

Where nothing is predicted by a threshold other than 0, the class of the highest probability is the
one that is predicted, on every row: of equal scores, and where rounding makes probabilities equal.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

KINDS = ("sigmoid", "isotonic")
_MOST = 1e300  # of a logit, so that differences of two are finite


class Calibration(NamedTuple):
    """A rising function h of scores, linear between the points `x`, where its values are `h`, and
    beyond them with the two `slopes`.

    Of two classes the logit of the second is h(score), and h(0) = 0. Of several the probabilities
    are proportional to exp(h(score)).
    """

    kind: str
    x: tuple[float, ...]
    h: tuple[float, ...]
    slopes: tuple[float, float]


class Decision(NamedTuple):
    """The score above which the second of two classes is predicted, and how probabilities are told
    (None: they are not, or natively)."""

    threshold: float = 0.0
    calibration: Calibration | None = None


def chosen(scores: np.ndarray, threshold: float = 0.0) -> np.ndarray:
    """The number of the class of each row; the threshold is for two classes."""
    if scores.shape[1] == 1:
        return (scores[:, 0] > threshold).astype(int)
    return scores.argmax(axis=1)


def risen(calibration: Calibration, scores: np.ndarray) -> np.ndarray:
    """h(score) of each score."""
    x, (low, high) = calibration.x, calibration.slopes
    scores = np.clip(scores, -_MOST, _MOST)
    beyond = low * np.minimum(scores - x[0], 0.0) + high * np.maximum(scores - x[-1], 0.0)
    return np.clip(np.interp(scores, x, calibration.h) + beyond, -_MOST, _MOST)


def probabilities(
    scores: np.ndarray, number: np.ndarray, calibration: Calibration | None = None
) -> np.ndarray:
    """Of the classes, from scores (one column for two classes) and the class that they decide for.

    Without a calibration those of logistic models: of several, sigmoids normalised to sum to 1.
    """
    two = scores.shape[1] == 1
    if calibration is not None:
        h = risen(calibration, scores if two else leading(scores, number))
    else:
        h = scores if two else -np.logaddexp(0.0, -scores)
    if two:
        h = np.column_stack([np.zeros(len(h)), h])
    p = np.exp(h - h.max(axis=1, keepdims=True))
    return leading(p / p.sum(axis=1, keepdims=True), number)


def leading(values: np.ndarray, number: np.ndarray) -> np.ndarray:
    """The same values but one in each row, raised as little as makes it the first of the highest.

    It is there already unless rounding, or the votes of pairs of classes, have made others equal.
    """
    before = np.where(np.arange(values.shape[1]) < number[:, None], values, -np.inf).max(axis=1)
    out = np.array(values)
    out[np.arange(len(out)), number] = np.maximum(out.max(axis=1), np.nextafter(before, np.inf))
    return out


def to_json(decision: Decision) -> dict[str, Any]:
    """As a file keeps it: nothing of a decision that is plain."""
    kept: dict[str, Any] = {}
    if decision.threshold != 0.0:
        kept["threshold"] = decision.threshold
    if decision.calibration is not None:
        kept["calibration"] = decision.calibration._asdict()
    return kept


def from_json(kept: Any, n_classes: int) -> Decision:
    """From a file, or a ValueError that says why not."""
    if not isinstance(kept, dict):
        raise ValueError(f"decision: expected dict, got {str(kept)[:40]!r}")
    known = set(Decision._fields)
    unknown = [str(name)[:40] for name in kept if name not in known]
    if unknown:
        raise ValueError(f"decision: needs a newer pegasos: unknown field {unknown[0]!r}")
    threshold = kept.get("threshold", 0.0)
    if not _numbers([threshold]) or (threshold and n_classes != 2):
        raise ValueError(
            f"decision: threshold {str(threshold)[:40]!r} of {n_classes} classes; a finite number "
            "for 2 classes is expected"
        )
    calibration = None
    if "calibration" in kept:
        calibration = _calibration(kept["calibration"], n_classes)
    return Decision(float(threshold), calibration)


def _calibration(kept: Any, n_classes: int) -> Calibration:
    if not isinstance(kept, dict) or set(kept) != set(Calibration._fields):
        raise ValueError(f"decision: calibration: expected {', '.join(Calibration._fields)}")
    kind, x, h, slopes = (kept[name] for name in Calibration._fields)
    if kind not in KINDS:
        raise ValueError(f"decision: calibration: kind {str(kind)[:40]!r}, not one of {KINDS}")
    lists = all(isinstance(part, list | tuple) and _numbers(part) for part in (x, h, slopes))
    if not lists or len(slopes) != 2 or not len(x) == len(h) > 0:
        raise ValueError("decision: calibration: x, h and slopes are not lists of numbers that fit")
    rises = np.all(np.diff(x) > 0.0) and np.all(np.diff(h) >= 0.0) and min(slopes) >= 0.0
    if not rises:
        raise ValueError("decision: calibration: it does not rise with the score")
    x, h, (low, high) = (tuple(map(float, part)) for part in (x, h, slopes))
    made = Calibration(kind, x, h, (low, high))
    if n_classes == 2 and risen(made, np.zeros(1))[0] != 0.0:
        raise ValueError("decision: calibration: a score of 0 is not a probability of 1/2")
    return made


def _numbers(values: Iterable[Any]) -> bool:
    return all(type(v) in (int, float) and abs(v) < _MOST for v in values)
