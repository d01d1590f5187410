"""LinearSVC(probability=True) beside CalibratedClassifierCV(LinearSVC()) of scikit-learn.

Defaults of both, C = 1. Log-loss on test rows that neither has seen (`best`: of the same function
of our scores, fitted to the test rows themselves); rows on which the class of the highest
probability is not the one that the classifier fitted to all rows predicts.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from benchmarks.datasets import FOLDER
from benchmarks.table import into_page, markdown, merged, save


class _Recipe(NamedTuple):
    """Files to train and to test with (None: a quarter of the rows), and what rows go through."""

    train: str
    test: str | None
    scaler: Any


_SETS = {
    "a9a": _Recipe("a9a", "a9a.t", MaxAbsScaler),
    "magic04": _Recipe("magic04", None, StandardScaler),
    "imdb": _Recipe("imdb.train", "imdb.test", TfidfTransformer),
    "20news": _Recipe("20news_bydate.train", "20news_bydate.test", TfidfTransformer),
    "reuters_r8": _Recipe("reuters_r8.train", "reuters_r8.test", TfidfTransformer),
    "satimage": _Recipe("satimage.train", "satimage.test", StandardScaler),
    "letter": _Recipe("letter.scale", "letter.scale.t", StandardScaler),
}
SETS = tuple(_SETS)


class Split(NamedTuple):
    """Rows and classes to train and to test with."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


def load(name: str) -> Split:
    recipe = _SETS[name]
    X, y = _read(recipe.train, recipe)
    if recipe.test is None:
        X, X_test, y, y_test = train_test_split(X, y, random_state=0, stratify=y)
    else:
        X_test, y_test = _read(recipe.test, recipe)
    text = recipe.scaler is TfidfTransformer
    scaler = recipe.scaler(**{"sublinear_tf": True} if text else {}).fit(X)
    return Split(scaler.transform(X), y, scaler.transform(X_test), y_test)


def _read(file: str, recipe: _Recipe) -> tuple[Any, np.ndarray]:
    path = FOLDER / f"{file}.npz"
    stored = np.load(path)
    X = stored["X"] if "X" in stored else sp.load_npz(path).tocsr()
    if recipe.scaler is StandardScaler:
        X = X.toarray() if sp.issparse(X) else X
    return X.astype(np.float64), stored["y"]


def run(names: tuple[str, ...] = SETS) -> None:
    rows = merged("probability", [measured(name, load(name)) for name in names], ("set",), SETS)
    text = summary(rows)
    save("probability", text, rows)
    into_page(
        "docs/guide/probabilities.md", "probability", [*text, markdown(list(map(_shown, rows)))]
    )


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the guide: log-losses to the digits that differ."""
    losses = ("log-loss", "log-loss, scikit-learn", "best")
    return {
        key: f"{value:.4f}" if key in losses else value
        for key, value in row.items()
        if "accuracy" not in key and key != "rows"
    }


def summary(rows: list[dict[str, Any]]) -> list[str]:
    lower = sum(row["log-loss"] <= row["log-loss, scikit-learn"] for row in rows)
    apart, theirs = (sum(row[key] for row in rows) for key in ("apart", "apart, scikit-learn"))
    tested = sum(row["test rows"] for row in rows)
    return [
        f"Log-loss at most that of CalibratedClassifierCV(LinearSVC()) on {lower} of {len(rows)} "
        f"sets. On {tested:,} test rows the highest probability and predict are apart {apart} "
        f"times; scikit-learn's probabilities and its LinearSVC {theirs:,} times."
    ]


def measured(name: str, split: Split) -> dict[str, Any]:
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.svm import LinearSVC as Theirs

    from pegasos import LinearSVC

    _fitted(LinearSVC(probability=True, random_state=0), split)  # compiles and loads
    ours, seconds = _fitted(LinearSVC(probability=True, random_state=0), split)
    other, their_seconds = _fitted(CalibratedClassifierCV(Theirs(random_state=0)), split)
    plain, _ = _fitted(Theirs(random_state=0), split)
    row: dict[str, Any] = {
        "set": name,
        "classes": len(ours.classes_),
        "rows": len(split.y),
        "test rows": len(split.y_test),
    }
    for who, model, judge in (("", ours, ours), (", scikit-learn", other, plain)):
        p = model.predict_proba(split.X_test)
        told = model.classes_[p.argmax(axis=1)]
        row[f"log-loss{who}"] = float(log_loss(split.y_test, p, labels=model.classes_))
        row[f"accuracy %{who}"] = float(100.0 * np.mean(told == split.y_test))
        row[f"apart{who}"] = int(np.count_nonzero(told != judge.predict(split.X_test)))
    row["best"] = _best(ours, split)
    row |= {"seconds": seconds, "seconds, scikit-learn": their_seconds}
    print(row, flush=True)
    return row


def _best(model: Any, split: Split) -> float:
    """The log-loss if the function were fitted to the test rows themselves."""
    from pegasos.estimators.calibration import calibrated
    from pegasos.model.decision import probabilities

    scores, number = model._decided(split.X_test)
    label, K = np.searchsorted(model.classes_, split.y_test), len(model.classes_)
    found = calibrated("sigmoid", scores, label, np.ones(len(label)), K)
    return float(log_loss(label, probabilities(scores, number, found), labels=np.arange(K)))


def _fitted(model: Any, split: Split) -> tuple[Any, float]:
    start = time.perf_counter()
    model.fit(split.X, split.y)
    return model, time.perf_counter() - start
