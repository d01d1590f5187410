"""What a threshold on scores trades, and whether probabilities hold: curves of scikit-learn."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.calibration import CalibrationDisplay
from sklearn.metrics import PrecisionRecallDisplay, RocCurveDisplay

from pegasos.report.figures import COLOURS, FAINT, INK, PLAIN, SMALL, head, new_figure, save, style

BINS = 10
_STRIP = 0.18  # of the height of a panel, for the histogram of probabilities


def decision_figure(
    truth: Any,
    scores: Any = None,
    p: Any = None,
    *,
    threshold: float = 0.0,
    path: str | os.PathLike[str] | None = None,
    title: str = "",
    note: str = "",
) -> Figure:
    """ROC and precision-recall curves with the threshold marked, and a reliability curve.

    Parameters
    ----------
    truth : array of bool, or of two labels
        Whether a row is of the second class (or of the class that p speaks of); labels are named.
    scores : array, default=None
        Decision values: draws the two curves.
    p : array, default=None
        Probabilities of the truth: draws how often it came true, against what was told.
    threshold : float, default=0.0
        The score above which the second class is predicted.
    path : path, default=None
        Where to write the figure as well: png, svg or pdf.
    title, note : str, default=""
        A line above and a line below the panels.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from pegasos import LogisticRegression
    >>> from pegasos.data.samples import load_sample
    >>> from pegasos.report.decisions import decision_figure
    >>> X, y = load_sample("pima")
    >>> model = LogisticRegression().fit(X, y)
    >>> p = model.predict_proba(X)[:, 1]
    >>> figure = decision_figure(y, model.decision_function(X), p)
    """
    truth, names = _named(np.asarray(truth))
    if scores is None and p is None:
        raise ValueError("there is nothing to draw: give scores, probabilities p, or both")
    panels = 2 * (scores is not None) + (p is not None)
    figure = new_figure(4.6 * panels, 4.9, title, note)
    axes = list(np.atleast_1d(figure.subplots(1, panels)))
    if scores is not None:
        _draw_curves(axes, truth, np.asarray(scores), threshold, names)
    if p is not None:
        _draw_reliability(axes[-1], truth, np.asarray(p))
    if path is not None:
        save(figure, path)
    return figure


def _named(truth: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Whether rows are of the second class, and what the classes are called."""
    classes = np.unique(truth)
    if len(classes) != 2:
        raise ValueError("the curves need rows of two classes: true ones and others")
    if truth.dtype == bool:
        return truth, ["the first class", "the second class"]
    return truth == classes[1], [f"class {label}" for label in classes.tolist()]


def _draw_curves(
    axes: list[Any], truth: np.ndarray, scores: np.ndarray, threshold: float, names: list[str]
) -> None:
    told = scores > threshold
    hits = np.count_nonzero(told & truth)
    recall = hits / np.count_nonzero(truth)
    false = np.count_nonzero(told & ~truth) / np.count_nonzero(~truth)
    curve = {"color": COLOURS[0], "linewidth": 2.0}
    name = "every threshold"
    RocCurveDisplay.from_predictions(truth, scores, name=name, ax=axes[0], curve_kwargs=curve)
    head(axes[0], "ROC curve")
    _mark(axes[0], (false, recall), f"threshold {threshold:.3g}")
    PrecisionRecallDisplay.from_predictions(
        truth, scores, name=name, ax=axes[1], curve_kwargs=curve
    )
    head(axes[1], "Precision and recall")
    if told.any():
        precision = hits / np.count_nonzero(told)
        words = f"threshold {threshold:.3g}: precision {precision:.3f}, recall {recall:.3f}"
        _mark(axes[1], (recall, precision), words)
    first, second = names
    axes[0].set(xlabel=f"share of {first} mistaken", ylabel=f"share of {second} found")
    axes[1].set(xlabel="recall", ylabel="precision")
    for panel in axes[:2]:
        _finish(panel, "lower left" if panel is axes[1] else "lower right")


def _mark(axes: Any, place: tuple[float, float], words: str) -> None:
    axes.plot(*place, "o", color=COLOURS[1], markersize=9, zorder=5, label=words, clip_on=False)


def _draw_reliability(axes: Any, truth: np.ndarray, p: np.ndarray) -> None:
    counts, edges = np.histogram(p, np.linspace(0.0, 1.0, 2 * BINS + 1))
    tall = _STRIP * counts / counts.max()
    axes.bar(edges[:-1], tall, np.diff(edges), align="edge", color=FAINT, alpha=0.25, linewidth=0)
    CalibrationDisplay.from_predictions(
        truth, p, n_bins=BINS, strategy="quantile", ax=axes, color=COLOURS[0], name="as told"
    )
    head(axes, "Do probabilities come true?")
    axes.set(xlabel="probability told (bars: how often)", ylabel="share that came true")
    _finish(axes, "upper left")


def _finish(axes: Any, corner: str) -> None:
    style(axes)
    axes.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.02), aspect="equal")
    axes.xaxis.label.set(fontsize=PLAIN, color=INK)
    axes.yaxis.label.set(fontsize=PLAIN, color=INK)
    axes.legend(loc=corner, frameon=False, fontsize=SMALL, labelcolor=INK)
