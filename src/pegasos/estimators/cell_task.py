"""The problems of all cells as one task, and what the classes that a cell lacks are worth there."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pegasos.core.threads import run_blocks
from pegasos.estimators.classifier import Data
from pegasos.estimators.kernel import SVC
from pegasos.estimators.kernel_machine import without_gap
from pegasos.estimators.pairs import KernelTask
from pegasos.estimators.parts import Part
from pegasos.model.kernel import scores_of
from pegasos.model.pairs import couples, n_problems
from pegasos.solvers.cells import Cells
from pegasos.solvers.driver import Driver, Stop


class Cell(NamedTuple):
    """A cell: its centre, how many rows belong to it and how many it learnt from, the classes
    among these, its C and kernel, and its SVC (None where there is only one class)."""

    centre: np.ndarray
    size: int
    learnt: int
    classes: np.ndarray
    C: float
    kernel: Any
    machine: SVC | None


class Setting(NamedTuple):
    """What a cell may choose."""

    C: float
    kernel: Any


class CellFit(NamedTuple):
    """A cell's machine, the numbers of the classes in it, its rows, and its task: None of a cell
    with one class, which has nothing to solve."""

    setting: Setting
    machine: SVC
    present: np.ndarray
    data: Data
    task: KernelTask | None

    @property
    def parts(self) -> list[Part]:
        return [] if self.task is None else self.task.parts


class CellTask(NamedTuple):
    """The problems (cell, number in it) of all cells, the largest first."""

    cells: Cells
    fits: list[CellFit]
    order: list[tuple[int, int]]
    stop: Stop
    watch: Any = None

    @property
    def parts(self) -> list[Part]:
        return [self.fits[j].parts[k] for j, k in self.order]

    @property
    def targets(self) -> range:
        return range(len(self.order))

    @property
    def names(self) -> list[str]:
        return [f"cell {j}: {self.fits[j].parts[k].name}" for j, k in self.order]

    @property
    def centers(self) -> list[np.ndarray]:
        """The points (beta, b) to begin with."""
        return [np.zeros(part.rows.size + 1) for part in self.parts]

    def sweep(self, Cs: list[float], deadline: float) -> tuple[dict, bool]:
        """No rows in common that one sweep could serve."""
        return {}, False

    def driver(self, k: int, stop: Stop, answer: None = None) -> Driver:
        """The run of problem k."""
        cell, number = self.order[k]
        fit = self.fits[cell]
        assert fit.task is not None
        return fit.task.driver(number, stop if fit.machine._is_kernel else without_gap(stop))

    def by_cell(self, values: list[Any]) -> list[list[Any]]:
        """A value per problem -> a list of them per cell."""
        found: list[list[Any]] = [[None] * len(fit.parts) for fit in self.fits]
        for (j, k), value in zip(self.order, values, strict=True):
            found[j][k] = value
        return found


def task_of(cells: Cells, fits: list[CellFit], stop: Stop) -> CellTask:
    """The largest problems come first, so that no thread is left with one of them."""
    order = [(j, k) for j, fit in enumerate(fits) for k in range(len(fit.parts))]
    order.sort(key=lambda place: -fits[place[0]].parts[place[1]].rows.size)
    return CellTask(cells, fits, order, stop)


def problem_scores(
    machine: SVC | None, present: np.ndarray, X: Any, n_classes: int, pairs: bool
) -> np.ndarray:
    """Scores of rows by a cell: a column per problem of all classes, as SVC has them.

    A problem that lacks one of its sides in the cell is decided for the other with 1 or -1, its
    exact solution; one without both gives 0. Against the rest, a class that is not in the cell also
    stays 1 below those that are.
    """
    here = np.isin(np.arange(n_classes), present).astype(np.float64)
    order = couples(n_classes)
    if pairs:
        fixed = np.array([here[i] - here[j] for i, j in order])
    else:
        fixed = 2.0 * here[1:] - 1.0 if n_classes == 2 else 2.0 * here - 1.0
    out = np.tile(fixed, (X.shape[0], 1))
    if machine is None:
        return out
    scores = scores_of(machine._kernel_model(), X)
    if n_classes == 2:
        return scores
    if pairs:  # of two classes SVC counts the second as positive, of a pair the first
        columns = [order.index((present[i], present[j])) for i, j in couples(present.size)]
        out[:, columns] = -scores if present.size == 2 else scores
    else:
        scores = np.hstack([-scores, scores]) if present.size == 2 else scores
        out = np.minimum(out, scores.min(axis=1, keepdims=True) - 1.0)
        out[:, present] = scores
    return out


def scores_by_cell(
    machines: list[SVC | None],
    known: list[np.ndarray],
    cell: np.ndarray,
    X: Any,
    classes: tuple[int, bool],
) -> np.ndarray:
    """Scores of rows, each by its cell; `known`: the numbers of the classes in each cell."""
    K, pairs = classes
    order = np.argsort(cell, kind="stable")
    groups = np.split(order, np.cumsum(np.bincount(cell, minlength=len(machines)))[:-1])
    out = np.empty((X.shape[0], n_problems(K, pairs)))

    def part(j: int, _: int) -> None:
        rows = groups[j]
        if rows.size:
            out[rows] = problem_scores(machines[j], known[j], X[rows], K, pairs)

    run_blocks(part, len(groups), 1)
    return out
