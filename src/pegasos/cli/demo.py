"""`pegasos demo`: a short tour on real data."""

from __future__ import annotations

import textwrap
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from pegasos.cli.warmup import heard

if TYPE_CHECKING:
    import numpy as np
    from rich.console import Console

    from pegasos.objective.problem import Problem

MARGIN = 12
TOL = 1e-3
CONTRAST = (1.0, 10.0, 100.0)  # values of C
CURVES = {"Coordinate descent on the dual": "dual", "Newton's method": "newton"}
STOPPED = {"gap": f"the proven gap is below tol = {100 * TOL:g} %"}


class Split(NamedTuple):
    """Scaled rows and labels 0 and 1, to learn from and to test on."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


class Trial(NamedTuple):
    """One line of the contrast."""

    C: float
    by: str
    seconds: float
    objective: float
    bound: float
    accuracy: float
    warning: str


def demo(
    output: Annotated[
        Path, typer.Option(help="The figure (png, svg or pdf); replaced if it is there.")
    ] = Path("pegasos-demo.png"),
) -> None:
    """Train on real e-mails, see the proof, and a figure of it."""
    from rich.console import Console

    from pegasos.report.figures import check_writable, convergence_figure

    check_writable(output)
    console = Console(highlight=False)
    data = _spambase(console)
    _compile(console, data)
    _show_fit(console, data)
    _show_contrast(console, data)
    title = f"Two solvers, one answer: a linear SVM on {len(data.y):,} e-mails"
    note = (
        "For this picture the answer was certified far more often than in an ordinary fit, "
        "which takes time of its own."
    )
    convergence_figure(_histories(data), output, TOL, title, note)
    _say(console, "Figure", "How objective and bound close in on each other:", f"  {output}")


def _say(console: Console, heading: str, *paragraphs: str, bold: str = "") -> None:
    """A heading in the margin and paragraphs beside it; those with a leading blank as they are."""
    from rich.text import Text

    margin, width = " " * MARGIN, max(40, min(console.width, 100)) - 1
    lines = []
    for text in paragraphs:
        if text.startswith(" "):
            lines.append(margin + text)
        else:
            lines += textwrap.wrap(
                text, width, initial_indent=margin, subsequent_indent=margin, break_on_hyphens=False
            )
    if heading:
        console.print()
        lines[0] = heading.ljust(MARGIN) + lines[0][MARGIN:]
    block = Text("\n".join(lines))
    block.stylize("bold cyan", 0, len(heading))
    if bold:
        block.highlight_words([bold], "bold")
    console.print(block, soft_wrap=True)


def _spambase(console: Console) -> Split:
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    from pegasos.data.samples import load_sample

    X, y = load_sample("spambase")
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, random_state=0, stratify=y)
    scaler = StandardScaler().fit(X)
    _say(
        console,
        "Data",
        "Spambase: 4,601 e-mails described by 57 word and character frequencies; which are spam?",
        f"{len(y):,} of them to learn from (each frequency scaled to mean 0 and deviation 1), "
        f"{len(y_test):,} kept aside for the test.",
    )
    _say(
        console,
        "Minimised",
        "A linear SVM: the weights w and the intercept b for which",
        "  1/2 ||w||^2 + C * sum of max(0, 1 - y_i (w.x_i + b)),  C = 1",
        "is smallest, with y_i = +1 for spam and -1 for the rest: short weights, and few e-mails "
        "on the wrong side of the margin.",
    )
    return Split(scaler.transform(X), y, scaler.transform(X_test), y_test)


def _compile(console: Console, data: Split) -> None:
    """All that follows on a few rows, so that what is timed later is not the compiler."""
    from pegasos.core.jit import cache_directory

    few = Split(data.X[:200], data.y[:200], data.X_test[:20], data.y_test[:20])
    names: list[str] = []
    start = time.perf_counter()
    with console.status("getting ready", spinner="line") as status:

        def compiling(name: str) -> None:
            if not names:
                _say(console, "Compiling", "the inner loops for this machine, first use only ...")
            names.append(name)
            status.update(f"compiling {name.lstrip('_')} (first use only)")

        with heard(compiling):
            _fit(few)
            _trials(few)
            _histories(few)
    seconds = time.perf_counter() - start
    if names:
        _say(console, "", f"{len(names)} loops in {seconds:.1f} s; the next time they are there.")
        _say(console, "", f"  (kept in {cache_directory()})")
    else:
        _say(console, "Compiling", f"nothing: done at an earlier use ({seconds:.1f} s to load).")


def _fit(data: Split, **parameters: Any) -> tuple[Any, float]:
    """A fitted LinearSVC and the seconds it took."""
    from pegasos import LinearSVC

    model = LinearSVC(loss="hinge", tol=TOL, random_state=0, n_threads=1, **parameters)
    return _timed(lambda: model.fit(data.X, data.y))


def _timed(fit: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    model = fit()
    return model, time.perf_counter() - start


def _show_fit(console: Console, data: Split) -> None:
    model, seconds = _fit(data)
    primal, dual = model.certificate_
    above = _percent(primal / dual - 1.0)
    reason = STOPPED.get(model.stop_reason_, model.stop_reason_)
    _say(
        console,
        "Fit",
        f"LinearSVC(loss='hinge') took {seconds:.3f} s.",
        f"  objective found     {primal:.4f}",
        f"  proven lower bound  {dual:.4f}",
        f"So no linear SVM of this kind can have an objective lower than {dual:.4f}: this one is "
        f"at most {above} above the best possible.",
        f"Stopped because {reason}.",
        f"Solver: {model.solver_.name}, because {model.solver_.reason}.",
        bold=f"at most {above} above the best possible",
    )
    share = model.score(data.X_test, data.y_test)
    _say(
        console, "Test", f"{100 * share:.1f} % of the e-mails kept aside are told apart correctly."
    )


def _percent(share: float) -> str:
    return f"{100.0 * share:.2g} %" if share < 0.1 else f"{100.0 * share:.0f} %"


def _trials(data: Split) -> list[Trial]:
    """Ours and scikit-learn's on the same objective, for several C."""
    trials = []
    for C in CONTRAST:
        ours, seconds = _fit(data, C=C, intercept="penalised")
        bound = ours.certificate_.dual
        theirs, their_seconds, warning = _scikit_learn(data, C)
        for by, model, took, said in (
            ("pegasos", ours, seconds, ""),
            ("scikit-learn", theirs, their_seconds, warning),
        ):
            share = model.score(data.X_test, data.y_test)
            trials.append(Trial(C, by, took, _objective(data, C, model), bound, share, said))
    return trials


