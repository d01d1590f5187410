"""A picture of a classifier of two features: regions, boundary, margins, support vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from matplotlib.colors import ListedColormap, to_rgb
from matplotlib.lines import Line2D
from sklearn.utils.validation import check_is_fitted

from pegasos.report.figures import COLOURS, INK, SMALL, new_figure, style

_MARKS = ("o", "^", "s", "D", "v", "P", "X")


class DecisionDisplay:
    """Decision values on a grid over two features; made by `from_estimator`, drawn by `plot`.

    Parameters
    ----------
    axes : two arrays, axis0 and axis1
        The grid.
    scores : array of shape (len(axis1), len(axis0)), or with a third axis for several classes
        Of two classes f(x); of several f_k(x), or others from which predictions come.
    X, y : arrays
        The rows drawn, and their labels.
    classes : array
    regions : array of shape (len(axis1), len(axis0))
        The number of the class that is predicted.
    vectors : array of shape (n_support, 2) or None
        Support vectors, which get a ring.

    Attributes
    ----------
    ax_, figure_ : after `plot`
    """

    threshold = 0.0  # where the boundary is, of two classes

    def __init__(self, axes, scores, *, X, y, classes, regions, vectors=None):
        (self.axis0, self.axis1), self.scores, self.regions = axes, scores, regions
        self.X, self.y, self.classes, self.vectors = X, y, classes, vectors

    @classmethod
    def from_estimator(cls, model, X, y, *, ax=None, grid=300, margin=0.08, **options):
        """Ask a fitted classifier of two features what it predicts and decides by, and draw it.

        Parameters
        ----------
        model : fitted classifier with `predict` and `decision_function`
            Support vectors are shown if it has `support_vectors_`.
        X, y : the rows to draw, with two features, and their labels
        ax : matplotlib axes, default=None
            Where to draw; by default in a new figure.
        grid : int, default=300
            Points of the grid in each direction.
        margin : float, default=0.08
            Room around the rows, as a share of their extent.
        options
            As of `plot`.

        Returns
        -------
        DecisionDisplay
        """
        check_is_fitted(model)
        X = X.toarray() if sp.issparse(X) else np.asarray(X)
        if X.ndim != 2 or X.shape[1] != 2:
            raise ValueError(f"a picture needs X of two features, got shape {X.shape}")
        low, high = X.min(axis=0), X.max(axis=0)
        room = margin * np.where(high > low, high - low, 1.0)
        axis0, axis1 = (np.linspace(low[k] - room[k], high[k] + room[k], grid) for k in (0, 1))
        asked = np.stack(np.meshgrid(axis0, axis1), axis=-1).reshape(-1, 2)
        if X.dtype.kind == "f":
            asked = asked.astype(X.dtype)
        scores = np.asarray(model.decision_function(asked))
        display = cls(
            (axis0, axis1),
            scores.reshape(grid, grid, *scores.shape[1:]),
            X=X,
            y=np.asarray(y),
            classes=model.classes_,
            regions=np.searchsorted(model.classes_, model.predict(asked)).reshape(grid, grid),
            vectors=_vectors(model),
        )
        display.threshold = float(getattr(model, "threshold_", 0.0))
        return display.plot(ax=ax, **options)

    def plot(self, ax=None, *, margins=True, support=True, legend=True, size=14.0):
        """Draw.

        Parameters
        ----------
        ax : matplotlib axes, default=None
        margins : bool, default=True
            Of two classes also the lines f = -1 and f = 1.
        support : bool, default=True
            Rings around support vectors.
        legend : bool, default=True
        size : float, default=14.0
            Of the marks of rows.
        """
        if ax is None:
            ax = new_figure(6.4, 4.8).subplots()
        colours = [COLOURS[k % len(COLOURS)] for k in range(len(self.classes))]
        self._draw_regions(ax, colours, margins)
        handles = []
        for k, (label, colour) in enumerate(zip(self.classes, colours, strict=True)):
            mark, own = _MARKS[k % len(_MARKS)], self.X[self.y == label]
            ax.scatter(*own.T, s=size, c=colour, marker=mark, alpha=0.75, linewidths=0, zorder=3)
            handles.append(Line2D([], [], color=colour, marker=mark, ls="", label=str(label)))
        if support and self.vectors is not None:
            ring = {"facecolors": "none", "edgecolors": INK, "linewidths": 0.8}
            ax.scatter(*self.vectors.T, s=3.5 * size, zorder=4, **ring)
            name = f"{len(self.vectors):,} support vectors"
            handles.append(Line2D([], [], color=INK, marker="o", mfc="none", ls="", label=name))
        ax.set(xlim=self.axis0[[0, -1]], ylim=self.axis1[[0, -1]])
        style(ax)
        ax.grid(False)
        if margins and self.scores.ndim == 2:
            handles.append(Line2D([], [], color=INK, lw=1.0, ls="dashed", label="f = ±1"))
        if legend:  # below, where it hides nothing
            ax.legend(
                handles=handles,
                loc="upper left",
                bbox_to_anchor=(-0.02, -0.14),
                ncols=min(6, len(handles)),
                frameon=False,
                fontsize=SMALL - 1.0,
                handletextpad=0.3,
                columnspacing=1.0,
            )
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_regions(self, ax: Any, colours: list[str], margins: bool) -> None:
        grid = self.axis0, self.axis1
        pale = ListedColormap([[0.85 + 0.15 * c for c in to_rgb(colour)] for colour in colours])
        shown, top = self.regions.astype(float), len(colours) - 0.5
        ax.pcolormesh(*grid, shown, cmap=pale, vmin=-0.5, vmax=top, rasterized=True, zorder=0)
        line: dict[str, Any] = {"colors": INK, "zorder": 2}
        if self.scores.ndim == 3:
            for lead in self._leads():
                ax.contour(*grid, lead, [0.0], linewidths=1.4, **line)
            return
        ax.contour(*grid, self.scores, [self.threshold], linewidths=1.8, **line)
        if margins:
            dashed = {"linewidths": 1.0, "linestyles": "dashed", **line}
            ax.contour(*grid, self.scores, [-1.0, 1.0], **dashed)

    def _leads(self) -> list[np.ndarray]:
        """Of several classes a function each that is positive where the class is predicted: its
        lead in score if scores decide, and not votes of pairs."""
        if np.array_equal(self.scores.argmax(axis=2), self.regions):
            columns = range(self.scores.shape[2])
            of_all = [np.delete(self.scores, k, axis=2).max(axis=2) for k in columns]
            return [self.scores[:, :, k] - rest for k, rest in zip(columns, of_all, strict=True)]
        return [(self.regions == k) - 0.5 for k in np.unique(self.regions)]


def _vectors(model: Any) -> np.ndarray | None:
    """The support vectors of a model, if it has any to show."""
    found = getattr(model, "support_vectors_", None)
    if found is None:
        return None
    return found.toarray() if sp.issparse(found) else np.asarray(found)
