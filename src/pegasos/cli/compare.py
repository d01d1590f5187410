"""`pegasos compare`: solvers side by side on one objective, as a figure and a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from pegasos.cli import options as opt
from pegasos.cli.console import finite, listed, note, say
from pegasos.cli.data import Data, Reading, check_classes, check_outputs, read
from pegasos.cli.train import Intercept, Loss
from pegasos.data.errors import DataError
from pegasos.data.stream import name_of

if TYPE_CHECKING:
    import numpy as np

    from pegasos.objective.problem import Problem
    from pegasos.report.comparison import Comparison

_FEW = 60  # rows of each class to compile with


class Objective(NamedTuple):
    """What all solvers minimise, and the loss in words; C or, if given, lam."""

    words: str
    loss: Any
    C: float
    lam: float | None
    intercept: str


def compare(
    file: opt.DataFile,
    solvers: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="auto, dual, newton, newton_cg, interior (exact); pegasos, sgd, batch, "
            "pinball_pegasos, perceptron (presets of PegasosClassifier); with commas between them.",
        ),
    ] = "dual,newton,pegasos,sgd,batch",
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The figure to write: png, svg or pdf.")
    ] = Path("comparison.png"),
    test: Annotated[
        str | None, typer.Option(metavar="FILE", help="Data for test errors, a third panel.")
    ] = None,
    json_: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", help="Write all curves there (-: to the output)."),
    ] = None,
    loss: Annotated[Loss, typer.Option(help="l(z) of the objective.")] = Loss.hinge,
    C: Annotated[float, typer.Option("-C", "--C", help="Weight of the losses.")] = 1.0,
    lam: Annotated[
        float | None,
        typer.Option("--lam", help="In place of C: lam/2 |w|^2 + mean loss, lam = 1 / (C rows)."),
    ] = None,
    tau: Annotated[float, typer.Option(help="Of the pinball loss, from 0 to 1.")] = 0.5,
    intercept: Annotated[
        Intercept, typer.Option(help="b without a penalty, with one, or none.")
    ] = Intercept.free,
    positive: Annotated[
        str | None,
        typer.Option(metavar="CLASS", help="This class against the rest, if there are several."),
    ] = None,
    max_epochs: Annotated[int, typer.Option(min=1, help="Most epochs of each solver.")] = 100,
    max_time: Annotated[float, typer.Option(help="Most seconds of each solver.")] = 10.0,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Of the order of rows.")] = 0,
    label: opt.Label = None,
    header: opt.Header = True,
    zero_based: opt.ZeroBased = None,
    float64: opt.Float64 = False,
    sum_duplicates: opt.SumDuplicates = False,
    max_features: opt.MaxFeatures = None,
    cache: opt.Cache = True,
    threads: opt.Threads = None,
) -> None:
    """Run solvers on one objective of FILE and draw how fast each nears the best possible.

    All minimise 1/2 |w|^2 + C * sum_i l(y_i (w.x_i + b)), but the perceptron, which has an
    objective of its own. An exact run proves where the optimum is. Seconds are those of the
    solvers: the clock stands still while a point is evaluated for the figure.
    """
    from pegasos.cli.warmup import heard
    from pegasos.cli.watch import ProgressLine
    from pegasos.core.threads import use_threads
    from pegasos.estimators.parameters import positive as above_zero
    from pegasos.estimators.parameters import threads_of
    from pegasos.report.comparison import Limit
    from pegasos.report.figures import check_writable

    objective = _objective(loss, tau, C, lam, intercept)
    names = _names(solvers, objective)
    limit = Limit(max_epochs, above_zero("--max-time", max_time))
    check_writable(output)
    check_outputs([output, None if json_ == Path("-") else json_], [file, test])
    reading = Reading(
        label, header, bool(zero_based), float64, sum_duplicates, max_features, cache, threads
    )
    with ProgressLine() as line, heard(line.compiling), use_threads(threads_of(threads)):
        line.say(f"reading {file}")
        data, test_data = _both(file, test, reading, positive)
        how = {"limit": limit, "seed": seed, "watch": line.at}
        result = _run(data, test_data, objective, names, how)
    facts = _facts(file, data, objective, result) | {"seed": seed, "threads": threads_of(threads)}
    _draw(output, facts, result)
    if json_ is not None:
        _write(json_, facts)
    if json_ != Path("-"):
        _report(facts, output)


def _objective(
    loss: Loss, tau: float, C: float, lam: float | None, intercept: Intercept
) -> Objective:
    from pegasos.estimators import parameters as par
    from pegasos.estimators.online import LOSSES
    from pegasos.losses import Pinball

    chosen = par.loss_of(Pinball(tau)) if loss is Loss.pinball else LOSSES[loss.value]()
    lam = None if lam is None else par.positive("--lam", lam)
    words = f"pinball, tau = {tau:g}" if loss is Loss.pinball else loss.value
    return Objective(words, chosen, par.positive("C", C), lam, intercept.value)


def _names(solvers: str, objective: Objective) -> list[str]:
    from pegasos.report.comparison import check_name

    names = list(dict.fromkeys(name.strip() for name in solvers.split(",") if name.strip()))
    for name in names:
        check_name(name, objective.loss)
    if not names:
        raise ValueError("--solvers names none: for example dual,pegasos")
    return names


def _both(
    file: str, test: str | None, reading: Reading, positive: str | None
) -> tuple[Data, Data | None]:
    """The data, and those for the test with as many columns, with labels -1 and +1."""
    import numpy as np

    data = read(file, reading)
    check_classes(file, data.y)
    classes = [str(name) for name in np.unique(data.y)]
    if positive is None and len(classes) > 2:
        raise DataError(f"{name_of(file)}: {len(classes)} classes: name one with --positive")
    if positive is not None and positive not in classes:
        known = listed(classes)
        raise DataError(f"{name_of(file)}: no class is {positive!r}; the classes are {known}")
    target = classes[1] if positive is None else positive
    return _signed(data, target), None if test is None else _tested(test, data, target, reading)


def _signed(data: Data, target: str) -> Data:
    import numpy as np

    return data._replace(y=np.where(data.y.astype(str) == target, 1.0, -1.0))


def _tested(test: str, data: Data, target: str, reading: Reading) -> Data:
    import numpy as np

    other, d = read(test, reading), data.X.shape[1]
    if other.names != data.names:
        raise DataError(f"{test}: its columns are not those of the training data")
    strangers = np.setdiff1d(other.y.astype(str), data.y.astype(str))
    if strangers.size:
        raise DataError(f"{test}: no rows of class {strangers[0]} in the training data")
    if other.X.shape[1] != d:
        other = other._replace(X=_of_width(test, other.X, d))
    return _signed(other, target)


def _of_width(test: str, X: Any, d: int) -> Any:
    """Sparse rows with d columns: entries beyond are ignored, as in prediction."""
    import scipy.sparse as sp

    if not sp.issparse(X):
        raise DataError(f"{test}: {X.shape[1]} columns, the training data has {d}")
    if X.shape[1] > d:
        note(f"{test}: columns beyond the {d} of the training data ignored")
        return X[:, :d]
    return sp.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], d))


def _run(
    data: Data, test: Data | None, objective: Objective, names: list[str], how: dict[str, Any]
) -> Comparison:
    """The comparison, after the compiler has done its work on a few rows."""
    import numpy as np

    from pegasos.report.comparison import Holdout, compare, method_named, warm_up

    X, y = data.X, data.y
    problem = _problem(X, y, objective)
    names = _possible(names, X.shape[1])
    tested = None if test is None else Holdout(_rows(test.X, objective), test.y)
    methods = {name: method_named(name, problem, how["limit"].epochs) for name in names}
    few = np.concatenate([np.flatnonzero(y == sign)[:_FEW] for sign in (-1.0, 1.0)])
    warm_up(_problem(X[few], y[few], objective), methods, tested)
    return compare(problem, methods, test=tested, **how)


def _possible(names: list[str], d: int) -> list[str]:
    """Without those that need a d x d matrix, where it would be too large."""
    from pegasos.core.gram import MAX_WIDTH

    squares = [name for name in names if name in ("newton", "interior") and d > MAX_WIDTH]
    if squares:
        note(f"{listed(squares)} left out: a matrix of {d:,} x {d:,} numbers is too large")
    left = [name for name in names if name not in squares]
    if not left:
        raise ValueError(f"--solvers: none can do {d:,} columns; try dual,pegasos")
    return left


def _problem(X: Any, y: np.ndarray, objective: Objective) -> Problem:
    import numpy as np

    from pegasos.objective.problem import C_from_lam, make_problem

    _, loss, C, lam, intercept = objective
    C = C if lam is None else C_from_lam(lam, len(y))
    rows = _rows(X, objective)
    return make_problem(rows, y, np.full(len(y), C), loss, free=intercept == "free")


def _rows(X: Any, objective: Objective) -> Any:
    from sklearn.utils import check_array

    from pegasos.data.check import as_rows, small_dtype

    bias = 0.0 if objective.intercept == "none" else 1.0
    return as_rows(check_array(X, accept_sparse="csr", dtype=small_dtype(X)), bias)


def _facts(file: str, data: Data, objective: Objective, result: Comparison) -> dict[str, Any]:
    """All that is known, for JSON, the table and the figure."""
    return {
        "data": file,
        "rows": int(data.X.shape[0]),
        "features": int(data.X.shape[1]),
        "loss": objective.words,
        "C": objective.C if objective.lam is None else None,
        "lam": objective.lam,
        "intercept": objective.intercept,
        "optimum": {**result.best._asdict(), "accuracy": result.accuracy},
        "curves": {
            name: [{**m._asdict(), "above": result.above(m.primal)} for m in curve]
            for name, curve in result.curves.items()
        },
    }


def _draw(output: Path, facts: dict[str, Any], result: Comparison) -> None:
    from pegasos.report.comparison_figure import comparison_figure

    weight = f"C = {facts['C']:g}" if facts["lam"] is None else f"lam = {facts['lam']:g}"
    parts = [
        f"{facts['rows']:,} rows, {facts['features']:,} features; loss: {facts['loss']}, {weight}, "
        f"intercept: {facts['intercept']}; seed {facts['seed']}, {facts['threads']} thread(s)"
    ]
    parts += _remarks(facts)
    title = f"{Path(name_of(facts['data'])).name}: solvers on one objective"
    comparison_figure(result, output, title, "\n".join(parts))


def _remarks(facts: dict[str, Any]) -> list[str]:
    """What a reader of the curves must know."""
    remarks = []
    steps = [name for name in ("newton", "newton_cg", "interior") if name in facts["curves"]]
    if steps:
        remarks.append(f"An epoch of {', '.join(steps)} is a step, which costs more than a pass.")
    if "auto" in facts["curves"]:
        remarks.append("An epoch of auto is one of the solver that it chooses.")
    if "perceptron" in facts["curves"]:
        remarks.append(
            "The perceptron does not minimise this objective; it is only measured by it."
        )
    return remarks


def _write(path: Path, facts: dict[str, Any]) -> None:
    from pegasos.data.atomic import writing

    with writing(path) as stream:
        stream.write((json.dumps(finite(facts), indent=1) + "\n").encode())


def _report(facts: dict[str, Any], output: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    tested = any(curve[-1]["test_error"] is not None for curve in facts["curves"].values())
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    heads = ["solver", "epochs", "seconds", "above optimum", "proven gap", "test error"]
    for name in heads if tested else heads[:-1]:
        table.add_column(name, justify="left" if name == "solver" else "right", no_wrap=True)
    for name, curve in facts["curves"].items():
        end = curve[-1]
        gap = max(0.0, end["primal"] - end["dual"]) / end["primal"]
        cells = [name, str(end["epoch"]), f"{end['seconds']:.3g}", f"{end['above']:.1e}"]
        cells += [f"{gap:.1e}", f"{100 * end['test_error']:.2f} %"] if tested else [f"{gap:.1e}"]
        table.add_row(*cells)
    console = Console(highlight=False)
    console.print(table)
    best = facts["optimum"]
    say(
        f"the optimum lies between {best['dual']:.9g} and {best['primal']:.9g}: "
        f"known to {best['accuracy']:.0e}"
    )
    for remark in _remarks(facts):
        say(remark)
    say(f"figure in {output}")
