"""Data sets of the kernel race: rows to train and test with, C and gamma.

Splits are random but fixed. Features are standardised; those of covtype and skin are scaled to
[0, 1], pixels divided by 255, a9a, ijcnn1 and heart taken as they are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from benchmarks.datasets import FOLDER


class Task(NamedTuple):
    """Rows and labels (-1 and +1) to train and to test with, and the parameters."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray
    C: float
    gamma: float


class _Recipe(NamedTuple):
    """Files, the labels of class +1, how many rows to train with, scaling, C, gamma, storage."""

    train: str
    test: str | None
    positive: Any
    rows: int | None
    scaler: Any
    C: float
    gamma: float
    csr: bool = False


_SETS = {
    "heart": _Recipe("heart_scale", None, (1,), 216, None, 2.0, 0.125),
    "pima": _Recipe("pima", None, (1,), 614, StandardScaler, 2.0, 0.125),
    "spambase": _Recipe("spambase", None, (1,), 3681, StandardScaler, 8.0, 0.03125),
    "magic04": _Recipe("magic04", None, (1,), 15216, StandardScaler, 8.0, 0.125),
    "covtype": _Recipe("covtype", None, (2,), 20_000, MinMaxScaler, 32.0, 2.0),
    "ijcnn1-20k": _Recipe("ijcnn1", "ijcnn1.t", (1,), 20_000, None, 32.0, 2.0),
    "ijcnn1": _Recipe("ijcnn1", "ijcnn1.t", (1,), None, None, 32.0, 2.0),
    "mnist38": _Recipe("mnist.train", "mnist.test", (3,), None, 255.0, 2.0, 0.03125),
    "a9a-csr": _Recipe("a9a", "a9a.t", (1,), 20_000, None, 8.0, 0.03125, csr=True),
    "a9a": _Recipe("a9a", "a9a.t", (1,), 20_000, None, 8.0, 0.03125),
    "shuttle": _Recipe("shuttle.train", "shuttle.test", (1,), 35_000, StandardScaler, 32.0, 1.0),
    "skin": _Recipe("skin_nonskin", None, (1,), 50_000, MinMaxScaler, 32.0, 2.0),
    "magic04 C=1000": _Recipe("magic04", None, (1,), 15216, StandardScaler, 1000.0, 0.125),
    "ijcnn1 C=1000": _Recipe("ijcnn1", "ijcnn1.t", (1,), None, None, 1000.0, 2.0),
    "covtype-200k": _Recipe("covtype", None, (2,), 200_000, MinMaxScaler, 32.0, 2.0),
}
SETS = tuple(_SETS)


def load(name: str) -> Task:
    recipe = _SETS[name]
    X, y = _read(recipe.train, recipe)
    order = np.random.default_rng(0).permutation(len(y))
    rows = len(y) if recipe.rows is None else recipe.rows
    train, rest = order[:rows], order[rows : rows + 20_000]
    if recipe.test is None:
        X_test, y_test = X[rest], y[rest]
    else:
        X_test, y_test = (part[:20_000] for part in _read(recipe.test, recipe))
    X, y = X[train], y[train]
    if isinstance(recipe.scaler, float):
        X, X_test = X / np.float32(recipe.scaler), X_test / np.float32(recipe.scaler)
    elif recipe.scaler is not None:
        scaler = recipe.scaler().fit(X.astype(np.float64))
        X, X_test = (scaler.transform(Z.astype(np.float64)) for Z in (X, X_test))
    form = sp.csr_matrix if recipe.csr else np.ascontiguousarray
    X, X_test = (form(Z, dtype=np.float32) for Z in (X, X_test))
    return Task(X, y, X_test, y_test, recipe.C, recipe.gamma)


def _read(file: str, recipe: _Recipe) -> tuple[np.ndarray, np.ndarray]:
    path = FOLDER / f"{file}.npz"
    stored = np.load(path)
    y = stored["y"]
    X = stored["X"] if "X" in stored else sp.load_npz(path).toarray()
    if file.startswith("mnist"):
        X, y = X[(y == 3) | (y == 8)], y[(y == 3) | (y == 8)]
    return X, np.where(np.isin(y, recipe.positive), 1.0, -1.0)
