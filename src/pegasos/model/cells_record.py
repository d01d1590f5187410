"""A kernel machine in each of many cells, as it is kept in a file: the machines' arrays one after
the other, however many cells there are, and the centres."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from pegasos.core.cross import gathered, stacked
from pegasos.model import kernel_record
from pegasos.model.decision import Decision
from pegasos.model.kernel_record import KernelRecord
from pegasos.model.linear import check_classes, check_names, n_features_of
from pegasos.model.vectors import check_rows, rows_of, to_arrays
from pegasos.objective.kernel_json import checked, from_json, to_json

CELL_KINDS = ("CellSVC",)
_OF_MACHINES = {"coef": np.float64, "intercept": np.float64} | {
    "counts": np.int64,
    "support": np.int64,
}
_NOTHING = np.zeros(0)


class CellRecord(NamedTuple):
    """The numbers of the classes of a cell, how many rows belong to it and how many it learnt from,
    its C and kernel, and its machine: None where there is one class only."""

    present: list[int]
    size: int
    learnt: int
    C: float
    kernel: Any
    machine: KernelRecord | None


class CellsRecord(NamedTuple):
    """Cells and their `centres`; `middle` was subtracted from rows and centres before distances
    were taken (empty: nothing was, and they are sparse). `pairs`: one-vs-one in every cell.

    The other fields are as in `KernelRecord`; `kernel` is that of cells which chose no other.
    """

    kind: str
    kernel: Any
    cells: list[CellRecord]
    pairs: bool
    centres: np.ndarray
    middle: np.ndarray
    classes: np.ndarray
    names: list[str] | None
    n_features: int
    parameters: dict[str, Any]
    fit: dict[str, Any]
    reading: dict[str, Any]
    stream: None = None
    decision: Decision = Decision()

    @property
    def machines(self) -> list[KernelRecord]:
        return [cell.machine for cell in self.cells if cell.machine is not None]


def to_parts(record: CellsRecord) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What a file says of it beside what it says of every model, and the arrays."""
    arrays = {"centres": record.centres, "middle": record.middle}
    for name, dtype in _OF_MACHINES.items():
        parts = [getattr(machine, name).ravel() for machine in record.machines]
        arrays[name] = np.concatenate([np.zeros(0, dtype), *parts])
    if record.machines:
        arrays |= to_arrays(stacked(*(machine.rows for machine in record.machines)))
    cells = {"pairs": record.pairs, "list": [_facts(cell) for cell in record.cells]}
    own = {"cells": cells, "kernel": to_json(record.kernel), "n_features": record.n_features}
    return own, arrays


def _facts(cell: CellRecord) -> dict[str, Any]:
    return {
        "classes": cell.present,
        "size": cell.size,
        "learnt": cell.learnt,
        "C": cell.C,
        "kernel": to_json(cell.kernel),
        "fit": {} if cell.machine is None else cell.machine.fit,
    }


def from_parts(
    common: dict[str, Any], description: dict[str, Any], arrays: dict[str, np.ndarray]
) -> CellsRecord:
    """The record of a file, checked."""
    for name in ("centres", "middle", *_OF_MACHINES):
        if name not in arrays:
            raise ValueError(f"array {name} is missing")
    entry = description.get("cells")
    if not isinstance(entry, dict) or not isinstance(entry.get("list"), list):
        raise ValueError("cells: expected a list of them")
    K = len(common["classes"])
    cells = [_cell(facts, K) for facts in entry["list"]]
    fits = [facts["fit"] for facts in entry["list"]]
    record = CellsRecord(
        kernel=from_json(description.get("kernel")),
        cells=cells,
        pairs=entry.get("pairs") is True,
        centres=arrays["centres"],
        middle=arrays["middle"],
        n_features=n_features_of(description),
        **common,
    )
    machines = _machines(record, fits, arrays)
    cells = [cell._replace(machine=next(machines)) for cell in cells]
    return check(record._replace(cells=cells))


def _cell(facts: Any, n_classes: int) -> CellRecord:
    """A cell, as yet without its machine."""
    if not isinstance(facts, dict) or not isinstance(facts.get("fit"), dict):
        raise ValueError("cells: one without its facts")
    present, C = facts.get("classes"), facts.get("C")
    whole = isinstance(present, list) and all(type(k) is int for k in present)
    if not whole or not present or not _rises([-1, *present, n_classes]):
        raise ValueError(f"cells: classes {str(present)[:40]} are not rising numbers of classes")
    size: Any = facts.get("size")
    learnt: Any = facts.get("learnt")
    if not all(type(n) is int and 0 <= n < 1 << 62 for n in (size, learnt)):
        raise ValueError(f"cells: {str((size, learnt))[:60]} are no numbers of rows")
    if type(C) is not float or not 0.0 < C < np.inf:
        raise ValueError(f"cells: C must be a positive float, got {str(C)[:40]!r}")
    return CellRecord(present, size, learnt, C, from_json(facts.get("kernel")), None)


