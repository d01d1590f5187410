"""Cells: rows shared out among centres, no cell with more rows than a limit.

A row belongs to the cell of its nearest centre. Centres are means found by k-means on a sample; a
cell above the limit gets several centres in place of its own, until there is none. Rows that no
centres tell apart (more equal ones than the limit) are dealt out in turn to cells with one centre,
of which the first counts as nearest.

A cell learns better near its border with rows from beyond it: with m of them, those that are
nearest to the plane half-way between its centre and theirs,

    (||x - z_j||^2 - ||x - z||^2) / (2 ||z_j - z||)        z: the nearest centre of x
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from pegasos.objective.kernel_blocks import block
from pegasos.objective.kernel_points import Points
from pegasos.objective.nearest import SquaredDistance, nearest, places
from pegasos.solvers.k_means import k_means

_FILL = 0.7  # of the limit: the size that cells are planned with
_SAMPLE = 128  # rows of the sample for each centre
_ROUNDS = 16  # in which cells are split
_NEIGHBOURS = 8  # nearest centres of a row: its own, and those of cells that it may help


class Cells(NamedTuple):
    """Centres, as they are and as `places`; the rows of each cell, and near ones from beyond."""

    centres: np.ndarray
    places: Points
    own: list[np.ndarray]
    near: list[np.ndarray]


def cells_of(X: Any, limit: int, start: int, near: int, rng: Any) -> Cells:
    """Cells of the rows of an array or CSR matrix, from `start` centres; each learns with up to
    `near` rows from beyond its border."""
    rows = places(X)
    centres = _centres(X, np.arange(X.shape[0]), start, rng)
    label = _nearest(rows, centres)
    for _ in range(_ROUNDS):
        sizes = np.bincount(label, minlength=len(centres))
        large = np.flatnonzero(sizes > limit)
        if not large.size:
            break
        parts = [_split(X, np.flatnonzero(label == j), limit, rng) for j in large]
        centres = np.concatenate([centres[(0 < sizes) & (sizes <= limit)], *parts])
        label = _nearest(rows, centres)
    used, label = np.unique(label, return_inverse=True)
    centres, label = _dealt(centres[used], label, limit)
    order, ends = np.argsort(label, kind="stable"), np.cumsum(np.bincount(label))
    own = np.split(order, ends[:-1])
    like = places(centres, rows)
    return Cells(centres, like, own, _near(rows, like, label, near))


def planned(n: int, limit: int) -> int:
    """How many centres to begin with."""
    return 1 if n <= limit else int(np.ceil(n / (_FILL * limit)))


def _nearest(rows: Points, centres: np.ndarray) -> np.ndarray:
    return nearest(rows, places(centres, rows))[0][:, 0]


def _centres(X: Any, rows: np.ndarray, k: int, rng: Any) -> np.ndarray:
    """Up to k, by a sample of the rows."""
    found = k_means(X[np.sort(rng.permutation(rows)[: _SAMPLE * k])], k, rng)
    return found.toarray() if sp.issparse(found) else found


def _split(X: Any, rows: np.ndarray, limit: int, rng: Any) -> np.ndarray:
    return _centres(X, rows, planned(rows.size, limit), rng)


def _dealt(centres: np.ndarray, label: np.ndarray, limit: int) -> tuple[np.ndarray, np.ndarray]:
    """Centres and labels after the rows of each cell above the limit were dealt out."""
    for j in np.flatnonzero(np.bincount(label) > limit):
        rows = np.flatnonzero(label == j)
        hands = -(-rows.size // limit)
        for k in range(1, hands):
            label[rows[k::hands]] = len(centres) + k - 1
        centres = np.concatenate([centres, np.repeat(centres[j : j + 1], hands - 1, axis=0)])
    return centres, label


def _near(rows: Points, centres: Points, label: np.ndarray, most: int) -> list[np.ndarray]:
    """Of each cell the rows beyond its border that are nearest to it, in order."""
    apart = np.sqrt(block(SquaredDistance(), centres, centres))
    k = min(_NEIGHBOURS, len(apart))
    nothing = np.empty(0, dtype=np.int64)
    if most == 0 or k == 1:
        return [nothing for _ in apart]
    cell, squares = nearest(rows, centres, k)
    between = apart[label[:, None], cell]
    between[cell == label[:, None]] = 0.0  # a row is not beyond the border of its own cell
    beyond = np.full(cell.shape, np.inf, dtype=np.float32)
    np.divide(squares - squares[:, :1], 2.0 * between, out=beyond, where=between > 0.0)
    order = np.argsort(cell, axis=None, kind="stable")
    ends = np.cumsum(np.bincount(cell.ravel(), minlength=len(apart)))
    groups = np.split(order, ends[:-1])
    return [_least(group, beyond.ravel(), most) // k for group in groups]


def _least(group: np.ndarray, values: np.ndarray, most: int) -> np.ndarray:
    group = group[np.isfinite(values[group])]
    return np.sort(group[np.argsort(values[group], kind="stable")[:most]])
