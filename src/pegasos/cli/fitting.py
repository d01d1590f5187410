"""Training on a whole file: read, fit under the eyes of a watcher, write, report."""

from __future__ import annotations

import json
import os
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import typer

from pegasos.cli import center, maps
from pegasos.cli.console import as_typed, counted, finite, note, percent, say
from pegasos.cli.data import Data, Reading, check_classes, check_width, kept_of, read
from pegasos.data.errors import DataError
from pegasos.data.stream import name_of


class Outputs(NamedTuple):
    """What is written where, and how often."""

    model: Path
    checkpoint: Path | None
    every: float


def trained(file: str, reading: Reading, estimator: Any, outputs: Outputs) -> dict[str, Any]:
    """Read, fit and write; what is to be said of it."""
    from pegasos.cli.checkpoints import Checkpoints
    from pegasos.cli.stop import locked
    from pegasos.cli.warmup import heard
    from pegasos.cli.watch import ProgressLine
    from pegasos.estimators.files import to_model
    from pegasos.model import file as model_file

    started = time.perf_counter()
    with locked(outputs.checkpoint), ProgressLine() as line, heard(line.compiling):
        line.say(f"reading {file}")
        data = read(file, reading)
        _check(file, data, estimator)
        if getattr(estimator, "center", None) is not None:
            width = center.width_with(estimator, file, reading, data.X.shape[1])
            if width > data.X.shape[1]:
                data.X.resize((data.X.shape[0], width))
        seconds = time.perf_counter() - started
        keeper = Checkpoints(outputs.checkpoint, outputs.every)
        _fit(estimator, data, keeper, line)
        model_file.save(outputs.model, to_model(estimator, kept_of(reading, file)))
        keeper.done(estimator.stop_reason_)
    facts = _facts(file, outputs.model, estimator, data)
    facts |= {"resumed": keeper.resumed, "compiled": line.compiled}
    facts["center"], facts["map"] = center.facts_of(estimator), maps.facts_of(estimator)
    facts["seconds"] = {"reading": seconds, "all": time.perf_counter() - started}
    return facts


def _check(file: str, data: Data, estimator: Any) -> None:
    import numpy as np

    from pegasos.model.pairs import n_problems

    if data.X.shape[1] == 0:
        raise DataError(f"{name_of(file)}: no features, only labels")
    check_classes(file, data.y)
    if not hasattr(estimator, "kernel"):
        problems = n_problems(len(np.unique(data.y)), estimator.multi_class == "ovo")
        check_width(file, data.X.shape[1], problems, note)


def _fit(estimator: Any, data: Data, keeper: Any, line: Any) -> None:
    """Fit under the eyes of the watcher; a signal stops it at a safe point.

    A warning is told when it comes: it may be that the fit will take long.
    """
    from pegasos.cli.stop import Terminated
    from pegasos.cli.watch import Signals, Watcher

    with Signals() as signals, warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = _told  # type: ignore[assignment]
        estimator._watch = Watcher(signals, keeper, line)
        try:
            _fit_named(estimator, data)
        except KeyboardInterrupt:
            if signals.received is None:
                raise
            raise Terminated(signals.received, _how_to_resume(keeper.path)) from None
    line.close()


def _told(message: Warning | str, *_: Any) -> None:
    note(as_typed(" ".join(str(message).split())))


def _fit_named(estimator: Any, data: Data) -> None:
    estimator._names = data.names
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
    found = estimator.certificate_ if several else [estimator.certificate_]
    proofs = [proof.above_zero for proof in found]  # as no loss here is ever negative
    choices = estimator.solver_ if several else [estimator.solver_]
    reasons = estimator.stop_reason_ if several else [estimator.stop_reason_]
    facts: dict[str, Any] = {
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
    }
    if hasattr(estimator, "calibration_"):
        facts["probabilities"] = estimator.calibration_.kind
    if hasattr(estimator, "kernel_"):
        facts |= {
            "kernel": repr(estimator.kernel_),
            "is_kernel": bool(estimator._is_kernel),
            "support_vectors": int(estimator.support_.size),
            "steps": int(estimator.n_iter_.sum()),
        }
    else:
        facts["epochs"] = int(estimator.n_iter_)
    return facts


def report(facts: dict[str, Any], as_json: bool) -> None:
    """In words, or as JSON for programs."""
    if as_json:
        typer.echo(json.dumps(finite(facts)))
        return
    classes = ", ".join(str(name) for name in facts["classes"][:6])
    more = ", …" if len(facts["classes"]) > 6 else ""
    say(
        f"{name_of(facts['data'])}: {facts['rows']:,} rows, {facts['features']:,} features, "
        f"classes {classes}{more} (read in {facts['seconds']['reading']:.2f} s)"
    )
    worst = max(range(len(facts["gap"])), key=lambda k: facts["gap"][k])
    gap, objective, bound = (facts[key][worst] for key in ("gap", "objective", "bound"))
    which = "" if len(facts["gap"]) == 1 else f" (of {len(facts['gap'])} problems, the worst)"
    if facts.get("is_kernel", True):
        words = f"proven: the best possible is at least {bound:.6g}, at most {percent(gap)} % lower"
    else:
        words = f"nothing is proven, since {facts['kernel']} is no kernel on these rows"
    say(f"objective {objective:.6g}; {words}{which}")
    name, why = facts["solver"][worst]
    compiled = facts["compiled"]
    once = f" ({counted(compiled, 'loop')} compiled, once)" if compiled else ""
    what = "epoch" if "epochs" in facts else "step"
    work = counted(facts[f"{what}s"], what)
    say(f"{work} of {name} ({why}), {facts['seconds']['all']:.2f} s{once}")
    if "kernel" in facts:
        say(f"{facts['support_vectors']:,} support vectors, {facts['kernel']}")
    if facts["center"]:
        say(center.in_words(facts["center"]))
    if facts["map"]:
        say(maps.in_words(facts["map"]))
    if "probabilities" in facts:
        say(f"probabilities of scores by cross-fitting ({facts['probabilities']})")
    say(f"model in {facts['model']}")
