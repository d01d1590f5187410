"""The figure of docs/guide/cells.md.

python examples/cells.py [FOLDER]      (default: docs/images)
"""

import sys
from pathlib import Path

import numpy as np

from pegasos import SVC, CellSVC
from pegasos.report.boundary import DecisionDisplay
from pegasos.report.figures import INK, head, new_figure, save

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"


def spirals(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two arms that wind around each other, with noise."""
    rng = np.random.default_rng(seed)
    arm = rng.integers(0, 2, n)
    angle = 3.0 * np.pi * np.sqrt(rng.random(n))
    turn = angle + np.pi * arm
    X = angle[:, None] * np.column_stack([np.cos(turn), np.sin(turn)])
    return X + 0.7 * rng.normal(size=(n, 2)), np.where(arm == 1, "second arm", "first arm")


def cells(folder: Path = IMAGES) -> dict[str, float]:
    """Borders of the cells and boundaries with and without overlap, and of one exact SVC."""
    X, y = spirals(3000, seed=0)
    test, truth = spirals(20_000, seed=1)
    options = {"C": 1.0, "gamma": 0.3, "random_state": 0}
    shown = {
        "one SVC": SVC(**options),
        "cells, overlap=0": CellSVC(cell_size=300, overlap=0.0, **options),
        "cells, overlap=0.25": CellSVC(cell_size=300, **options),
    }
    note = (
        "3,000 rows, C = 1, gamma = 0.3; cells of at most 300 rows, their borders dotted. "
        "Errors on 20,000 new rows."
    )
    figure = new_figure(13.0, 5.0, "An exact machine in each cell, and one for all", note)
    scores = {}
    for axes, (name, model) in zip(figure.subplots(1, 3), shown.items(), strict=True):
        model.fit(X, y)
        DecisionDisplay.from_estimator(
            model, X, y, ax=axes, margins=False, support=False, size=4.0, legend=name == "one SVC"
        )
        if isinstance(model, CellSVC):
            borders(axes, np.array([cell.centre for cell in model.cells_]))
        scores[name] = model.score(test, truth)
        head(axes, f"{name}: {1.0 - scores[name]:.2%} wrong")
    save(figure, folder / "cells.png")
    return scores


def borders(axes, centres: np.ndarray) -> None:
    """Where the nearest centre changes."""
    grids = (np.linspace(*axes.get_xlim(), 600), np.linspace(*axes.get_ylim(), 600))
    asked = np.stack(np.meshgrid(*grids), axis=-1)
    squares = ((asked[:, :, None] - centres) ** 2).sum(axis=3)
    for k in range(len(centres)):
        lead = np.delete(squares, k, axis=2).min(axis=2) - squares[:, :, k]
        axes.contour(*grids, lead, [0.0], colors=INK, linewidths=0.9, linestyles="dotted", zorder=5)


if __name__ == "__main__":
    print(cells(*map(Path, sys.argv[1:])))
