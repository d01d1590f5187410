"""CellSVC to the records of model files, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from pegasos.core.rows import CsrRows, DenseRows
from pegasos.estimators import parameters as par
from pegasos.estimators.cell_task import Cell
from pegasos.estimators.cells import CellSVC
from pegasos.estimators.kernel_files import restore_svc, to_record
from pegasos.estimators.model_facts import certificates, facts_of_a_file, plain, proofs
from pegasos.model.cells_record import CellRecord, CellsRecord
from pegasos.objective.certificate import Certificate
from pegasos.objective.kernel_points import Points
from pegasos.objective.nearest import places

CLASSES: dict[str, Any] = {CellSVC.__name__: CellSVC}


def to_cells(estimator: CellSVC, parameters: dict[str, Any], common: dict[str, Any]) -> CellsRecord:
    """The record of a fitted CellSVC; a TypeError if its kernel is a function."""
    seeds = [cell.machine.random_state for cell in estimator.cells_ if cell.machine is not None]
    return CellsRecord(
        kernel=estimator.kernel_,
        cells=[_to_cell(cell, estimator.classes_) for cell in estimator.cells_],
        pairs=bool(estimator._pairs),
        centres=np.array([cell.centre for cell in estimator.cells_]),
        middle=estimator._places.center,
        n_features=int(estimator.n_features_in_),
        parameters={name: plain(value) for name, value in parameters.items()},
        fit={
            "certificate": proofs(estimator.certificate_),
            "n_iter": estimator.n_iter_.tolist(),
            "rows": int(estimator.shape_fit_[0]),
            "class_weight": estimator.class_weight_.tolist(),
            "is_kernel": bool(estimator._is_kernel),
            "seed": int(seeds[0]) if seeds else 0,
        },
        **common,
    )


def _to_cell(cell: Cell, classes: np.ndarray) -> CellRecord:
    machine = None
    if cell.machine is not None:
        common: dict[str, Any] = {
            "kind": "SVC",
            "classes": cell.classes,
            "names": None,
            "reading": {},
        }
        machine = to_record(cell.machine, {}, common)
    present = np.searchsorted(classes, cell.classes).tolist()
    return CellRecord(
        present, int(cell.size), int(cell.learnt), float(cell.C), cell.kernel, machine
    )


def restore(estimator: Any, record: CellsRecord) -> None:
    """Make an estimator with the parameters of a record the one that was saved."""
    with facts_of_a_file("parameters"):
        par.threads_of(estimator.n_threads)  # which predictions need
    fit = record.fit
    with facts_of_a_file():
        seed = int(fit["seed"])
        estimator.shape_fit_ = int(fit["rows"]), record.n_features
        estimator.class_weight_ = np.array([float(weight) for weight in fit["class_weight"]])
        estimator.n_iter_ = np.array([int(n) for n in fit["n_iter"]], dtype=np.int64)
        (estimator.certificate_,) = certificates(fit["certificate"])
        estimator._is_kernel = fit["is_kernel"] is True
    estimator.kernel_, estimator._pairs = record.kernel, record.pairs
    estimator._places = places(record.centres, _like(record))
    estimator.cells_ = [
        _cell(estimator, cell, centre, seed)
        for cell, centre in zip(record.cells, record.centres, strict=True)
    ]
    estimator.n_support_ = np.zeros(len(record.classes), dtype=np.int64)
    estimator.certificates_ = []
    for kept, cell in zip(record.cells, estimator.cells_, strict=True):
        proof: Any = Certificate(0.0, 0.0)
        if cell.machine is not None:
            estimator.n_support_[kept.present] += cell.machine.n_support_
            proof = cell.machine.certificate_
        estimator.certificates_.append(proof)


def _cell(estimator: CellSVC, kept: CellRecord, centre: np.ndarray, seed: int) -> Cell:
    machine = None
    classes = estimator.classes_[kept.present]
    if kept.machine is not None:
        machine = estimator._machine(kept.C, seed)
        machine.classes_, machine.n_features_in_ = classes, estimator.n_features_in_
        restore_svc(machine, kept.machine)
    return Cell(centre, kept.size, kept.learnt, classes, kept.C, kept.kernel, machine)


def _like(record: CellsRecord) -> Points:
    """No rows, stored and moved as those were that the centres are of."""
    d, nothing = record.n_features, np.zeros(0)
    values = np.zeros((0, d), np.float32)
    if record.middle.size:
        return Points(DenseRows(values, 0.0), nothing, record.middle)
    starts = np.zeros(1, np.uint64)
    rows = CsrRows(values.ravel(), np.zeros(0, np.uint32), starts, d, 0.0)
    return Points(rows, nothing, nothing)
