"""The figures of docs/guide/from-perceptron-to-pegasos.md, from the data that ship with pegasos.

python examples/from_perceptron_to_pegasos.py [FOLDER]      (default: docs/images)
"""

import sys
from copy import copy
from pathlib import Path

import numpy as np

from pegasos import LinearSVC, PegasosClassifier
from pegasos.data.check import as_rows
from pegasos.data.samples import load_sample
from pegasos.losses import Hinge, Pinball
from pegasos.objective.problem import C_from_lam, make_problem
from pegasos.report.comparison import Comparison, Limit, Method, compare, method_named, warm_up
from pegasos.report.comparison_figure import comparison_figure
from pegasos.report.figures import (
    COLOURS,
    FAINT,
    INK,
    PLAIN,
    SMALL,
    convergence_figure,
    head,
    new_figure,
    save,
    style,
)
from pegasos.solvers.driver import Stop, run
from pegasos.solvers.subgradient import Subgradient

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
LAM = 1e-3
_NOTE = f"Spambase: 4,601 e-mails, scaled; hinge loss, λ = {LAM:g}, steps 1/(λt)."
_PIMA = "Pima: 752 patients with both measurements, scaled; a fresh random order in each epoch."


def two_measurements():
    """Glucose and body mass index of the patients who have both, scaled; 1 = diabetes."""
    X, y = load_sample("pima")
    X, y = X[:, [1, 5]], y
    known = (X > 0).all(axis=1)
    X, y = X[known], y[known]
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def spam():
    """All e-mails, scaled, in random order (they come sorted by class); 1 = spam."""
    X, y = load_sample("spambase")
    order = np.random.default_rng(0).permutation(len(y))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X[order], y[order]


def spam_problem(loss, lam=LAM):
    X, y = spam()
    c = np.full(len(y), C_from_lam(lam, len(y)))
    return make_problem(as_rows(X, 1.0), np.where(y == 1, 1.0, -1.0), c, loss, free=True)


def lines(folder: Path) -> dict[str, float]:
    """The perceptron after each of ten epochs, and the support vector machine; train errors."""
    X, y = two_measurements()
    perceptron, models = PegasosClassifier.preset("perceptron"), []
    rng = np.random.default_rng(0)
    for _ in range(20):
        order = rng.permutation(len(y))
        models.append(copy(perceptron.partial_fit(X[order], y[order])))
    models = models[10:]
    svm = LinearSVC(loss="hinge", lam=LAM, random_state=0).fit(X, y)
    title = "Where two classes overlap, the perceptron never comes to rest"
    figure = new_figure(9.6, 5.8, title, _PIMA)
    axes = figure.subplots()
    for kind, mark, colour in ((0, "o", COLOURS[0]), (1, "^", COLOURS[1])):
        name = ("no diabetes", "diabetes")[kind]
        axes.plot(*X[y == kind].T, mark, color=colour, alpha=0.35, markersize=3.5, label=name)
    for k, model in enumerate(models):
        label = "perceptron after each of\nthe epochs 11 to 20" if k == 0 else None
        _line(axes, model, label, color=FAINT, linewidth=1.0)
    _line(axes, svm, "support vector machine", color=INK, linewidth=2.5)
    axes.set(xlim=(-2.6, 2.8), ylim=(-2.4, 4.2))
    axes.set_xlabel("plasma glucose (standard deviations from the mean)", fontsize=PLAIN)
    axes.set_ylabel("body mass index (the same)", fontsize=PLAIN)
    style(axes)
    figure.legend(frameon=False, fontsize=SMALL, loc="outside right upper")
    save(figure, folder / "guide-lines.png")
    errors = [1.0 - model.score(X, y) for model in models]
    return {"best": min(errors), "worst": max(errors), "svm": 1.0 - svm.score(X, y)}


def _line(axes, model, label, **look):
    """Where w.x + b = 0, long enough for the panel."""
    w, b = model.coef_[0], model.intercept_[0]
    foot, along = -b * w / (w @ w), np.array([-w[1], w[0]]) / np.linalg.norm(w)
    ends = np.array([foot - 10.0 * along, foot + 10.0 * along])
    axes.plot(*ends.T, label=label, **look)


def steps(folder: Path) -> Comparison:
    """The last point, the averages of all points: the same steps 1/(lam t)."""
    averages = {"last point": None, "average of all": 0.0, "average with weights t": 1.0}
    methods = {label: Method(Subgradient(power=power)) for label, power in averages.items()}
    result = _compared(spam_problem(Hinge()), methods, Limit(300, 600.0))
    figure = new_figure(7.6, 5.2, "The same steps, three answers", _NOTE)
    axes = figure.subplots()
    for (label, curve), colour in zip(result.curves.items(), COLOURS, strict=False):
        epochs = [m.epoch for m in curve]
        above = [result.above(m.primal) for m in curve]
        axes.plot(epochs, above, color=colour, linewidth=1.8, label=label)
    axes.set(xscale="log", yscale="log")
    axes.set_xlabel("epochs (logarithmic scale)", fontsize=PLAIN)
    axes.set_ylabel("above the optimum, as a share of it", fontsize=PLAIN)
    style(axes)
    axes.legend(frameon=False, fontsize=PLAIN, labelcolor="linecolor")
    save(figure, folder / "guide-steps.png")
    return result


