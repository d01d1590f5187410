"""One row in a hundred: shuttle, class 1 against 341 rows of all others.

Balanced accuracy (the mean of the two recalls) on the published test rows of a linear SVM as it is,
with class_weight="balanced", and with a threshold chosen on a quarter of the rows kept aside, which
weighs each class alike; scikit-learn's LinearSVC in the same three ways.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import balanced_accuracy_score, recall_score
from sklearn.model_selection import TunedThresholdClassifierCV, train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks.datasets import FOLDER
from benchmarks.table import HERE, into_page, markdown, save

FIGURE = HERE.parent / "docs" / "images" / "imbalance.png"


def run() -> None:
    data = load()
    rows = [_row(*case, data) for case in (*_ours(data), *_theirs(data))]
    text = summary(rows)
    save("imbalance", text, rows)
    into_page("docs/guide/imbalance.md", "imbalance", [*text, markdown(rows)])


def load() -> list[np.ndarray]:
    """X, y, X_test, y_test; y is 1 for the rare class."""
    (X, y), (X_test, y_test) = (_read(part) for part in ("train", "test"))
    rare = np.flatnonzero(y == 1)
    kept = np.random.default_rng(0).choice(rare, np.count_nonzero(y == 0) // 100, replace=False)
    rows = np.sort(np.append(np.flatnonzero(y == 0), kept))
    scaler = StandardScaler().fit(X[rows])
    return [scaler.transform(X[rows]), y[rows], scaler.transform(X_test), y_test]


def _read(part: str) -> tuple[np.ndarray, np.ndarray]:
    stored = np.load(FOLDER / f"shuttle.{part}.npz")
    return stored["X"].astype(np.float64), (stored["y"] != 1).astype(int)


def _ours(data: list[np.ndarray]) -> list[tuple[str, Any]]:
    from pegasos import LinearSVC

    X, y = data[:2]
    plain = LinearSVC(random_state=0).fit(X, y)
    balanced = LinearSVC(class_weight="balanced", random_state=0).fit(X, y)
    X_fit, X_val, y_fit, y_val = train_test_split(X, y, random_state=0, stratify=y)
    chosen = LinearSVC(random_state=0).fit(X_fit, y_fit)
    n = np.bincount(y_val)
    chosen.choose_threshold(X_val, y_val, cost={(0, 1): 1.0 / n[0], (1, 0): 1.0 / n[1]})
    _draw(chosen, {"balanced": balanced, "plain": plain}, data)
    return [("plain", plain), ('class_weight="balanced"', balanced), ("threshold", chosen)]


def _theirs(data: list[np.ndarray]) -> list[tuple[str, Any]]:
    from sklearn.svm import LinearSVC

    X, y = data[:2]
    plain, balanced = LinearSVC(random_state=0), LinearSVC(class_weight="balanced", random_state=0)
    tuned = TunedThresholdClassifierCV(LinearSVC(random_state=0), scoring="balanced_accuracy")
    names = ("plain", 'class_weight="balanced"', "TunedThresholdClassifierCV")
    models = (plain, balanced, tuned)
    return [
        (f"scikit-learn, {name}", model.fit(X, y))
        for name, model in zip(names, models, strict=True)
    ]


def _row(name: str, model: Any, data: list[np.ndarray]) -> dict[str, Any]:
    X_test, y_test = data[2:]
    told = model.predict(X_test)
    row = {
        "who": name,
        "balanced accuracy %": float(100.0 * balanced_accuracy_score(y_test, told)),
        "rare class found %": float(100.0 * recall_score(y_test, told)),
        "others right %": float(100.0 * recall_score(y_test, told, pos_label=0)),
    }
    print(row, flush=True)
    return row


def summary(rows: list[dict[str, Any]]) -> list[str]:
    score = {row["who"]: row["balanced accuracy %"] for row in rows}
    return ["Balanced accuracy: " + ", ".join(f"{k} {v:.1f} %" for k, v in score.items()) + "."]


def _draw(chosen: Any, others: dict[str, Any], data: list[np.ndarray]) -> None:
    from pegasos.report.decisions import decision_figure
    from pegasos.report.figures import COLOURS, save

    X_test, y_test = data[2:]
    scores = chosen.decision_function(X_test)
    title = "One row in a hundred: what three ways of deciding find"
    figure = decision_figure(y_test == 1, scores, threshold=chosen.threshold_, title=title)
    roc, curve = figure.axes
    for (name, model), colour in zip(others.items(), COLOURS[2:], strict=False):
        told = model.predict(X_test) == 1
        found, mistaken = told[y_test == 1].mean(), told[y_test == 0].mean()
        sure = (y_test[told] == 1).mean()
        for axes, place in ((roc, (mistaken, found)), (curve, (found, sure))):
            axes.plot(*place, "s", color=colour, markersize=8, label=name, zorder=5)
    for axes, corner in ((roc, "lower right"), (curve, "lower left")):
        axes.legend(loc=corner, frameon=False)
    Path(FIGURE).parent.mkdir(exist_ok=True)
    save(figure, FIGURE)
