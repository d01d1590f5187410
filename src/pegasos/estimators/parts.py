"""The binary problems behind several classes: which rows each has, and their labels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pegasos.model.pairs import couples


class Part(NamedTuple):
    """A binary problem: its rows and their labels -1 and +1."""

    name: str
    rows: np.ndarray
    y: np.ndarray


def pair(label: np.ndarray, a: int, b: int, name: str = "") -> Part:
    """The rows of classes a and b, the first of them positive."""
    rows = np.flatnonzero((label == a) | (label == b))
    return Part(name, rows, np.where(label[rows] == a, 1.0, -1.0))


def name_of_pair(classes: np.ndarray, a: int, b: int) -> str:
    return f"{classes[a]} or {classes[b]}"


def one_vs_one(label: np.ndarray, classes: np.ndarray) -> list[Part]:
    """A problem per pair of classes."""
    return [pair(label, a, b, name_of_pair(classes, a, b)) for a, b in couples(len(classes))]


def one_vs_rest(label: np.ndarray, classes: np.ndarray) -> list[Part]:
    """A problem per class; of two classes one, with the second positive."""
    targets = [1] if len(classes) == 2 else range(len(classes))
    rows = np.arange(len(label))
    return [Part(f"class {classes[k]}", rows, np.where(label == k, 1.0, -1.0)) for k in targets]
