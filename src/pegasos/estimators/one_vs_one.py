"""One linear problem per pair of classes, on the rows of these two alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from pegasos.core.cross import gathered
from pegasos.estimators.kernel_layout import assembled
from pegasos.estimators.one_vs_all import Task
from pegasos.estimators.parts import Part, name_of_pair, pair
from pegasos.model.pairs import couples
from pegasos.objective.problem import Problem, make_problem
from pegasos.solvers.driver import Run
from pegasos.solvers.stops import Validation


class PairTask(Task):
    """A task whose targets are pairs (i, j), i < j; the first class of a pair is positive.

    The rows of a pair are copied for the time of its run; nothing is shared between pairs.
    """

    @property
    def pairs(self) -> bool:
        return True

    @classmethod
    def of(cls, n_classes: int) -> type[Task]:
        """Two classes are no pair but one problem, of which the second is positive."""
        return cls if n_classes > 2 else Task

    @staticmethod
    def targets_of(n_classes: int) -> list[Any]:
        return couples(n_classes)

    @staticmethod
    def sides(n_classes: int) -> list[tuple[int, int | None]]:
        return list(couples(n_classes))

    @staticmethod
    def name_of(target: Any, classes: np.ndarray) -> str:
        return name_of_pair(classes, *target)

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        counts = np.bincount(self.label)
        return [(int(counts[i] + counts[j]),) for i, j in self.targets]

    def part(self, k: int) -> Part:
        """The rows and labels of problem k."""
        i, j = self.targets[k]
        return pair(self.label, i, j, self.names[k])

    def problem(self, k: int) -> Problem:
        part = self.part(k)
        rows, c = gathered(self.rows, part.rows), self.c[part.rows]
        return make_problem(rows, part.y, c, self.loss, self.centers[k], self.free)

    def shared(self) -> Problem | None:
        return None

    def rule(self, given: Validation, k: int) -> Validation:
        part = pair(given.y, *self.targets[k])
        if not part.rows.size:
            raise ValueError(
                f"stop: no row of Validation is of class {self.names[k]}: add some, or use "
                "multi_class='ovr'"
            )
        return replace(given, X=gathered(given.X, part.rows), y=part.y)

    def duals(self, runs: list[Run], kept: np.ndarray) -> dict[str, Any]:
        """In the layout of SVC: support vectors by class, n_classes - 1 coefficients each."""
        parts = [self.part(k) for k in range(len(self.targets))]
        alphas = [run.best.alpha for run in runs]
        beta = [np.append(a * part.y, 0.0) for a, part in zip(alphas, parts, strict=True)]
        layout = assembled(parts, beta, self.label, pairs=True)
        duals = [(a, self.c[part.rows]) for a, part in zip(alphas, parts, strict=True)]
        names = {"_duals": duals, "dual_coef_": layout.dual_coef}
        return {"support_": kept[layout.support], **names}
