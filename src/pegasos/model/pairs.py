"""One-vs-one problems: their order, and the classes that their scores choose.

Problem k belongs to the k-th pair (i, j), i < j, in the order (0, 1), (0, 2), …; a score above 0
speaks for class i.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from pegasos.model.decision import chosen


def couples(n_classes: int) -> list[tuple[int, int]]:
    """The pairs in their order."""
    return list(combinations(range(n_classes), 2))


def n_problems(n_classes: int, pairs: bool) -> int:
    """Binary problems of so many classes: one per pair, or one per class; of two classes one."""
    return n_classes * (n_classes - 1) // 2 if pairs or n_classes == 2 else n_classes


def problem_names(classes: np.ndarray, pairs: bool, against: str) -> list[str]:
    """Which class a score above 0 speaks for, and of a pair also against which."""
    names = [str(name) for name in classes.tolist()]
    if pairs:
        return [f"{names[i]}{against}{names[j]}" for i, j in couples(len(names))]
    return names[1:] if len(names) == 2 else names


def by_pairs(multi_class: str, n_classes: int) -> bool:
    """Whether classes are told apart by pairs; two of them are one problem in every mode."""
    return multi_class == "ovo" and n_classes > 2


def class_scores(scores: np.ndarray, n_classes: int, pairs: bool) -> np.ndarray:
    """A score per class from those of pairs; those of other problems are such scores already.

    It is the number of pairs that the class wins (a score of 0 is won by the first), and less than
    a third more or less: t / (3 (|t| + 1)), t the sum of its margins. So votes come first.
    """
    return _counted(scores, n_classes)[1] if pairs else scores


def decided(
    scores: np.ndarray, n_classes: int, pairs: bool, break_ties: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Such scores, and the number of the class that they decide for (at threshold 0).

    Of pairs it is the class that wins most of them, of equals the first; or with `break_ties` the
    one with the highest score.
    """
    if not pairs:
        return scores, chosen(scores)
    wins, shaped = _counted(scores, n_classes)
    return shaped, chosen(shaped if break_ties else wins)


def _counted(scores: np.ndarray, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """How many pairs each class wins, and its score."""
    count, total = np.zeros((2, n_classes, len(scores)))
    for k, (i, j) in enumerate(couples(n_classes)):
        margin = scores[:, k]
        second = margin < 0.0
        count[i] += ~second
        count[j] += second
        total[i] += margin
        total[j] -= margin
    shaped = count + total / (3.0 * (np.abs(total) + 1.0))
    return count.T, np.ascontiguousarray(shaped.T)
