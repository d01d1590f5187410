"""The one problem of Crammer and Singer for all classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from pegasos.core.memory import free_memory
from pegasos.estimators.one_vs_all import Task
from pegasos.objective.multiclass import MulticlassProblem, multiclass_problem, pulls
from pegasos.objective.problem import Problem
from pegasos.solvers import crammer_singer  # noqa: F401  (registers what descent does there)
from pegasos.solvers.auto import Choice
from pegasos.solvers.driver import Driver, Run, Stop
from pegasos.solvers.lanes import Found
from pegasos.solvers.stops import Validation

_TABLES = 12  # of rows x classes that a run holds at a time, at most (measured)


class MulticlassTask(Task):
    """A task of one problem, whose point W has a column for each class.

    A model has a weight vector for each of them; of two classes one, the difference.
    """

    @staticmethod
    def targets_of(n_classes: int) -> list[Any]:
        return [range(n_classes)]

    @staticmethod
    def name_of(target: Any, classes: np.ndarray) -> str:
        return "all classes"

    @staticmethod
    def of_problems(centers: np.ndarray) -> np.ndarray:
        """W0; half of a difference for one of two classes, less it for the other."""
        each = np.concatenate([-0.5 * centers, 0.5 * centers]) if len(centers) == 1 else centers
        return np.ascontiguousarray(each.T)[None]

    @staticmethod
    def solver_of(given: Any) -> tuple[Any, Choice]:
        if isinstance(given, str) and given not in ("auto", "dual"):
            raise ValueError(
                f"solver={given!r} is for one problem per class: with "
                "multi_class='crammer_singer' use solver='auto' or 'dual'"
            )
        if isinstance(given, str) and given == "auto":
            return "dual", Choice("dual", "the method for all classes in one problem")
        return Task.solver_of(given)

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        return [(len(self.label), len(self.targets[0]))]

    def begun(self, starts: Any, intercept: np.ndarray) -> Task:
        """Shares do not tell free intercepts: they begin at those of the centre, which nothing
        draws them to."""
        centers = self.centers.copy()
        if self.free:
            centers[0, -1] = self.of_problems(intercept[:, None] / self.rows.bias)[0, 0]
        return self._replace(starts=starts, centers=centers)

    def driver(self, k: int, stop: Stop, answer: Found | None = None) -> Driver:
        need, free = 8.0 * _TABLES * np.prod(self.shapes[0]), free_memory()
        if need > free:
            n, K = self.shapes[0]
            raise MemoryError(
                f"multi_class='crammer_singer' needs {need / 1e9:.1f} GB for {n} rows of {K} "
                f"classes, {free / 1e9:.1f} GB are free: use multi_class='ovr', or partial_fit of "
                "PegasosClassifier"
            )
        return super().driver(k, stop, answer)

    def vectors(self, points: Any) -> np.ndarray:
        return _of_model(np.asarray(points)[0].T)

    def problem(self, k: int = 0) -> MulticlassProblem:
        return multiclass_problem(self.rows, self.label, self.c, self.centers[0], self.free)

    def shared(self) -> Problem | None:
        """Rows act on all classes at once: there is no second problem to read them for."""
        return None

    def rule(self, given: Validation, k: int) -> Validation:
        return given

    def duals(self, runs: list[Run], kept: np.ndarray) -> dict[str, Any]:
        pi = runs[0].best.alpha
        beta = _of_model(pulls(self.problem(), pi).T)
        used = np.flatnonzero(np.any(beta != 0.0, axis=0))
        names = {"support_": kept[used], "dual_coef_": beta[:, used]}
        return {"_duals": [(pi, self.c[:, None])], **names}


def _of_model(each: np.ndarray) -> np.ndarray:
    """What a model keeps of one vector for each class."""
    return each[1:] - each[:1] if len(each) == 2 else np.ascontiguousarray(each)
