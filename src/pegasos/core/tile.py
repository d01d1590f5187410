"""Tiles of a Gram matrix: eight by eight sums over rows, in registers where loops are compiled."""

from __future__ import annotations

from typing import Any

SIDE = 8


def tiled(columns: int) -> int:
    """So many columns in whole tiles."""
    return -(-columns // SIDE) * SIDE


def add_tile(X: Any, n: int, j: int, k: int, out: Any) -> None:
    """out[j:j+8, k:k+8] += sum over the first n rows x of X of x[j:j+8]' x[k:k+8]; neither the
    numbers nor the arrays, which must be contiguous, are checked."""
    rows = X[:n]
    out[j : j + SIDE, k : k + SIDE] += rows[:, j : j + SIDE].T @ rows[:, k : k + SIDE]
