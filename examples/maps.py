"""The figure of docs/guide/maps.md: test error against the number of features, map by map.

python examples/maps.py [FOLDER]      (default: docs/images)
"""

import sys
from pathlib import Path

import numpy as np
from sklearn.pipeline import make_pipeline

from pegasos import SVC, FourierMap, LinearSVC, NystroemMap
from pegasos.data.samples import load_sample
from pegasos.report.figures import COLOURS, FAINT, new_figure, save, style

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
GAMMA, C = 0.02, 10.0


def e_mails():
    """Spambase, half to train and half to test, its frequencies on a logarithmic scale."""
    X, y = load_sample("spambase")
    X = np.log1p(10.0 * X)
    X = ((X - X.mean(axis=0)) / X.std(axis=0)).astype(np.float32)
    order = np.random.default_rng(0).permutation(len(y))
    half = len(y) // 2
    return X[order[:half]], y[order[:half]], X[order[half:]], y[order[half:]]


def maps(folder: Path, sizes=(10, 30, 100, 300, 1000), seeds=5) -> dict[str, list[float]]:
    """Mean test errors over some seeds, for each size."""
    X, y, X_test, y_test = e_mails()
    exact = SVC(C=C, gamma=GAMMA).fit(X, y)
    shown = {
        "Nyström, k-means": {"prototypes": "kmeans"},
        "Nyström, random": {"prototypes": "random"},
        "Nyström, leverage": {"prototypes": "leverage"},
        "Nyström, entropy": {"prototypes": "entropy"},
        "Fourier": None,
    }
    errors = {name: [] for name in shown}
    for name, settings in shown.items():
        for m in sizes:
            found = []
            for seed in range(seeds):
                known = {"gamma": GAMMA, "m": m, "random_state": seed}
                made = FourierMap(**known) if settings is None else NystroemMap(**known, **settings)
                model = make_pipeline(made, LinearSVC(C=C, loss="hinge")).fit(X, y)
                found.append(1.0 - model.score(X_test, y_test))
            errors[name].append(float(np.mean(found)))
    note = f"{len(y)} e-mails of spambase, C = {C:g}, gamma = {GAMMA:g}; means of {seeds} seeds."
    _draw(folder, note, errors, 1.0 - exact.score(X_test, y_test), sizes)
    return errors


def _draw(folder: Path, note: str, errors, exact: float, sizes) -> None:
    figure = new_figure(7.6, 4.6, "More features come closer to the exact kernel machine", note)
    axes = figure.subplots()
    for (name, values), colour in zip(errors.items(), COLOURS, strict=False):
        axes.plot(sizes, 100.0 * np.array(values), "o-", color=colour, label=name, linewidth=2.0)
    axes.axhline(100.0 * exact, color=FAINT, linestyle="--", label="exact SVC")
    axes.set(xscale="log", xlabel="m, columns of the map", ylabel="test error, %")
    axes.set_xticks(sizes, [str(m) for m in sizes])
    axes.set_xticks([], minor=True)
    style(axes)
    axes.legend(frameon=False)
    save(figure, folder / "maps.png")


def main(folder: Path = IMAGES) -> None:
    print(maps(folder))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
