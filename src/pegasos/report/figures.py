"""Figures of runs: matplotlib's objects without pyplot, files replaced in one piece."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from pegasos.solvers.driver import Progress

COLOURS = (  # Okabe & Ito: safe for the colour-blind
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7"),
    *("#E69F00", "#56B4E9", "#000000"),
)
FORMATS = ("png", "svg", "pdf")
INK, FAINT, GRID = "#222222", "#666666", "#e8e8e8"
SMALL, PLAIN, LARGE = 9.5, 10.5, 12.0
_LINE: dict[str, Any] = {"linewidth": 2.0, "drawstyle": "steps-post"}  # held until the next proof


def convergence_figure(
    runs: Mapping[str, Sequence[Progress]],
    path: str | os.PathLike[str] | None = None,
    tol: float = 1e-3,
    title: str = "",
    note: str = "",
) -> Figure:
    """Objective and proven bound of runs on one problem, and the gap between them.

    Parameters
    ----------
    runs : mapping of a label to a history
        A history is a list of `Progress`, such as `history_` of a fitted model or `history` of a
        run; moments without a certificate are left out. All runs minimise the same objective.
    path : path, default=None
        Where to write the figure as well; the ending names the format (png, svg, pdf). A file
        that is there is replaced in one piece.
    tol : float, default=1e-3
        The relative gap that ends a fit, drawn as a line.
    title, note : str, default=""
        A line above and a line below the panels.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from pegasos import LinearSVC
    >>> from pegasos.data.samples import load_sample
    >>> from pegasos.report.figures import convergence_figure
    >>> model = LinearSVC(loss="hinge", lam=1e-3).fit(*load_sample("pima"))
    >>> figure = convergence_figure({"LinearSVC": model.history_})
    """
    if not runs:
        raise ValueError("there is no run to draw")
    curves = {label: _curve(history) for label, history in runs.items()}
    figure = new_figure(11.0, 5.8, title, note)
    left, right = cast(np.ndarray, figure.subfigures(1, 2, wspace=0.03))
    _draw_bounds(left, curves)
    _draw_gaps(right, curves, tol)
    if path is not None:
        save(figure, path)
    return figure


def new_figure(width: float, height: float, title: str = "", note: str = "") -> Figure:
    """An empty figure in inches, a line above and a line below its panels."""
    figure = Figure(figsize=(width, height), dpi=150, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.08)  # type: ignore[union-attr, call-arg]
    if title:
        figure.suptitle(title, x=0.015, ha="left", fontsize=LARGE + 2.5, color=INK, weight="bold")
    if note:
        figure.supxlabel(note, x=0.015, ha="left", fontsize=SMALL, color=FAINT)
    return figure


def _curve(history: Sequence[Progress]) -> np.ndarray:
    """Rows: seconds, objective, bound, relative gap."""
    seen = [(p.seconds, p.certificate) for p in history if p.certificate is not None]
    if not seen:
        raise ValueError("a history without a certificate cannot be drawn")
    return np.array([(s, c.primal, c.dual, c.relative_gap) for s, c in seen]).T


def _draw_bounds(half: Any, curves: Mapping[str, np.ndarray]) -> None:
    """One panel per run: the objective from above, the bound from below, the gap shaded."""
    best = min(float(curve[1].min()) for curve in curves.values())
    panels = np.atleast_1d(half.subplots(len(curves), 1, sharex=True))
    for axes, (label, (t, primal, dual, _)), colour in _coloured(panels, curves):
        axes.fill_between(t, dual, primal, step="post", color=colour, alpha=0.15, linewidth=0)
        mark = "." if t.size < 10 else ""
        axes.plot(t, primal, color=colour, marker=mark, **_LINE)
        axes.plot(t, dual, color=colour, marker=mark, linestyle=(0, (3, 1)), **_LINE)
        _over_time(axes, curves)
        axes.set_ylim(0.0, 2.0 * best)
        axes.set_ylabel("objective", fontsize=PLAIN, color=INK)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,g}"))
        _say(axes, label, (0.985, 0.93), colour, ha="right", va="top", weight="bold")
    panels[-1].set_xlabel("seconds (logarithmic scale)", fontsize=PLAIN)
    head(panels[0], "The best possible objective is caught between two lines")
    stretches = [_stretch(curve) for curve in curves.values()]
    widest = int(np.argmax(stretches))
    if stretches[widest] > 1.0:
        _explain(panels[widest], list(curves.values())[widest], best)
    else:  # no room between the lines
        text = "upper line: objective found so far\nlower line: lower bound proven so far"
        _say(panels[0], text, (0.985, 0.06), INK, ha="right", va="bottom")


def _explain(axes: Any, curve: np.ndarray, best: float) -> None:
    """Name the two lines and what lies between them, where the curve comes into view."""
    t, primal, dual, _ = curve
    k = int(np.argmax((primal < 2.0 * best) & (dual > 0.0)))
    late = int(np.argmax(dual > 0.5 * best))
    at = {"textcoords": "offset points", "color": INK, "fontsize": SMALL}
    axes.annotate("objective found so far", (t[k], primal[k]), (2, 5), va="bottom", **at)
    axes.annotate("lower bound proven so far", (t[late], dual[late]), (8, -8), va="top", **at)
    middle = 0.5 * (primal[k] + dual[k])
    axes.annotate("the best possible is\nsomewhere in here", (t[k], middle), (8, 0), **at)


def _stretch(curve: np.ndarray) -> float:
    """For how long, on the axis of time, the gap stays wide enough to write in."""
    t, gap = curve[0], curve[3]
    started, closed = t[gap < 1.0], t[gap < 0.3]
    return float(np.log(closed[0] / started[0])) if closed.size else 0.0


def _draw_gaps(half: Any, curves: Mapping[str, np.ndarray], tol: float) -> None:
    """All runs: the relative gap against time, with the tolerance."""
    axes = half.subplots()
    for _, (label, (t, *_, gap)), colour in _coloured([axes] * len(curves), curves):
        gap = np.maximum(gap, 1e-16)
        axes.plot(t, gap, color=colour, label=label, **_LINE)
        axes.plot(t[-1:], gap[-1:], "o", color=colour, markersize=6)
    axes.axhline(tol, color=INK, linewidth=1.2, linestyle=(0, (1, 1.5)))
    _over_time(axes, curves)
    lowest = max(1e-16, min(tol, *(float(curve[3].min()) for curve in curves.values())))
    axes.set_yscale("log")
    strip = (lowest / 1.5) ** (0.09 + 0.055 * len(curves))  # below the curves, for their names
    axes.set_ylim(lowest * strip, 1.5)
    axes.yaxis.set_major_locator(LogLocator(10.0))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{100 * v:g} %"))
    axes.set_ylabel("proven gap, as a share of the objective", fontsize=PLAIN, color=INK)
    axes.set_xlabel("seconds (logarithmic scale)", fontsize=PLAIN)
    head(axes, "How far from the best possible it can still be")
    text = f"tol = {100 * tol:g} %: a fit stops here"
    place = axes.get_yaxis_transform()
    axes.annotate(
        text, (0.0, tol), (6, -5), place, "offset points", va="top", color=INK, fontsize=SMALL
    )
    axes.legend(frameon=False, fontsize=PLAIN, loc="lower left", labelcolor="linecolor")


def _coloured(panels: Any, curves: Mapping[str, np.ndarray]) -> Any:
    colours = (COLOURS[k % len(COLOURS)] for k in range(len(curves)))
    return zip(panels, curves.items(), colours, strict=True)


def head(axes: Any, text: str) -> None:
    """The title of a panel."""
    axes.set_title(text, loc="left", fontsize=LARGE, color=INK, pad=10)


def _say(axes: Any, text: str, place: tuple[float, float], colour: str, **how: Any) -> None:
    axes.text(*place, text, transform=axes.transAxes, color=colour, fontsize=PLAIN, **how)


def _over_time(axes: Any, curves: Mapping[str, np.ndarray]) -> None:
    """The look and the axis of time that the panels share."""
    style(axes)
    first = min(curve[0][0] for curve in curves.values())
    last = max(curve[0][-1] for curve in curves.values())
    axes.set_xscale("log")
    if last > 10.0 * first:
        axes.set_xlim(0.85 * first, 1.4 * last)
    else:  # at least two marks
        axes.set_xlim(0.9 * 10 ** np.floor(np.log10(first)), 1.1 * 10 ** np.ceil(np.log10(last)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def style(axes: Any) -> None:
    """The look of all panels."""
    axes.grid(True, which="major", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=SMALL, colors=INK, which="both", length=3)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(FAINT)


def check_writable(path: str | os.PathLike[str]) -> Path:
    """The file that a figure would become, or an error now rather than after the work.

    Parameters
    ----------
    path : path
        A name that ends in .png, .svg or .pdf.

    Returns
    -------
    Path
        What `path` points to, if it is a link.

    Raises
    ------
    OSError
        If the file cannot be written.
    ValueError
        If the ending names no format.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise OSError(f"{path}: is not a regular file")
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(f"{path}: is write-protected")
    if _format(path) not in FORMATS:
        raise ValueError(f"{path}: the name of a figure must end in .{', .'.join(FORMATS)}")
    temporary = _temporary(target)
    try:
        with open(temporary, "wb"):
            pass
        temporary.unlink()
    except OSError as error:
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
    return target


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write beside the file, then put it in its place: it is the old one or the new one, whole."""
    target = check_writable(path)
    temporary = _temporary(target)
    try:
        with open(temporary, "wb") as stream:
            figure.savefig(stream, format=_format(path))
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _format(path: str | os.PathLike[str]) -> str:
    return Path(path).suffix.lower().lstrip(".")


def _temporary(target: Path) -> Path:
    return target.with_name(f".{target.name}.{os.getpid()}.tmp")
