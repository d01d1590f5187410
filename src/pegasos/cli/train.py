"""`pegasos train`: a data file in, a certified model file out."""

from __future__ import annotations

import json
import os
import time
import warnings
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from pegasos.cli import options as opt
from pegasos.cli.console import finite, note, say
from pegasos.cli.data import Data, Reading, check_classes, check_outputs, check_width, read
from pegasos.data.errors import DataError
from pegasos.data.formats import is_table
from pegasos.data.stream import name_of

_STOP = "Stopping"


class Loss(StrEnum):
    squared_hinge = "squared_hinge"
    hinge = "hinge"
    pinball = "pinball"
    logistic = "logistic"


class Intercept(StrEnum):
    free = "free"
    penalised = "penalised"
    none = "none"


class SolverName(StrEnum):
    auto = "auto"
    dual = "dual"
    newton = "newton"
    interior = "interior"


def train(
    file: opt.DataFile,
    model: Annotated[
        Path,
        typer.Option("-m", "--model", help="The model file to write; an old one is replaced."),
    ],
    loss: Annotated[
        Loss, typer.Option(help="l(z); logistic gives probabilities.")
    ] = Loss.squared_hinge,
    C: Annotated[float, typer.Option("-C", "--C", help="Weight of the losses.")] = 1.0,
    lam: Annotated[
        float | None,
        typer.Option("--lam", help="In place of C: lam/2 |w|^2 + mean loss, lam = 1 / (C rows)."),
    ] = None,
    tau: Annotated[float, typer.Option(help="Of the pinball loss, from 0 to 1.")] = 0.5,
    intercept: Annotated[
        Intercept, typer.Option(help="b without a penalty, with one, or none.")
    ] = Intercept.free,
    balanced: Annotated[
        bool, typer.Option("--balanced", help="Weight classes by 1 / their frequency.")
    ] = False,
    center: Annotated[
        Path | None,
        typer.Option(help="A model file w0: the penalty is 1/2 |w - w0|^2 (transfer)."),
    ] = None,
    tol: Annotated[
        float,
        typer.Option(
            help="Stop when it is proven that the best possible objective is at most this share "
            "lower.",
            rich_help_panel=_STOP,
        ),
    ] = 1e-3,
    max_time: Annotated[
        float | None,
        typer.Option(help="Most seconds for the fit (default: no limit).", rich_help_panel=_STOP),
    ] = None,
    max_iter: Annotated[int, typer.Option(help="Most epochs.", rich_help_panel=_STOP)] = 1000,
    solver: Annotated[
        SolverName, typer.Option(help="auto chooses and says why.", rich_help_panel=_STOP)
    ] = SolverName.auto,
    seed: Annotated[
        int,
        typer.Option(min=0, max=2**32 - 1, help="Of the order of rows.", rich_help_panel=_STOP),
    ] = 0,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="Keep the state of the fit in this file; if it is there, go on from it.",
            rich_help_panel=_STOP,
        ),
    ] = None,
    checkpoint_every: Annotated[
        float, typer.Option(min=0.0, help="Seconds between checkpoints.", rich_help_panel=_STOP)
    ] = 30.0,
    label: opt.Label = None,
    header: opt.Header = True,
    zero_based: opt.ZeroBased = None,
    float64: opt.Float64 = False,
    sum_duplicates: opt.SumDuplicates = False,
    max_features: opt.MaxFeatures = None,
    cache: opt.Cache = True,
    threads: opt.Threads = None,
    json_: opt.Json = False,
) -> None:
    """Train a linear classifier on FILE and write it to MODEL.

    Minimises 1/2 |w|^2 + C * sum_i l(y_i (w.x_i + b)) and stops when the relative duality gap,
    (objective - proven lower bound) / objective, is at most --tol. More than two classes: one
    problem for each class against the rest.
    """
    from pegasos.cli.checkpoints import Checkpoints
    from pegasos.cli.stop import locked
    from pegasos.cli.warmup import heard
    from pegasos.cli.watch import ProgressLine
    from pegasos.estimators.files import to_model
    from pegasos.model import file as model_file

    check_outputs([model, checkpoint], [file, center])
    reading = Reading(
        label, header, bool(zero_based), float64, sum_duplicates, max_features, cache, threads
    )
    settings: dict[str, Any] = {"C": C, "lam": lam, "intercept": intercept.value, "tol": tol}
    settings |= {"max_time": max_time, "max_iter": max_iter, "solver": solver.value}
    settings |= {"random_state": seed, "class_weight": "balanced" if balanced else None}
    settings |= {"n_threads": threads}
    estimator = _estimator(loss, tau, center, settings)
    started = time.perf_counter()
    with locked(checkpoint), ProgressLine() as line, heard(line.compiling):
        line.say(f"reading {file}")
        data = read(file, reading)
        _check(file, data)
        if center is not None:
            _check_center(center, data, reading)
        seconds = time.perf_counter() - started
        keeper = Checkpoints(checkpoint, checkpoint_every)
        _fit(estimator, data, keeper, line)
        model_file.save(model, to_model(estimator, _kept(reading, file)))
        keeper.done(estimator.stop_reason_)
    facts = _facts(file, model, estimator, data)
    facts |= {"resumed": keeper.resumed, "compiled": line.compiled}
    facts["seconds"] = {"reading": seconds, "all": time.perf_counter() - started}
    if json_:
        typer.echo(json.dumps(finite(facts)))
    else:
        _report(facts)


