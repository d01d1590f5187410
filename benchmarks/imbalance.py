"""One row in a hundred: shuttle, class 1 against 341 rows of all others, drawn ten times.

Balanced accuracy (the mean of the two recalls) on the published test rows of a linear SVM as it is,
with class_weight="balanced", and each with a threshold chosen on a quarter of the rows kept aside,
which weighs each class alike; scikit-learn's LinearSVC as it is, balanced and with its threshold by
cross-validation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.metrics import recall_score
from sklearn.model_selection import TunedThresholdClassifierCV, train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks.datasets import FOLDER
from benchmarks.table import HERE, into_page, markdown, save

FIGURE = HERE.parent / "docs" / "images" / "imbalance.png"
DRAWS = 10
BALANCED = 'class_weight="balanced"'


def run() -> None:
    found: dict[str, list[tuple[float, float]]] = {}
    for draw in range(DRAWS):
        data = load(draw)
        models = dict((*_ours(data), *_theirs(data)))
        if draw == 0:
            _draw(models, data)
        for name, model in models.items():
            told = model.predict(data[2])
            recalls = [float(recall_score(data[3], told, pos_label=k)) for k in (1, 0)]
            found.setdefault(name, []).append((recalls[0], recalls[1]))
        print(draw, {name: 50.0 * sum(pairs[-1]) for name, pairs in found.items()}, flush=True)
    rows = [_row(name, np.array(pairs)) for name, pairs in found.items()]
    text = summary(rows)
    save("imbalance", text, rows)
    into_page("docs/guide/imbalance.md", "imbalance", [*text, markdown(rows)])


def load(draw: int) -> list[np.ndarray]:
    """X, y, X_test, y_test; y is 1 for the rare class."""
    (X, y), (X_test, y_test) = (_read(part) for part in ("train", "test"))
    rare = np.flatnonzero(y == 1)
    kept = np.random.default_rng(draw).choice(rare, np.count_nonzero(y == 0) // 100, replace=False)
    rows = np.sort(np.append(np.flatnonzero(y == 0), kept))
    scaler = StandardScaler().fit(X[rows])
    return [scaler.transform(X[rows]), y[rows], scaler.transform(X_test), y_test]


def _read(part: str) -> tuple[np.ndarray, np.ndarray]:
    stored = np.load(FOLDER / f"shuttle.{part}.npz")
    return stored["X"].astype(np.float64), (stored["y"] != 1).astype(int)


def _ours(data: list[np.ndarray]) -> Iterator[tuple[str, Any]]:
    from pegasos import LinearSVC

    X, y = data[:2]
    X_fit, X_val, y_fit, y_val = train_test_split(X, y, random_state=0, stratify=y)
    n = np.bincount(y_val)
    for name, weight in (("plain", None), (BALANCED, "balanced")):
        model = LinearSVC(class_weight=weight, random_state=0)
        yield name, model.fit(X, y)
        chosen = LinearSVC(class_weight=weight, random_state=0).fit(X_fit, y_fit)
        chosen.choose_threshold(X_val, y_val, cost={(0, 1): 1.0 / n[0], (1, 0): 1.0 / n[1]})
        yield f"{name}, threshold", chosen


def _theirs(data: list[np.ndarray]) -> Iterator[tuple[str, Any]]:
    from sklearn.svm import LinearSVC

    X, y = data[:2]
    plain, balanced = LinearSVC(random_state=0), LinearSVC(class_weight="balanced", random_state=0)
    tuned = TunedThresholdClassifierCV(LinearSVC(random_state=0), scoring="balanced_accuracy")
    ways = {"plain": plain, BALANCED: balanced, "TunedThresholdClassifierCV": tuned}
    for name, model in ways.items():
        yield f"scikit-learn, {name}", model.fit(X, y)


def _row(name: str, recalls: np.ndarray) -> dict[str, Any]:
    percent = 100.0 * recalls
    return {
        "who": name,
        "balanced accuracy %": percent.mean(axis=1).tolist(),
        "rare class found %": percent[:, 0].tolist(),
        "others right %": percent[:, 1].tolist(),
    }


def summary(rows: list[dict[str, Any]]) -> list[str]:
    score = {row["who"]: np.mean(row["balanced accuracy %"]) for row in rows}
    listed = ", ".join(f"{name} {value:.1f} %" for name, value in score.items())
    return [f"Balanced accuracy, mean of {DRAWS} draws: {listed}."]


def _draw(models: dict[str, Any], data: list[np.ndarray]) -> None:
    from pegasos.report.decisions import decision_figure
    from pegasos.report.figures import COLOURS, SMALL
    from pegasos.report.figures import save as save_figure

    X_test, y_test = data[2:]
    chosen = models["plain, threshold"]
    scores = chosen.decision_function(X_test)
    title = "One row in a hundred: what three ways of deciding find"
    figure = decision_figure(y_test == 1, scores, threshold=chosen.threshold_, title=title)
    roc, curve = figure.axes
    for name, colour in (("plain", COLOURS[2]), (BALANCED, COLOURS[3])):
        told = models[name].predict(X_test) == 1
        found, mistaken = told[y_test == 1].mean(), told[y_test == 0].mean()
        sure = (y_test[told] == 1).mean()
        for axes, place in ((roc, (mistaken, found)), (curve, (found, sure))):
            axes.plot(*place, "s", color=colour, markersize=8, label=name, zorder=5)
    for axes, corner in ((roc, "lower right"), (curve, "lower left")):
        axes.legend(loc=corner, frameon=False, fontsize=SMALL)
    save_figure(figure, FIGURE)