def _rises(numbers: list[int]) -> bool:
    return all(a < b for a, b in pairwise(numbers))


def _machines(
    record: CellsRecord, fits: list[dict[str, Any]], arrays: dict[str, np.ndarray]
) -> Iterator[KernelRecord | None]:
    """The machine of each cell, cut out of the arrays of all."""
    own = {name: arrays[name] for name in _OF_MACHINES}
    for name, array in own.items():
        if array.dtype != _OF_MACHINES[name] or array.ndim != 1:
            raise ValueError(f"{name}: {array.dtype} in {array.ndim} dimensions does not fit")
    total, d = own["support"].size, record.n_features
    rows = rows_of(arrays, d)
    if rows is not None:
        check_rows(rows, total, d)
    elif total:
        raise ValueError("vectors: missing")
    if np.any((own["counts"] < 0) | (own["counts"] > total)):
        raise ValueError("counts: not a number of support vectors per class")
    several = [len(cell.present) for cell in record.cells if len(cell.present) > 1]
    counts = _cut(own["counts"], several, "counts")
    sizes = [int(count.sum()) for count in counts]
    problems = [_problems(k, record.pairs) for k in several]
    support = _cut(own["support"], sizes, "support")
    heights = [high for high, _ in problems]
    coef = _cut(own["coef"], [m * high for m, high in zip(sizes, heights, strict=True)], "coef")
    intercept = _cut(own["intercept"], [n for _, n in problems], "intercept")
    return _each(record, fits, rows, zip(coef, heights, intercept, counts, support, strict=True))


def _each(
    record: CellsRecord, fits: list[dict[str, Any]], rows: Any, parts: Iterator[Any]
) -> Iterator[KernelRecord | None]:
    end = 0
    for cell, fit in zip(record.cells, fits, strict=True):
        if len(cell.present) == 1:
            yield None
            continue
        coef, height, intercept, counts, support = next(parts)
        start, end = end, end + support.size
        yield KernelRecord(
            kind="SVC",
            kernel=cell.kernel,
            rows=gathered(rows, slice(start, end)) if rows is not None else None,
            coef=coef.reshape(height, support.size),
            intercept=intercept,
            counts=counts,
            support=support,
            sqnorms=_NOTHING,
            center=_NOTHING,
            classes=record.classes[cell.present],
            names=None,
            n_features=record.n_features,
            parameters={},
            fit=fit,
            reading={},
        )


def _problems(n_classes: int, pairs: bool) -> tuple[int, int]:
    """Rows of coefficients of a machine, and its problems."""
    if n_classes == 2:
        return 1, 1
    return (n_classes - 1, n_classes * (n_classes - 1) // 2) if pairs else (n_classes, n_classes)


def _cut(array: np.ndarray, sizes: list[int], name: str) -> list[np.ndarray]:
    if sum(sizes) != array.size:
        raise ValueError(f"{name}: {array.size} numbers for the cells, not {sum(sizes)}")
    return np.split(array, np.cumsum(sizes)[:-1]) if sizes else []


def check(record: CellsRecord) -> CellsRecord:
    """The same record, if prediction with it can never fail; else a ValueError that says why."""
    d, centres, middle = record.n_features, record.centres, record.middle
    check_classes(record.classes)
    if np.any(record.classes[1:] < record.classes[:-1]):
        raise ValueError("classes: must rise, as the cells count them")
    check_names(record.names, d)
    if centres.dtype not in (np.float32, np.float64) or not record.cells:
        raise ValueError(f"centres: {len(record.cells)} of {centres.dtype} will not do")
    if centres.shape != (len(record.cells), d) or not np.isfinite(centres).all():
        raise ValueError(f"centres: not {len(record.cells)} of {d} finite numbers")
    if middle.dtype != np.float64 or middle.shape not in ((0,), (d,)):
        raise ValueError(f"middle: not {d} numbers of float64, nor none")
    if not np.isfinite(middle).all():
        raise ValueError("middle: holds numbers that are not finite")
    return record._replace(
        kernel=checked(record.kernel), cells=[_checked(cell, record) for cell in record.cells]
    )


def _checked(cell: CellRecord, record: CellsRecord) -> CellRecord:
    if cell.machine is None:
        return cell._replace(kernel=checked(cell.kernel))
    machine = kernel_record.check(cell.machine)
    several = len(cell.present) > 2
    if machine.rows is None or (several and machine.pairs != record.pairs):
        raise ValueError("cells: a machine that does not fit the others")
    return cell._replace(kernel=machine.kernel, machine=machine)
