"""Real data sets, read from the folder PEGASOS_DATA (default: ../shared/data).

Each is a binary problem (X float32, y in {-1, +1}): text as sublinear TF-IDF (farm_ads,
which has no counts: rows of norm 1), dense tables standardised, pixels divided by 255, the sparse
kdd99 divided by its standard deviations.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import StandardScaler, normalize

FOLDER = Path(os.environ.get("PEGASOS_DATA", Path(__file__).parents[2] / "shared" / "data"))

TALL = (
    "a9a",
    "ijcnn1",
    "covtype",
    "mnist38",
    "magic04",
    "shuttle",
    "spambase",
    "kdd99",
    "phishing",
)
TEXT = ("20news", "imdb", "rcv1", "farm_ads", "news20", "reuters_r8")
ALL = TALL + TEXT
_FILES = {
    "20news": "20news_bydate.train",
    "imdb": "imdb.train",
    "kdd99": "kdd99_10pct",
    "letter": "letter.scale",
    "mnist": "mnist.train",
    "mnist38": "mnist.train",
    "rcv1": "rcv1_subsets.binary",
    "reuters_r8": "reuters_r8.train",
    "shuttle": "shuttle.train",
}
_COUNTS = ("20news", "imdb", "news20", "reuters_r8")  # raw counts of terms
_SEVERAL = ("20news", "news20", "reuters_r8")  # the largest class against the rest
_POSITIVE = {"covtype": 2, "shuttle": 1, "mnist38": 3}


def load(name: str) -> tuple[np.ndarray | sp.csr_matrix, np.ndarray]:
    """X and y of a data set by its short name."""
    X, y = load_classes(name)
    if name in _SEVERAL:
        y = y == np.bincount(y).argmax()
    positive = y == _POSITIVE[name] if name in _POSITIVE else y > 0
    return X, np.where(positive, 1.0, -1.0)


def load_classes(name: str) -> tuple[np.ndarray | sp.csr_matrix, np.ndarray]:
    """X and the labels as they are."""
    path = FOLDER / f"{_FILES.get(name, name)}.npz"
    stored = np.load(path)
    y = stored["y"]
    X = stored["X"] if "X" in stored else sp.load_npz(path).tocsr().astype(np.float32)
    if name == "mnist38":
        chosen = (y == 3) | (y == 8)
        X, y = X[chosen] / np.float32(255), y[chosen]
    elif name == "mnist":
        X = X / np.float32(255)
    elif name in _COUNTS:
        X = TfidfTransformer(sublinear_tf=True).fit_transform(X)
    elif name == "farm_ads":
        X = normalize(X)
    elif name == "kdd99":
        X = StandardScaler(with_mean=False).fit_transform(X)
    elif not sp.issparse(X):
        X = StandardScaler().fit_transform(X.astype(np.float64))
    X = X.astype(np.float32)
    return (sp.csr_matrix(X) if sp.issparse(X) else X), y
