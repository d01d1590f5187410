"""The entries of a row against one weight vector.

In compiled loops these are vector instructions: values are widened several at a time, and only what
has to be is done one by one; see `core.llvm_entries`.
"""

from __future__ import annotations

import numpy as np


def dot(values: np.ndarray, columns: np.ndarray, w: np.ndarray) -> float:
    """sum_k values[k] w[columns[k]]"""
    return float(values.astype(np.float64) @ w[columns])


def axpy(values: np.ndarray, columns: np.ndarray, a: float, w: np.ndarray) -> None:
    """w[columns[k]] += a values[k], one k after the other"""
    np.add.at(w, columns, a * values.astype(np.float64))
