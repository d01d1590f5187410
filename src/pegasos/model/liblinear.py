"""LIBLINEAR's text models, in and out.

    solver_type L2R_L2LOSS_SVC_DUAL
    nr_class 2
    label 1 -1
    nr_feature 13
    bias 1
    w
    one line per feature (one more if bias >= 0): a weight per problem

With two classes the weights speak for the first label.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from pegasos.data.atomic import writing
from pegasos.data.errors import DataError, excerpt
from pegasos.model.linear import LinearModel, check

_LOSS = {
    "L2R_LR": ("LogisticRegression", None),
    "L2R_LR_DUAL": ("LogisticRegression", None),
    "L1R_LR": ("LogisticRegression", None),
    "L2R_L2LOSS_SVC_DUAL": ("LinearSVC", "squared_hinge"),
    "L2R_L2LOSS_SVC": ("LinearSVC", "squared_hinge"),
    "L1R_L2LOSS_SVC": ("LinearSVC", "squared_hinge"),
    "L2R_L1LOSS_SVC_DUAL": ("LinearSVC", "hinge"),
    "MCSVM_CS": ("LinearSVC", "hinge"),
}
_HEAD = ("solver_type", "nr_class", "label", "nr_feature", "bias")


def save(path: str | os.PathLike[str], model: LinearModel) -> None:
    """Write a model as LIBLINEAR does; its classes must be whole numbers."""
    labels = model.classes
    if model.pairs:
        raise ValueError("LIBLINEAR has no models of pairs of classes: use multi_class='ovr'")
    if labels.dtype.kind not in "iu" and not np.all(np.mod(_numbers(labels), 1) == 0):
        raise ValueError("LIBLINEAR models need classes that are whole numbers")
    if model.decision.threshold:
        raise ValueError("LIBLINEAR models have no threshold: fit again, or set threshold_ to 0")
    order = labels[::-1] if len(labels) == 2 else labels
    biased = bool(model.intercept.any())
    weights = np.column_stack([model.coef, model.intercept]) if biased else model.coef
    lines = [
        f"solver_type {_solver_type(model)}",
        f"nr_class {len(labels)}",
        "label " + " ".join(str(int(label)) for label in order),
        f"nr_feature {model.n_features}",
        f"bias {1 if biased else -1}",
        "w",
        *(" ".join(f"{w:.17g}" for w in row) + " " for row in weights.T),
    ]
    with writing(path) as file:
        file.write(("\n".join(lines) + "\n").encode())


def _numbers(labels: np.ndarray) -> np.ndarray:
    if labels.dtype.kind not in "fb":
        raise ValueError("LIBLINEAR models need classes that are whole numbers, not text")
    return labels.astype(float)


def _solver_type(model: LinearModel) -> str:
    if model.kind == "LogisticRegression":
        return "L2R_LR"
    hinge = model.parameters.get("loss") == "hinge"
    return "L2R_L1LOSS_SVC_DUAL" if hinge else "L2R_L2LOSS_SVC_DUAL"


def load(path: str | os.PathLike[str]) -> LinearModel:
    """Read a LIBLINEAR model through the same checks as our own."""
    name = os.fspath(path)
    lines = Path(path).read_bytes().replace(b"\r\n", b"\n").split(b"\n")
    if b"w" not in lines[:20]:
        raise DataError(f"{name}: not a LIBLINEAR model (no line 'w' among the first 20)")
    at = lines.index(b"w")
    head = _head(name, lines[:at])
    try:
        with np.errstate(over="ignore"):  # what overflows is refused
            return check(_model(name, head, lines[at + 1 :], at + 2))
    except ValueError as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{name}: {error}") from None


def _head(name: str, lines: list[bytes]) -> dict[str, list[str]]:
    head: dict[str, list[str]] = {}
    for number, line in enumerate(lines, start=1):
        words = line.decode("ascii", errors="replace").split()
        if not words or words[0] not in _HEAD or words[0] in head:
            raise DataError(f"{name}:{number}: expected {', '.join(_HEAD)}, got {excerpt(line)}")
        head[words[0]] = words[1:]
    missing = [key for key in _HEAD if key not in head or not head[key]]
    if missing:
        raise DataError(f"{name}: the line {missing[0]!r} is missing or empty")
    return head


def _model(name: str, head: dict[str, list[str]], lines: list[bytes], first: int) -> LinearModel:
    solver = head["solver_type"][0]
    if solver not in _LOSS:
        known = ", ".join(_LOSS)
        raise ValueError(f"solver_type {solver[:40]!r} is no classifier; readable: {known}")
    kind, loss = _LOSS[solver]
    labels = np.array([_whole(word, "label") for word in head["label"]], dtype=np.int64)
    K, d = _whole(head["nr_class"][0], "nr_class"), _whole(head["nr_feature"][0], "nr_feature")
    bias = _real(head["bias"][0], "bias")
    if K != len(labels) or K < 2 or d < 1:
        raise ValueError(f"nr_class {K}, {len(labels)} labels, nr_feature {d}: they do not agree")
    while lines and not lines[-1].strip():
        lines.pop()
    rows = d + (bias >= 0)
    if len(lines) != rows:
        raise ValueError(f"{len(lines)} lines of weights, expected {rows}")
    n = 1 if K == 2 and solver != "MCSVM_CS" else K
    weights = np.array([_weights(name, first + i, line, n) for i, line in enumerate(lines)])
    coef = np.ascontiguousarray(weights[:d].T)
    intercept = bias * weights[d] if bias >= 0 else np.zeros(n)
    if K == 2:
        if n == 2:
            coef, intercept = coef[:1] - coef[1:], intercept[:1] - intercept[1:]
        if labels[0] < labels[1]:
            coef, intercept, labels = -coef, -intercept, labels[::-1]
        labels = labels[::-1]
    else:
        order = np.argsort(labels)
        coef, intercept, labels = coef[order], intercept[order], labels[order]
    parameters = {} if loss is None else {"loss": loss}
    return LinearModel(kind, coef, intercept, labels.copy(), None, parameters, {}, {})


def _whole(word: str, what: str) -> int:
    if not word.lstrip("-").isdecimal() or len(word) > 18:
        raise ValueError(f"{what}: {word[:40]!r} is not a whole number")
    return int(word)


def _real(word: str, what: str) -> float:
    try:
        value = float(word.replace("_", "?"))
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise ValueError(f"{what}: {word[:40]!r} is not a finite number")
    return value


def _weights(name: str, number: int, line: bytes, n: int) -> list[float]:
    words = line.split()
    try:
        values = [float(word) for word in words]
    except ValueError:
        values = []
    if len(values) != n or b"_" in line or not np.isfinite(values).all():
        raise DataError(f"{name}:{number}: expected {n} finite numbers, got {excerpt(line)}")
    return values
