"""Several classes: accuracy and time of every mode beside scikit-learn's.

C is the best of a small grid by the accuracy on a fifth of the training rows, found with ours and
used by both; accuracy is that on the test rows. Ours has its defaults (a free intercept, tol 1e-3
proven for every problem) and float32 rows on two threads, scikit-learn its defaults and float64
rows, which it would otherwise copy. Seconds of a fit are the best of three, or one of 20 and more;
compilation is not counted. A fit of scikit-learn is stopped after 100 s.

ovr             squared hinge; scikit-learn: LinearSVC
ovo             hinge; scikit-learn: SVC(kernel="linear"), equal votes to the first class
crammer_singer  its own hinge; scikit-learn: LinearSVC(multi_class="crammer_singer")
rbf             hinge, gamma="scale", each pair; scikit-learn: SVC

Published splits; of news20, whose test rows are not at hand, every fifth row of a random order.
Text as sublinear TF-IDF, satimage and pendigits standardised, pixels divided by 255, letter and
usps as they are.
"""

from __future__ import annotations

import multiprocessing
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn import svm
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks.datasets import FOLDER
from benchmarks.table import into_page, markdown, merged, save

SMALL = ("letter", "satimage", "usps", "pendigits")
SETS = (*SMALL, "mnist", "20news", "news20")
CS = (0.01, 0.1, 1.0, 10.0)
PATIENCE = 100.0  # seconds for a fit of scikit-learn
LONG = 20.0  # seconds from which on a fit is not repeated
CLOSE = 0.2  # points of accuracy
_FILES = {
    "letter": ("letter.scale", "letter.scale.t"),
    "pendigits": ("pendigits", "pendigits.t"),
    "20news": ("20news_bydate.train", "20news_bydate.test"),
    "news20": ("news20", None),
}


class Data(NamedTuple):
    """Rows and labels to train and to test with."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


class Mode(NamedTuple):
    """Our model and scikit-learn's for a value of C, the values to try, and on which sets."""

    ours: Callable[[float], Any]
    theirs: Callable[[float], Any]
    Cs: tuple[float, ...] = CS
    sets: tuple[str, ...] = SETS


def _linear(**settings: Any) -> Callable[[float], Any]:
    def model(C: float) -> Any:
        from pegasos import LinearSVC

        return LinearSVC(C=C, random_state=0, **settings)

    return model


def _gaussian(C: float) -> Any:
    from pegasos import SVC

    return SVC(C=C)


def _liblinear(several: str) -> Callable[[float], Any]:
    return lambda C: svm.LinearSVC(C=C, multi_class=several, random_state=0)


MODES = {
    "ovr": Mode(_linear(), _liblinear("ovr")),
    "ovo": Mode(_linear(loss="hinge", multi_class="ovo"), lambda C: svm.SVC(C=C, kernel="linear")),
    "crammer_singer": Mode(
        _linear(loss="hinge", multi_class="crammer_singer"), _liblinear("crammer_singer")
    ),
    "rbf": Mode(_gaussian, lambda C: svm.SVC(C=C), (1.0, 10.0, 100.0), SMALL),
}


def run(
    names: tuple[str, ...] | None = None,
    modes: tuple[str, ...] | None = None,
    Cs: tuple[float, ...] | None = None,
) -> None:
    """Some sets in some modes; `Cs` in place of the grid."""
    for name in names or SETS:
        data = load(name)
        for key in modes or tuple(MODES):
            mode = MODES[key]
            if name not in mode.sets or not _known(mode):
                print(f"{name}, {key}: left out", flush=True)
                continue
            row = {"set": name, "mode": key} | _row(mode, data, Cs or mode.Cs)
            print(row, flush=True)
            report(merged("multiclass", [row], ("set", "mode"), order=SETS))


def report(rows: list[dict]) -> None:
    rows.sort(key=lambda r: (SETS.index(r["set"]), list(MODES).index(r["mode"])))
    text = ["```\n" + (__doc__ or "").strip() + "\n```", *summary(rows)]
    save("multiclass", text, rows)
    into_page("docs/guide/multiclass.md", "multiclass", [*summary(rows), markdown(rows)])


def summary(rows: list[dict]) -> list[str]:
    """How often as good, how much faster, and where there is nothing to compare with."""
    text = []
    for key in MODES:
        both = [r for r in rows if r["mode"] == key and r["their_s"] is not None]
        if both:
            good = sum(float(r["difference"]) >= -CLOSE for r in both)
            ratios = sorted(r["ratio"] for r in both)
            text.append(
                f"{key}: accuracy within {CLOSE} points of scikit-learn's or better in {good} of "
                f"{len(both)} sets; its time in units of ours {ratios[0]:.2g} to {ratios[-1]:.2g}, "
                f"median {np.median(ratios):.2g}."
            )
    stopped = [f"{r['set']} {r['mode']}" for r in rows if r["their_s"] is None]
    if stopped:
        text.append(f"scikit-learn stopped after {PATIENCE:.0f} s: {', '.join(stopped)}.")
    return text


