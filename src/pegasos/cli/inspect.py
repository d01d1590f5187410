"""`pegasos inspect`: what is in a model file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from pegasos.cli import options as opt
from pegasos.cli.console import percent, say
from pegasos.data.errors import DataError


def inspect(
    model: opt.ModelFile,
    top: Annotated[int, typer.Option(min=0, help="Weights shown for each problem.")] = 5,
    json_: opt.Json = False,
) -> None:
    """Say what is in MODEL: kind, classes, parameters, proof, weights."""
    from pegasos.model import file as model_file

    loaded = model_file.load(model)
    try:
        facts, settings = _facts(loaded, top), _settings(loaded.parameters)
        lines = [json.dumps(facts)] if json_ else list(_report(str(model), facts, settings))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise DataError(f"{model}: {str(error)[:200]}") from None
    for line in lines:
        say(line)


def _facts(model: Any, top: int) -> dict[str, Any]:
    from pegasos.estimators.model_facts import certificates, facts_of_a_file

    with facts_of_a_file():
        proofs = certificates(model.fit.get("certificate", []))
    return {
        "kind": model.kind,
        "classes": model.classes.tolist(),
        "features": model.n_features,
        "parameters": model.parameters,
        "objective": [proof.primal for proof in proofs],
        "bound": [proof.dual for proof in proofs],
        "stop": model.fit.get("stop_reason", []),
        "solver": model.fit.get("solver", []),
        "threshold": model.decision.threshold,
        "calibration": _calibration(model),
        **_own(model, top),
    }


def _calibration(model: Any) -> dict[str, Any] | None:
    found = model.decision.calibration
    return None if found is None else found._asdict()


def _own(model: Any, top: int) -> dict[str, Any]:
    from pegasos.model.cells_record import CellsRecord
    from pegasos.model.kernel_record import KernelRecord

    if isinstance(model, CellsRecord):
        return _of_cells(model)
    return _of_kernel(model) if isinstance(model, KernelRecord) else _of_weights(model, top)


def _settings(parameters: dict[str, Any]) -> str:
    from pegasos.estimators.model_facts import rebuilt

    changed = {name: rebuilt(value) for name, value in parameters.items() if value is not None}
    return ", ".join(f"{name}={value}" for name, value in changed.items())


def _of_weights(model: Any, top: int) -> dict[str, Any]:
    import numpy as np

    from pegasos.model.pairs import problem_names

    return {
        "intercept": model.intercept.tolist(),
        "columns": None if model.map is None else model.coef.shape[1],
        "nonzero": int(np.count_nonzero(model.coef)),
        "stream": None if model.stream is None else model.stream["tally"].tolist(),
        "weights": _largest(model, top),
        "problems": problem_names(model.classes, model.pairs, " against "),
        "center": _center(model),
    }


def _center(model: Any) -> dict[str, float] | None:
    """How long the centre is, and how far from it the weights of all problems are."""
    import numpy as np

    if model.center is None:
        return None
    coef = model.center[0]
    norms = {"norm": np.linalg.norm(coef), "distance": np.linalg.norm(model.coef - coef)}
    return {name: float(value) for name, value in norms.items()}


def _of_kernel(model: Any) -> dict[str, Any]:
    return {
        "intercept": model.intercept.tolist(),
        "kernel": repr(model.kernel),
        "is_kernel": model.fit.get("is_kernel", True) is True,
        "support_vectors": model.coef.shape[1],
        "of_class": model.counts.tolist(),
        "steps": model.fit.get("t"),
    }


def _of_cells(model: Any) -> dict[str, Any]:
    of_class = [0] * len(model.classes)
    for cell in model.cells:
        counts = [] if cell.machine is None else cell.machine.counts.tolist()
        for k, count in zip(cell.present, counts, strict=False):
            of_class[k] += count
    return {
        "kernel": repr(model.kernel),
        "is_kernel": model.fit.get("is_kernel") is True,
        "support_vectors": sum(of_class),
        "of_class": of_class,
        "cells": len(model.cells),
        "rows": [cell.size for cell in model.cells],
    }


def _largest(model: Any, top: int) -> list[list[list[Any]]]:
    """Of each problem the largest weights, each with the name of its column."""
    import numpy as np

    first = 0 if model.reading.get("zero_based") else 1
    orders = [np.argsort(-np.abs(w), kind="stable")[:top].tolist() for w in model.coef]
    names = _names(model, {j for order in orders for j in order}, first)
    return [
        [[names.get(j, j + first), float(w[j])] for j in order]
        for w, order in zip(model.coef, orders, strict=True)
    ]


def _names(model: Any, columns: set[int], first: int) -> dict[int, str]:
    """Of those columns that have one."""
    from pegasos.estimators.map_files import column_names

    if model.map is None:
        return {} if model.names is None else {j: model.names[j] for j in columns}
    features = model.names or [f"x{j + first}" for j in range(model.n_features)]
    return column_names(model.map, columns, features)


def _report(path: str, facts: dict[str, Any], settings: str) -> Iterator[str]:
    classes = ", ".join(str(name) for name in facts["classes"][:8])
    more = f", … ({len(facts['classes'])})" if len(facts["classes"]) > 8 else ""
    yield f"{path}: {facts['kind']}, {facts['features']:,} features, classes {classes}{more}"
    yield f"parameters  {settings}"
    yield from _report_decision(facts)
    if "kernel" in facts:
        yield from _report_kernel(facts)
        return
    if facts["columns"] is not None:
        yield f"mapped to {facts['columns']:,} columns, which the weights are of"
    if facts["stream"] is not None:
        rows, errors = facts["stream"]
        share = f"{100 * errors / max(1, rows):.2f} % of them mistaken before they were learnt"
        yield f"learnt from a stream of {rows:,} rows, {share}; no certificate, for it is gone"
    if facts["center"] is not None:
        norm, distance = facts["center"]["norm"], facts["center"]["distance"]
        yield f"learnt near a centre: |w - w0| {distance:.4g}, |w0| {norm:.4g}"
    one = len(facts["objective"]) == 1 < len(facts["weights"])
    if one:
        yield f"all classes in one problem: {_proof(facts['objective'][0], facts['bound'][0])}"
    for k, weights in enumerate(facts["weights"][:20]):
        which, intercept = facts["problems"][k], facts["intercept"][k]
        listed = ", ".join(f"{name}: {weight:.4g}" for name, weight in weights)
        yield f"for class {which}: intercept {intercept:.4g}; largest {listed}"
        if k < len(facts["objective"]) and not one:
            yield f"  {_proof(facts['objective'][k], facts['bound'][k])}"
    if len(facts["weights"]) > 20:
        yield f"… and {len(facts['weights']) - 20} more (--json has all)"


def _report_decision(facts: dict[str, Any]) -> Iterator[str]:
    if facts["threshold"]:
        yield f"predicts {facts['classes'][1]} where the score is above {facts['threshold']:.6g}"
    if facts["calibration"] is not None:
        kind, x = facts["calibration"]["kind"], facts["calibration"]["x"]
        pieces = f"{len(x)} points between {x[0]:.4g} and {x[-1]:.4g}"
        yield f"probabilities of scores by cross-fitting: {kind}, {pieces}"


def _report_kernel(facts: dict[str, Any]) -> Iterator[str]:
    shares = zip(facts["classes"], facts["of_class"], strict=False)
    listed = ", ".join(f"{count:,} of class {name}" for name, count in list(shares)[:8])
    yield f"kernel {facts['kernel']}"
    if "cells" in facts:
        least, most = min(facts["rows"]), max(facts["rows"])
        yield f"{facts['cells']:,} cells of {least:,} to {most:,} rows; below, the sums over all"
    yield f"{facts['support_vectors']:,} support vectors{': ' if listed else ''}{listed}"
    problems = len(facts["objective"])
    if not problems:
        yield "no certificate"
    for k in range(min(problems, 20)):
        which = f"problem {k + 1} of {problems}: " if problems > 1 else ""
        primal, dual = facts["objective"][k], facts["bound"][k]
        if facts["is_kernel"]:
            yield f"{which}{_proof(primal, dual)}"
        else:
            yield f"{which}objective {primal:.6g}; no proof, since the function is no kernel"
    if problems > 20:
        yield f"… and {problems - 20} more problems (--json has all)"


def _proof(primal: float, dual: float) -> str:
    dual = max(0.0, dual)  # as no loss here is ever negative
    gap = (primal - dual) / abs(primal) if primal > dual else 0.0
    return (
        f"objective {primal:.6g}; proven: the best possible is at least {dual:.6g}, "
        f"at most {percent(gap)} % lower"
    )
