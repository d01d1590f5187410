"""A kernel machine as it is kept in a file: support vectors once, their coefficients, and how it
came about."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pegasos.core.rows import DenseRows
from pegasos.model import kernel_stream
from pegasos.model.decision import Decision
from pegasos.model.kernel import KernelModel, are_of_pairs
from pegasos.model.linear import check_classes, check_names, n_features_of
from pegasos.model.vectors import check_points, rows_of, to_arrays
from pegasos.objective.kernel_json import checked, from_json, to_json
from pegasos.objective.kernel_points import Points, given_columns, is_given, points
from pegasos.objective.kernels import Gaussian, Precomputed, leaves

KERNEL_KINDS = ("SVC", "KernelPegasosClassifier")
_ARRAYS = ("coef", "intercept", "counts", "support", "sqnorms", "center")
_TYPES = dict.fromkeys(_ARRAYS, np.float64) | {"counts": np.int64, "support": np.int64}


class KernelRecord(NamedTuple):
    """`rows` are the support vectors (None of a precomputed kernel), as given; or moved by `center`
    and with their `sqnorms`, if these are not empty. `support`: their rows in the training data,
    `counts`: how many there are of each class; either may be empty if nobody needs it.

    `parameters`, `fit` and `reading` are as in `LinearModel`; `stream`: see `model.kernel_stream`.
    """

    kind: str
    kernel: Any
    rows: Any
    coef: np.ndarray
    intercept: np.ndarray
    counts: np.ndarray
    support: np.ndarray
    sqnorms: np.ndarray
    center: np.ndarray
    classes: np.ndarray
    names: list[str] | None
    n_features: int
    parameters: dict[str, Any]
    fit: dict[str, Any]
    reading: dict[str, Any]
    stream: dict[str, np.ndarray] | None = None
    decision: Decision = Decision()

    @property
    def pairs(self) -> bool:
        return are_of_pairs(self.coef, len(self.classes))


def machine(record: KernelRecord) -> KernelModel:
    """What predicts."""
    if record.rows is None:
        support = given_columns(record.n_features, record.support)
    elif record.sqnorms.size:
        support = Points(record.rows, record.sqnorms, record.center)
    else:
        support = points(record.kernel, record.rows)
    return KernelModel(
        record.kernel, support, record.coef, record.counts, record.intercept, record.pairs
    )


def to_parts(record: KernelRecord) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What a file says of it beside what it says of every model, and the arrays."""
    arrays = {name: getattr(record, name) for name in _ARRAYS}
    if record.rows is not None:
        arrays |= to_arrays(record.rows)
    return {"kernel": to_json(record.kernel), "n_features": record.n_features}, arrays


def from_parts(
    common: dict[str, Any],
    description: dict[str, Any],
    arrays: dict[str, np.ndarray],
    stream: dict[str, np.ndarray] | None,
) -> KernelRecord:
    """The record of a file, checked."""
    missing = [name for name in _ARRAYS if name not in arrays]
    if missing:
        raise ValueError(f"array {missing[0]} is missing")
    d = n_features_of(description)
    own: dict[str, Any] = {name: arrays[name] for name in _ARRAYS}
    record = KernelRecord(
        kernel=from_json(description.get("kernel")),
        rows=rows_of(arrays, d),
        stream=stream,
        n_features=d,
        **own,
        **common,
    )
    return check(record)


def check(record: KernelRecord) -> KernelRecord:
    """The same record, if prediction with it can never fail; else a ValueError that says why."""
    if record.kind not in KERNEL_KINDS:
        known = ", ".join(KERNEL_KINDS)
        raise ValueError(f"kind: {str(record.kind)[:40]!r} is not one of {known}")
    check_classes(record.classes)
    check_names(record.names, record.n_features)
    for name in _ARRAYS:
        array = getattr(record, name)
        if array.dtype != _TYPES[name] or array.ndim != (2 if name == "coef" else 1):
            raise ValueError(f"{name}: {array.dtype} in {array.ndim} dimensions does not fit")
        if not np.isfinite(array).all():
            raise ValueError(f"{name}: holds numbers that are not finite")
    record = record._replace(kernel=checked(record.kernel))
    _check_coef(record)
    _check_support(record)
    if record.rows is not None:
        held = Points(record.rows, record.sqnorms, record.center)
        check_points(held, record.coef.shape[1], record.n_features)
    _check_stream(record)
    return record


def _check_coef(record: KernelRecord) -> None:
    K = len(record.classes)
    several = record.kind == "SVC" and K > 2
    problems = {1: 1} if K == 2 else {K: K}
    if several:
        problems[K - 1] = K * (K - 1) // 2
    found = len(record.coef)
    if found not in problems or record.intercept.shape != (problems[found],):
        shapes = f"{record.coef.shape} and {record.intercept.shape}"
        raise ValueError(f"coef: shapes {shapes} do not fit {K} classes")
    if record.coef.shape[1] == 0:
        raise ValueError("coef: no support vectors")


def _check_support(record: KernelRecord) -> None:
    m, K = record.coef.shape[1], len(record.classes)
    given = is_given(record.kernel)
    if given != (record.rows is None):
        raise ValueError("vectors: missing, or there though the kernel is precomputed")
    if given and not all(isinstance(leaf, Precomputed) for leaf in leaves(record.kernel)):
        raise ValueError("kernel: a precomputed one beside others")
    wanted = {m} if given or record.kind == "SVC" else {0, m}
    highest = record.n_features if given else 1 << 62
    support = record.support
    if support.size not in wanted or np.any((support < 0) | (support >= highest)):
        raise ValueError(f"support: not the rows of {m} support vectors")
    counts = record.counts
    needed = record.kind == "SVC"
    if counts.size != (K if needed else 0) or np.any((counts < 0) | (counts > m)):
        raise ValueError("counts: not a number of support vectors per class")
    if needed and counts.sum() != m:
        raise ValueError(f"counts: they do not add up to {m} support vectors")


def _check_stream(record: KernelRecord) -> None:
    if record.stream is None:
        return
    if record.kind == "SVC" or record.rows is None:
        raise ValueError(f"stream: a {record.kind} does not learn {record.kernel!r} from streams")
    m, d = record.coef.shape[1], record.n_features
    kernel_stream.check(record.stream, (m, d), len(record.coef), len(record.classes))
    budget, asked = float(record.stream["rule"][2]), record.parameters.get("budget")
    if budget != (0 if asked is None else asked):
        raise ValueError(
            f"stream: rule: a budget of {budget:.0f}, but the parameter says {str(asked)[:40]}"
        )
    merges = record.stream["sizes"].size
    if merges and not (isinstance(record.kernel, Gaussian) and isinstance(record.rows, DenseRows)):
        raise ValueError("stream: only vectors of a Gaussian kernel are merged")
