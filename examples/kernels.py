"""The figures of docs/guide/kernels.md.

python examples/kernels.py [FOLDER]      (default: docs/images)
"""

import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import make_blobs, make_moons

from pegasos import KernelPegasosClassifier
from pegasos.data.samples import load_sample
from pegasos.kernels import Gaussian, Linear, Polynomial
from pegasos.report.boundary import DecisionDisplay
from pegasos.report.figures import head, new_figure, save

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"


def two_measurements():
    """Glucose and body mass index of the patients who have both, scaled; 1 = diabetes."""
    X, y = load_sample("pima")
    X = X[:, [1, 5]]
    known = (X > 0).all(axis=1)
    X, y = X[known], y[known]
    return (X - X.mean(axis=0)) / X.std(axis=0), np.where(y == 1, "diabetes", "no diabetes")


def kernels(folder: Path) -> dict[str, float]:
    """One set of rows, four kernels; the errors on the rows."""
    X, y = make_moons(300, noise=0.25, random_state=0)
    y = np.where(y == 1, "lower", "upper")
    shown = {
        "linear": Linear() + 1,
        "polynomial of degree 3": Polynomial(3, 1.0, 1.0),
        "Gaussian, gamma = 1": Gaussian(1.0),
        "Gaussian, gamma = 30": Gaussian(30.0),
    }
    note = "300 rows, noise 0.25; kernelised Pegasos, C = 1, 200 epochs, averaged."
    figure = new_figure(10.0, 7.6, "The kernel decides which boundaries are simple", note)
    errors = {}
    for axes, (name, kernel) in zip(figure.subplots(2, 2).flat, shown.items(), strict=True):
        model = KernelPegasosClassifier(kernel=kernel, average=True, max_iter=200, random_state=0)
        model.fit(X, y)
        DecisionDisplay.from_estimator(model, X, y, ax=axes)
        head(axes, name)
        errors[name] = 1.0 - model.score(X, y)
    save(figure, folder / "kernels.png")
    return errors


def budget(folder: Path) -> list[int]:
    """All support vectors, and thirty merged ones; how many there are."""
    X, y = two_measurements()
    figure = new_figure(10.0, 4.4, "Thirty merged support vectors in place of hundreds")
    options = {"gamma": 0.5, "average": True, "max_iter": 50, "random_state": 0}
    counts = []
    for axes, most in zip(figure.subplots(1, 2), (None, 30), strict=True):
        model = KernelPegasosClassifier(budget=most, **options).fit(X, y)
        DecisionDisplay.from_estimator(model, X, y, ax=axes, size=9.0)
        head(axes, f"budget={most}: {1.0 - model.score(X, y):.1%} of the rows wrong")
        axes.set(xlabel="plasma glucose", ylabel="body mass index")
        counts.append(model.dual_coef_.shape[1])
    save(figure, folder / "kernel-budget.png")
    return counts


def classes(folder: Path) -> float:
    """Several classes."""
    X, y = make_blobs(400, centers=4, cluster_std=1.4, random_state=3)
    model = KernelPegasosClassifier(gamma=0.2, budget=20, average=True, max_iter=20, random_state=0)
    model.fit(X, y)
    figure = new_figure(6.4, 4.8, "Each class against the rest")
    DecisionDisplay.from_estimator(model, X, y, ax=figure.subplots())
    save(figure, folder / "kernel-classes.png")
    return model.score(X, y)


def main(folder: Path = IMAGES) -> None:
    for draw in (kernels, budget, classes):
        print(draw.__name__, draw(folder))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
