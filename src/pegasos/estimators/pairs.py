"""The binary problems of a kernel machine as a task."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from pegasos.core.threads import allowed
from pegasos.estimators.parts import Part
from pegasos.objective.kernel_points import Points, take
from pegasos.objective.kernel_problem import make_kernel_problem
from pegasos.solvers.auto import Choice
from pegasos.solvers.driver import Driver, Run, Stop


class KernelTask(NamedTuple):
    """The data and settings of a fit; `starts` holds a beta / c per problem, or is None."""

    kernel: Any
    points: Points
    c: np.ndarray
    parts: list[Part]
    starts: list[np.ndarray] | None
    loss: Any
    free: bool
    solver: Any
    choice: Choice
    stop: Stop
    seed: int
    watch: Any = None

    @property
    def targets(self) -> range:
        return range(len(self.parts))

    @property
    def names(self) -> list[str]:
        return [part.name for part in self.parts]

    @property
    def centers(self) -> list[np.ndarray]:
        """The points (beta, b) to begin with."""
        return [np.zeros(part.rows.size + 1) for part in self.parts]

    def sweep(self, Cs: list[float], deadline: float) -> tuple[dict, bool]:
        """Pairs have no rows in common that one sweep could serve."""
        return {}, False

    def driver(self, k: int, stop: Stop, answer: None = None) -> Driver:
        """The run of problem k."""
        part = self.parts[k]
        whole = part.rows.size == len(self.c)
        points = self.points if whole else take(self.points, part.rows)
        c = self.c[part.rows]
        problem = make_kernel_problem(self.kernel, points, part.y, c, self.loss, self.free)
        start = None if self.starts is None else self.starts[k] * c
        return _Driver(self.solver, problem, stop, self.seed, start)


class Tally(NamedTuple):
    """What is kept of a solver's state: not its kernel values."""

    epoch: int
    iterations: int
    violation: float


class _Driver(Driver):
    def result(self) -> Run:
        run = super().result()
        state = run.state
        return replace(run, state=Tally(state.epoch, state.iterations, state.violation))


def share_of(budget: int, n_problems: int) -> int:
    """The memory of one problem: as many are solved at a time as threads are allowed."""
    return budget // min(n_problems, allowed())