def _scikit_learn(data: Split, C: float) -> tuple[Any, float, str]:
    """Its model, the seconds it took, and its warning."""
    from sklearn.svm import LinearSVC

    model = LinearSVC(loss="hinge", dual=True, C=C, max_iter=1000, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model, seconds = _timed(lambda: model.fit(data.X, data.y))
    return model, seconds, " ".join(str(w.message) for w in caught)


def _problem(data: Split, C: float, free: bool) -> Problem:
    import numpy as np

    from pegasos.data.check import as_rows
    from pegasos.losses import Hinge
    from pegasos.objective.problem import make_problem

    y = np.where(data.y == 1, 1.0, -1.0)
    return make_problem(as_rows(data.X, 1.0), y, np.full(y.size, C), Hinge(), free=free)


def _objective(data: Split, C: float, model: Any) -> float:
    """1/2 (||w||^2 + b^2) + C sum of hinge losses, the same code for both."""
    import numpy as np

    from pegasos.objective.certificate import evaluate

    w = np.append(model.coef_[0], model.intercept_[0])
    problem = _problem(data, C, free=False)
    return evaluate(problem, np.zeros_like(problem.c), w).certificate.primal


def _show_contrast(console: Console, data: Split) -> None:
    _say(
        console,
        "Contrast",
        "scikit-learn's LinearSVC(loss='hinge', dual=True, max_iter=1000) for three values of C, "
        "both libraries on one thread. It penalises the intercept as well, so here both minimise",
        "  1/2 (||w||^2 + b^2) + C * sum of max(0, 1 - y_i (w.x_i + b))",
        " ",
    )
    trials = _trials(data)
    _print_table(console, trials)
    warned = [t for t in trials if t.warning]
    for text in sorted({t.warning for t in warned}):
        values = ", ".join(f"{t.C:g}" for t in warned if t.warning == text)
        _say(console, "", f"scikit-learn warned at C = {values}: {text!r}")
    _say(
        console, "", "It cannot say how far off it is: the column uses the bound proven by pegasos."
    )


def _print_table(console: Console, trials: list[Trial]) -> None:
    from rich.padding import Padding
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("C", "by", "seconds", "objective", "off by at most", "test"):
        table.add_column(name, justify="left" if name == "by" else "right", no_wrap=True)
    for t in trials:
        off = _percent(t.objective / t.bound - 1.0)
        cells = (f"{t.C:g}", t.by, f"{t.seconds:.3f}", f"{t.objective:.2f}", off)
        table.add_row(*cells, f"{100 * t.accuracy:.1f} %")
    console.print(Padding(table, (0, 0, 1, MARGIN + 2), expand=False))


def _histories(data: Split) -> dict[str, Any]:
    """Two solvers on the objective of the fit, certified often, to a tenth of TOL."""
    from pegasos.core.threads import use_threads
    from pegasos.solvers.auto import solver_named
    from pegasos.solvers.driver import Stop, run

    problem = _problem(data, 1.0, free=True)
    stop = Stop(tol=0.1 * TOL, max_epochs=5000, max_seconds=10.0, every=1)
    with use_threads(1):
        return {
            label: run(solver_named(name, problem), problem, stop).history
            for label, name in CURVES.items()
        }
