"""SVC and KernelPegasosClassifier to the records of model files, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from pegasos.core.rows import CsrRows
from pegasos.data.check import as_rows
from pegasos.estimators import kernel_streams
from pegasos.estimators import parameters as par
from pegasos.estimators.kernel import SVC
from pegasos.estimators.kernel_online import KernelPegasosClassifier
from pegasos.estimators.model_facts import (
    attributes,
    certificates,
    facts,
    facts_of_a_file,
    plain,
    proofs,
)
from pegasos.model.kernel_record import KernelRecord, machine
from pegasos.objective.kernel_json import to_json
from pegasos.objective.kernel_points import Given, is_given

CLASSES: dict[str, Any] = {cls.__name__: cls for cls in (SVC, KernelPegasosClassifier)}
_NOTHING = np.zeros(0)
_NO_ROWS = np.zeros(0, np.int64)


def to_record(estimator: Any, parameters: dict[str, Any], common: dict[str, Any]) -> KernelRecord:
    """The record of a fitted kernel machine; a TypeError if its kernel is a function."""
    to_json(estimator.kernel_)
    own = _of_svc(estimator) if isinstance(estimator, SVC) else _of_pegasos(estimator)
    return KernelRecord(
        kernel=estimator.kernel_,
        n_features=int(estimator.n_features_in_),
        parameters={name: plain(value) for name, value in parameters.items()},
        **own,
        **common,
    )


def restore(estimator: Any, record: KernelRecord) -> None:
    """Make an estimator with the parameters of a record the one that was saved."""
    with facts_of_a_file("parameters"):
        par.threads_of(estimator.n_threads)
        if isinstance(estimator, SVC):
            estimator._check_shapes()
    if isinstance(estimator, SVC):
        _restore_svc(estimator, record)
    else:
        _restore_pegasos(estimator, record)


def _of_svc(estimator: SVC) -> dict[str, Any]:
    vectors = None if is_given(estimator.kernel_) else as_rows(estimator.support_vectors_)
    fit = facts(estimator) | {
        "fit_status": estimator.fit_status_,
        "is_kernel": bool(estimator._is_kernel),
        "shape": [int(n) for n in estimator.shape_fit_],
        "class_weight": [float(weight) for weight in estimator.class_weight_],
    }
    return {
        "rows": vectors,
        "coef": estimator.dual_coef_,
        "intercept": estimator.intercept_,
        "counts": estimator.n_support_.astype(np.int64),
        "support": estimator.support_.astype(np.int64),
        "sqnorms": _NOTHING,
        "center": _NOTHING,
        "fit": fit,
    }


def _restore_svc(estimator: Any, record: KernelRecord) -> None:
    estimator.kernel_ = record.kernel
    estimator.dual_coef_, estimator.intercept_ = record.coef, record.intercept
    estimator.n_support_ = record.counts.astype(np.int32)
    with facts_of_a_file():
        rows, columns = (int(n) for n in record.fit["shape"])
        estimator.shape_fit_ = rows, columns
        estimator.fit_status_ = int(record.fit["fit_status"])
        estimator._is_kernel = record.fit["is_kernel"] is True
        estimator.class_weight_ = np.array([float(w) for w in record.fit["class_weight"]])
    if np.any(record.support >= min(rows, 1 << 31)) or columns != record.n_features:
        raise ValueError(f"fit: a shape of {rows} x {columns} does not fit the support vectors")
    estimator.support_ = record.support.astype(np.int32)
    estimator.support_vectors_ = _matrix(record.rows)
    estimator.__dict__.update(attributes(record.fit, len(record.intercept)))


def _matrix(rows: Any) -> Any:
    if rows is None:
        return np.empty((0, 0))
    if not isinstance(rows, CsrRows):
        return rows.values
    signed = _index_type(rows)
    as_given = signed().itemsize == rows.columns.itemsize
    columns = rows.columns.view(signed) if as_given else rows.columns.astype(signed)
    parts = (rows.values, columns, rows.starts.astype(signed))
    return sp.csr_matrix(parts, shape=(len(rows.starts) - 1, rows.width))


def _index_type(rows: CsrRows) -> Any:
    """Of a CSR matrix, whose starts count entries in the type of its columns."""
    small = rows.columns.itemsize == 4 and len(rows.values) < 1 << 31
    return np.int32 if small else np.int64


def _of_pegasos(estimator: Any) -> dict[str, Any]:
    learner = getattr(estimator, "_learner", None)
    held, coef, stream = estimator._support, estimator.dual_coef_, None
    if learner is not None:
        average = bool(estimator.average) and estimator.budget is None
        held, coef, stream = kernel_streams.to_arrays(learner, estimator._seen, average)
    fit: dict[str, Any] = {"t": int(estimator.t_)}
    support = getattr(estimator, "support_", _NO_ROWS)
    rows: Any = held.rows
    if isinstance(rows, Given):
        support, rows = rows.index, None
    if hasattr(estimator, "stop_reason_"):
        fit |= {"stop_reason": estimator.stop_reason_, "n_iter": int(estimator.n_iter_)}
    if getattr(estimator, "certificate_", None) is not None:
        fit["certificate"] = proofs(estimator.certificate_)
    return {
        "rows": rows,
        "coef": coef,
        "intercept": estimator.intercept_,
        "counts": _NO_ROWS,
        "support": support.astype(np.int64),
        "sqnorms": held.sqnorms,
        "center": held.center,
        "fit": fit,
        "stream": stream,
    }


def _restore_pegasos(estimator: Any, record: KernelRecord) -> None:
    model = machine(record)
    estimator.kernel_, estimator._support = record.kernel, model.support
    estimator.dual_coef_, estimator.intercept_ = record.coef, record.intercept
    if record.stream is not None:
        learner, seen = kernel_streams.from_arrays(record.kernel, model.support, record.stream)
        estimator._learner, estimator._seen = learner, seen
        estimator._record(learner)
    fit = record.fit
    with facts_of_a_file():
        estimator.t_ = int(fit["t"])
        if "stop_reason" in fit:
            estimator.stop_reason_ = str(fit["stop_reason"])
            estimator.n_iter_ = int(fit["n_iter"])
        found = certificates(fit.get("certificate", []))
    if record.support.size and estimator.budget is None:
        estimator.support_, estimator.certificate_ = record.support, None
    if found:
        if len(found) != len(record.intercept):
            raise ValueError(f"fit: expected facts about {len(record.intercept)} problems")
        estimator.certificate_ = found[0] if len(found) == 1 else found
