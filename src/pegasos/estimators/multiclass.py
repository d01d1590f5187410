"""The one problem of Crammer and Singer for all classes, as `one_vs_all.solve` wants it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pegasos.estimators.one_vs_all import fitting
from pegasos.objective.multiclass import MulticlassProblem, multiclass_problem, pulls
from pegasos.solvers.crammer_singer import solver_for
from pegasos.solvers.driver import Driver, Stop


class MulticlassTask(NamedTuple):
    """The data and settings of a fit; `centers` and `starts` (if any) hold one item."""

    rows: Any
    label: np.ndarray
    c: np.ndarray
    centers: np.ndarray
    starts: np.ndarray | None
    loss: Any
    free: bool
    solver: Any
    stop: Stop
    seed: int
    watch: Any = None

    @property
    def targets(self) -> range:
        return range(1)

    @property
    def names(self) -> list[str]:
        return ["all classes"]

    @property
    def problem(self) -> MulticlassProblem:
        return multiclass_problem(self.rows, self.label, self.c, self.centers[0], self.free)

    def vectors(self, points: Any) -> np.ndarray:
        """One for each class; of two classes the difference."""
        return _of_model(np.asarray(points)[0].T)

    def shares(self, alphas: list[np.ndarray]) -> np.ndarray:
        """What a later fit may start from."""
        return np.array(alphas) / self.c[:, None]

    def pulls(self, alphas: list[np.ndarray]) -> np.ndarray:
        """The coefficient of each row in each weight vector."""
        return _of_model(pulls(self.problem, alphas[0]).T)

    def sweep(self, Cs: list[float], deadline: float) -> tuple[dict, bool]:
        """Rows act on all classes at once: there is no second problem to read them for."""
        return {}, False

    def driver(self, k: int, stop: Stop, answer: None = None) -> Driver:
        problem = self.problem
        start = None if self.starts is None else self.starts[0] * self.c[:, None]
        solver = solver_for(problem) if isinstance(self.solver, str) else self.solver
        return Driver(solver, problem, stop, self.seed, start)


def multiclass_task(
    common: dict[str, Any], centers: np.ndarray, n_classes: int, starts: np.ndarray | None
) -> MulticlassTask:
    """The task of a fit, from what all tasks have in common and a centre for each weight vector."""
    if common["solver"] == "auto":
        common = common | {"solver": "dual"}
    elif isinstance(common["solver"], str) and common["solver"] != "dual":
        raise ValueError(
            f"solver={common['solver']!r} is for one problem per class: with "
            "multi_class='crammer_singer' use solver='auto' or 'dual'"
        )
    halves = np.array([[-0.5], [0.5]])
    centers = (halves @ centers if n_classes == 2 else centers).T[None]
    starts = fitting(starts, (1, len(common["label"]), n_classes))
    return MulticlassTask(centers=np.ascontiguousarray(centers), starts=starts, **common)


def _of_model(each: np.ndarray) -> np.ndarray:
    """What a model keeps of one vector for each class."""
    return each[1:] - each[:1] if len(each) == 2 else np.ascontiguousarray(each)
