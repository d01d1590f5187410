"""One-vs-one problems: their order, and the classes that their scores choose.

Problem k belongs to the k-th pair (i, j), i < j, in the order (0, 1), (0, 2), …; a score above 0
speaks for class i.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np


def couples(n_classes: int) -> list[tuple[int, int]]:
    """The pairs in their order."""
    return list(combinations(range(n_classes), 2))


def n_problems(n_classes: int, pairs: bool) -> int:
    """Binary problems of so many classes: one per pair, or one per class; of two classes one."""
    return n_classes * (n_classes - 1) // 2 if pairs or n_classes == 2 else n_classes


def votes(scores: np.ndarray, n_classes: int) -> np.ndarray:
    """The number of the class that wins most pairs; of equals the first."""
    count = np.zeros((len(scores), n_classes), dtype=np.int64)
    for k, (i, j) in enumerate(couples(n_classes)):
        second = scores[:, k] < 0.0
        count[:, i] += ~second
        count[:, j] += second
    return count.argmax(axis=1)


def class_scores(scores: np.ndarray, n_classes: int, pairs: bool) -> np.ndarray:
    """A score per class from those of pairs; those of other problems are such scores already.

    It is the number of pairs that the class wins (a score of 0 is won by the first), and less than
    a third more or less: t / (3 (|t| + 1)), t the sum of its margins. So votes come first.
    """
    if not pairs:
        return scores
    count, total = np.zeros((2, n_classes, len(scores)))
    for k, (i, j) in enumerate(couples(n_classes)):
        margin = scores[:, k]
        second = margin < 0.0
        count[i] += ~second
        count[j] += second
        total[i] += margin
        total[j] -= margin
    return np.ascontiguousarray((count + total / (3.0 * (np.abs(total) + 1.0))).T)