def _known(mode: Mode) -> bool:
    """Whether the estimator has this mode."""
    try:
        mode.ours(1.0)._check_parameters()
    except ValueError:
        return False
    return True


def _row(mode: Mode, data: Data, Cs: tuple[float, ...]) -> dict:
    C = Cs[0] if len(Cs) == 1 else choose(mode.ours, data.X, data.y, Cs)
    mode.ours(C).fit(data.X[::5], data.y[::5])  # compiles
    seconds, model = timed(lambda: mode.ours(C).fit(data.X, data.y))
    right = model.predict(data.X_test) == data.y_test
    proofs = model.certificate_ if isinstance(model.certificate_, list) else [model.certificate_]
    accuracy = 100.0 * float(np.mean(right))
    theirs = _in_time(mode.theirs(C), data)
    their_s, their = theirs or (None, None)
    n, d = data.X.shape
    return {
        "rows": n,
        "features": d,
        "classes": len(model.classes_),
        "C": C,
        "accuracy": f"{accuracy:.2f}",
        "theirs": None if their is None else f"{their:.2f}",
        "difference": None if their is None else f"{accuracy - their:+.2f}",
        "seconds": seconds,
        "their_s": their_s,
        "ratio": None if their_s is None else their_s / seconds,
        "worst_gap": float(max(proof.relative_gap for proof in proofs)),
    }


def choose(ours: Callable[[float], Any], X: Any, y: np.ndarray, Cs: tuple[float, ...]) -> float:
    """The smallest C of those that are best on rows kept aside."""
    rows = np.arange(len(y))
    train, aside = train_test_split(rows, test_size=0.2, stratify=y, random_state=0)
    scores = [ours(C).fit(X[train], y[train]).score(X[aside], y[aside]) for C in Cs]
    print(dict(zip(Cs, scores, strict=True)), flush=True)
    return Cs[int(np.argmax(scores))]


def timed(fit: Callable[[], Any]) -> tuple[float, Any]:
    """The shortest of three times, or one that is long; and what was fitted."""
    best = np.inf
    for _ in range(3):
        start = time.perf_counter()
        model = fit()
        best = min(best, time.perf_counter() - start)
        if best > LONG:
            break
    return best, model


def _in_time(model: Any, data: Data) -> tuple[float, float] | None:
    """Seconds and accuracy of a model of scikit-learn, in a process that can be stopped."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_measure, args=(model, data, there))
    process.start()
    there.close()
    found = None
    try:
        if here.poll(PATIENCE):
            found = here.recv()
    except EOFError:
        raise RuntimeError(f"{model} failed: see above") from None
    finally:
        process.kill()
        process.join()
    return found


def _measure(model: Any, data: Data, answer: Any) -> None:
    warnings.simplefilter("ignore")  # what scikit-learn gives up on is judged as it is
    X, X_test = data.X.astype(np.float64), data.X_test.astype(np.float64)
    start = time.perf_counter()
    model.fit(X, data.y)
    seconds = time.perf_counter() - start
    accuracy = 100.0 * model.score(X_test, data.y_test)
    if 3.0 * seconds < LONG:
        seconds = min(seconds, timed(lambda: model.fit(X, data.y))[0])
    answer.send((seconds, accuracy))


def load(name: str) -> Data:
    """A data set, prepared by what its training rows tell."""
    train, test = _FILES.get(name, (f"{name}.train", f"{name}.test"))
    X, y = _read(train)
    if test is None:
        order = np.random.default_rng(0).permutation(len(y))
        apart = np.arange(len(y)) % 5 == 0
        parts = order[~apart], order[apart]
        X, X_test, y, y_test = X[parts[0]], X[parts[1]], y[parts[0]], y[parts[1]]
    else:
        X_test, y_test = _read(test)
    if name in ("20news", "news20"):
        terms = TfidfTransformer(sublinear_tf=True).fit(X)
        X, X_test = terms.transform(X), terms.transform(X_test)
    elif name in ("satimage", "pendigits"):
        scaler = StandardScaler().fit(X.astype(np.float64))
        X, X_test = scaler.transform(X), scaler.transform(X_test)
    elif name == "mnist":
        X, X_test = X / np.float32(255), X_test / np.float32(255)
    return Data(X.astype(np.float32), y, X_test.astype(np.float32), y_test)


def _read(file: str) -> tuple[Any, np.ndarray]:
    """Rows, as an array unless they are text, and labels."""
    path = FOLDER / f"{file}.npz"
    stored = np.load(path)
    if "X" in stored:
        return stored["X"], stored["y"]
    X = sp.csr_matrix(sp.load_npz(path))
    return (X if "news" in file else X.toarray()), stored["y"]