def _kept(reading: Reading, file: str) -> dict[str, Any]:
    """What prediction must know of how the data were read."""
    if is_table(file):
        return {"label": reading.label, "header": reading.header}
    return {"zero_based": reading.zero_based}


def _estimator(loss: Loss, tau: float, center: Path | None, settings: dict[str, Any]) -> Any:
    """The estimator of the command; its parameters are checked before any data is read."""
    from pegasos import LinearSVC, LogisticRegression, load_model
    from pegasos.losses import Pinball

    if center is not None:
        settings["center"] = load_model(center)
    if loss is Loss.logistic:
        model: Any = LogisticRegression(**settings)
    else:
        model = LinearSVC(loss=Pinball(tau) if loss is Loss.pinball else loss.value, **settings)
    model._check_parameters()
    return model


def _check(file: str, data: Data) -> None:
    import numpy as np

    if data.X.shape[1] == 0:
        raise DataError(f"{name_of(file)}: no features, only labels")
    check_classes(file, data.y)
    n_classes = len(np.unique(data.y))
    check_width(file, data.X.shape[1], 1 if n_classes == 2 else n_classes, note)


def _check_center(center: Path, data: Data, reading: Reading) -> None:
    """A centre must speak of the same features and classes."""
    import numpy as np

    from pegasos.model import file as model_file

    model = model_file.load(center)
    if model.names is not None and data.names is not None and model.names != data.names:
        raise DataError(f"{center}: its features have other names, or another order")
    if model.classes.tolist() != np.unique(data.y).tolist():
        raise DataError(f"{center}: its classes are {model.classes.tolist()[:8]}, not the data's")
    if model.reading.get("zero_based", reading.zero_based) != reading.zero_based:
        raise DataError(f"{center}: its indices start at another number: --zero-based differs")


def _fit(estimator: Any, data: Data, keeper: Any, line: Any) -> None:
    """Fit under the eyes of the watcher; a signal stops it at a safe point."""
    from pegasos.cli.stop import Terminated
    from pegasos.cli.watch import Signals, Watcher

    with Signals() as signals, warnings.catch_warnings(record=True) as log:
        warnings.simplefilter("always")
        estimator._watch = Watcher(signals, keeper, line)
        try:
            _fit_named(estimator, data)
        except KeyboardInterrupt:
            if signals.received is None:
                raise
            raise Terminated(signals.received, _how_to_resume(keeper.path)) from None
    line.close()
    for warning in log:
        note(" ".join(str(warning.message).split()))


def _fit_named(estimator: Any, data: Data) -> None:
    estimator.fit(data.X, data.y)
    if data.names is not None:
        import numpy as np

        estimator.feature_names_in_ = np.array(data.names, dtype=object)


def _how_to_resume(checkpoint: Path | None) -> str:
    if checkpoint is None:
        return "nothing was written; with --checkpoint FILE a later run could go on from here"
    return f"the state is in {checkpoint}: the same command goes on from there"


def _facts(file: str, model: Path, estimator: Any, data: Data) -> dict[str, Any]:
    """What is said of a finished training."""
    several = isinstance(estimator.certificate_, list)
    proofs = estimator.certificate_ if several else [estimator.certificate_]
    choices = estimator.solver_ if several else [estimator.solver_]
    reasons = estimator.stop_reason_ if several else [estimator.stop_reason_]
    return {
        "data": file,
        "model": os.fspath(model),
        "rows": int(data.X.shape[0]),
        "features": int(data.X.shape[1]),
        "classes": estimator.classes_.tolist(),
        "objective": [float(proof.primal) for proof in proofs],
        "bound": [float(proof.dual) for proof in proofs],
        "gap": [float(proof.relative_gap) for proof in proofs],
        "tol": estimator.tol,
        "stop": reasons,
        "solver": [list(choice) for choice in choices],
        "epochs": int(estimator.n_iter_),
    }


def _report(facts: dict[str, Any]) -> None:
    classes = ", ".join(str(name) for name in facts["classes"][:6])
    more = ", …" if len(facts["classes"]) > 6 else ""
    say(
        f"{name_of(facts['data'])}: {facts['rows']:,} rows, {facts['features']:,} features, "
        f"classes {classes}{more} (read in {facts['seconds']['reading']:.2f} s)"
    )
    worst = max(range(len(facts["gap"])), key=lambda k: facts["gap"][k])
    gap, objective, bound = (facts[key][worst] for key in ("gap", "objective", "bound"))
    which = "" if len(facts["gap"]) == 1 else f" (of {len(facts['gap'])} problems, the worst)"
    say(
        f"objective {objective:.6g}; proven: the best possible is at least {bound:.6g}, "
        f"at most {100 * gap:.2g} % lower{which}"
    )
    name, why = facts["solver"][worst]
    once = f" ({facts['compiled']} loops compiled, once)" if facts["compiled"] else ""
    say(f"{facts['epochs']} epochs of {name} ({why}), {facts['seconds']['all']:.2f} s{once}")
    say(f"model in {facts['model']}")
