"""The figure of a comparison: distance from the optimum by time and by epochs, test error."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from pegasos.report.comparison import Comparison, Moment
from pegasos.report.figures import COLOURS, INK, PLAIN, SMALL, head, new_figure, save, style

_FARTHEST = 100.0  # times the optimum: what is further away is of no interest


def comparison_figure(
    comparison: Comparison,
    path: str | os.PathLike[str] | None = None,
    title: str = "",
    note: str = "",
) -> Figure:
    """How far from the optimum each method is, by seconds and by epochs.

    Parameters
    ----------
    comparison : Comparison
        With test errors, a third panel shows them.
    path : path, default=None
        Where to write the figure as well; the ending names the format (png, svg, pdf).
    title, note : str, default=""
        A line above and a line below the panels.

    Returns
    -------
    matplotlib.figure.Figure
    """
    tested = any(m.test_error is not None for curve in comparison.curves.values() for m in curve)
    figure = new_figure(15.0 if tested else 11.0, 5.4, title, note)
    by_time, by_epoch, *rest = figure.subplots(1, 3 if tested else 2)
    _draw_distances(by_time, comparison, "seconds")
    _draw_distances(by_epoch, comparison, "epoch")
    head(by_time, "How far from the best possible, by time")
    head(by_epoch, "… and by passes over the data")
    by_time.set_ylabel("above the optimum, as a share of it", fontsize=PLAIN, color=INK)
    _mark_floor(by_time, comparison, f"optimum known to {comparison.accuracy:.0e}")
    _mark_floor(by_epoch, comparison, "")
    for axes in rest:
        _draw_errors(axes, comparison)
    handles, labels = by_time.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside right upper", frameon=False, fontsize=PLAIN, handlelength=2.5
    )
    if path is not None:
        save(figure, path)
    return figure


def _draw_distances(axes: Any, comparison: Comparison, over: str) -> None:
    every = [m for curve in comparison.curves.values() for m in curve]
    distances = {
        label: [comparison.above(m.primal) for m in curve]
        for label, curve in comparison.curves.items()
    }
    _draw(axes, comparison.curves, distances, over)
    found = [d for some in distances.values() for d in some if np.isfinite(d)] or [1.0]
    lowest, highest = min(found), max(found)
    axes.set_yscale("log")
    bottom = max(comparison.accuracy / 4.0, lowest / 30.0)
    axes.set_ylim(bottom, min(_FARTHEST, max(2.0 * highest, 10.0 * lowest)))
    axes.yaxis.set_major_locator(LogLocator(10.0, numticks=20))
    axes.yaxis.set_minor_locator(NullLocator())
    _logarithmic(axes, [getattr(m, over) for m in every])
    axes.set_xlabel(_SCALES[over], fontsize=PLAIN)


_SCALES = {
    "seconds": "seconds of work (logarithmic scale)",
    "epoch": "epochs (logarithmic scale)",
}


def _draw_errors(axes: Any, comparison: Comparison) -> None:
    curves = {
        label: [m for m in curve if m.test_error is not None]
        for label, curve in comparison.curves.items()
    }
    errors = {label: [100.0 * (m.test_error or 0.0) for m in c] for label, c in curves.items()}
    _draw(axes, curves, errors, "seconds")
    found = sorted(error for some in errors.values() for error in some)
    lowest, usual = found[0], found[int(0.95 * (len(found) - 1))]
    room = max(0.1 * (usual - lowest), 0.1)
    axes.set_ylim(max(0.0, lowest - room), usual + room)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g} %"))
    _logarithmic(axes, [m.seconds for curve in curves.values() for m in curve])
    axes.set_xlabel(_SCALES["seconds"], fontsize=PLAIN)
    axes.set_ylabel("rows of the test file told wrongly", fontsize=PLAIN, color=INK)
    head(axes, "Test error, by time")


def _draw(axes: Any, curves: dict[str, list[Moment]], values: Any, over: str) -> None:
    for k, (label, curve) in enumerate(curves.items()):
        colour = COLOURS[k % len(COLOURS)]
        dashes = "solid" if k < len(COLOURS) else (0, (4, 1.5))
        x, y = [getattr(m, over) for m in curve], values[label]
        mark = "." if len(curve) < 30 else ""
        axes.plot(x, y, color=colour, linestyle=dashes, linewidth=1.8, marker=mark, label=label)
        axes.plot(x[-1:], y[-1:], "o", color=colour, markersize=5)
    style(axes)


def _mark_floor(axes: Any, comparison: Comparison, words: str) -> None:
    """Below the accuracy of the optimum nothing can be told apart."""
    floor, bottom = comparison.accuracy, axes.get_ylim()[0]
    axes.axhspan(1e-300, floor, color="#f2f2f2", zorder=0)
    axes.axhline(floor, color=INK, linewidth=1.2, linestyle=(0, (1, 1.5)))
    axes.set_ylim(bottom=bottom)
    seen = floor > bottom
    axes.annotate(
        words if seen or not words else f"{words}, below this panel",
        (0.0, max(floor, bottom)),
        (6, 4),
        axes.get_yaxis_transform(),
        "offset points",
        color=INK,
        fontsize=SMALL,
    )


def _logarithmic(axes: Any, values: Sequence[float]) -> None:
    """A logarithmic axis with at least two marks, each in plain figures."""
    seen = [v for v in values if v > 0] or [1.0]
    low, high = min(seen), max(seen)
    axes.set_xscale("log")
    if high <= 10.0 * low:
        low, high = 10.0 ** np.floor(np.log10(low)), 10.0 ** np.ceil(np.log10(1.01 * high))
    axes.set_xlim(0.85 * low, 1.3 * high)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