def batches(folder: Path) -> Comparison:
    """All rows a step, about a hundred, one; the last point of each."""
    sizes = {"all rows a step": 0, "100 rows": 100, "1 row": 1}
    methods = {label: Method(Subgradient(batch=k, power=None)) for label, k in sizes.items()}
    result = _compared(spam_problem(Hinge()), methods, Limit(300, 600.0))
    note = f"{_NOTE} The last point of each, not an average."
    comparison_figure(result, folder / "guide-batches.png", "Rows of a step: all, some, one", note)
    return result


def exact(folder: Path) -> Comparison:
    """Pegasos and its exact relative."""
    problem = spam_problem(Hinge())
    methods = {
        "Pegasos": method_named("pegasos", problem),
        "dual coordinate descent": method_named("dual", problem),
    }
    result = _compared(problem, methods, Limit(1000, 600.0))
    note = f"{_NOTE} Dual coordinate descent has no steps to choose."
    title = "One row at a time, two ways to step"
    comparison_figure(result, folder / "guide-exact.png", title, note)
    return result


def _compared(problem, methods, limit) -> Comparison:
    warm_up(problem, methods)
    return compare(problem, methods, limit)


def proof(folder: Path) -> float:
    """Objective and bound of Pegasos, epoch by epoch; the proven gap at the end."""
    problem = spam_problem(Hinge(), 1e-2)
    stop = Stop(tol=1e-2, max_epochs=2000, every=1)
    run(Subgradient(), problem, Stop(max_epochs=2))  # compiled before the clock starts
    done = run(Subgradient(), problem, stop)
    convergence_figure(
        {"Pegasos": done.history},
        folder / "guide-proof.png",
        tol=1e-2,
        title="Pegasos proves its own answer",
        note="Spambase: 4,601 e-mails, scaled; hinge loss, λ = 0.01.",
    )
    return done.certificate.relative_gap


def noise(folder: Path, repeats: int = 6) -> dict[str, np.ndarray]:
    """Wrong labels: how far the weights turn, and the error on the true labels, per loss."""
    X, y = (part[::5] for part in spam())
    shares = np.array([0.0, 0.05, 0.1, 0.15, 0.2, 0.25])
    losses = {"hinge": Hinge(), "pinball, τ = 0.1": Pinball(0.1), "pinball, τ = 0.5": Pinball(0.5)}
    found = {
        label: np.array([_disturbed(X, y, loss, share, repeats) for share in shares])
        for label, loss in losses.items()
    }
    note = f"Every fifth e-mail of Spambase, λ = {LAM:g}; means over {repeats} draws of the noise."
    figure = new_figure(11.0, 5.0, "Wrong labels: pinball turns less, hinge errs less here", note)
    panels = figure.subplots(1, 2)
    for (label, values), colour in zip(found.items(), COLOURS, strict=False):
        for axes, series in zip(panels, values.T, strict=True):
            axes.plot(100 * shares, series, "o-", color=colour, linewidth=1.8, label=label)
    for axes in panels:
        style(axes)
        axes.set_ylim(bottom=0.0)
        axes.set_xlabel("labels turned over, in percent", fontsize=PLAIN)
    head(panels[0], "Angle between the weights with and without noise")
    head(panels[1], "Rows told wrongly, by their true labels")
    panels[0].set_ylabel("degrees", fontsize=PLAIN)
    panels[1].set_ylabel("percent", fontsize=PLAIN)
    panels[0].legend(frameon=False, fontsize=PLAIN, labelcolor="linecolor", loc="upper left")
    save(figure, folder / "guide-noise.png")
    return found


def _disturbed(X, y, loss, share, repeats) -> np.ndarray:
    """Angle in degrees and error in percent, averaged over draws of the noise."""
    clean = LinearSVC(loss=loss, lam=LAM, random_state=0).fit(X, y).coef_[0]
    results = []
    for seed in range(repeats):
        wrong = np.random.default_rng(seed).random(len(y)) < share
        model = LinearSVC(loss=loss, lam=LAM, random_state=0).fit(X, np.where(wrong, 1 - y, y))
        w = model.coef_[0]
        cosine = clean @ w / np.sqrt((clean @ clean) * (w @ w))
        results.append((np.degrees(np.arccos(min(1.0, cosine))), 100 * (1 - model.score(X, y))))
    return np.mean(results, axis=0)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES
    errors = lines(folder)
    print(
        f"lines: perceptron wrong on {100 * errors['best']:.1f} to {100 * errors['worst']:.1f} %, "
        f"the SVM on {100 * errors['svm']:.1f} %"
    )
    for draw in (steps, batches, exact):
        result = draw(folder)
        for label, curve in result.curves.items():
            end = curve[-1]
            print(
                f"{draw.__name__}: {label}: {result.above(end.primal):.1e} above the optimum after "
                f"{end.epoch} epochs, {end.seconds:.2f} s"
            )
    for label, (angle, error) in ((k, v[-1]) for k, v in noise(folder).items()):
        print(f"noise: {label}: {angle:.0f} degrees, {error:.1f} % wrong at the most noise")
    print(f"proof: gap {proof(folder):.1e}")


if __name__ == "__main__":
    main()
