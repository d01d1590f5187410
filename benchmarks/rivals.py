"""LIBLINEAR (liblinear-official) on the same objective.

Only its training is timed; the conversion of the data into its own format is not, which favours
it. Objective values are computed here, for all solvers by the same lines.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

EPSILONS = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-5)
PATIENCE = 20.0
_SOLVERS = {"hinge": (3,), "squared_hinge": (1, 2)}  # dual descent; for the square also Newton


class Answer(NamedTuple):
    """Seconds, objective and the tolerance that gave them."""

    seconds: float
    primal: float
    epsilon: float


def objective(X: Any, y: np.ndarray, w: np.ndarray, C: float, loss: str, b: float = 0.0) -> float:
    """1/2 ||w||^2 + C * sum of losses; w includes a penalised intercept only through b."""
    slack = np.maximum(0.0, 1.0 - y * (X @ w + b))
    total = slack.sum() if loss == "hinge" else slack @ slack
    return 0.5 * float(w @ w) + C * float(total)


class Liblinear:
    """A data set in LIBLINEAR's format; bias is its -B (-1: none, 1: penalised)."""

    def __init__(self, X: Any, y: np.ndarray, bias: float = -1.0):
        from liblinear.liblinearutil import problem

        self.X, self.y, self.bias = X, y, bias
        self.problem = problem(y, sp.csr_matrix(X, dtype=np.float64), bias)

    def train(self, C: float, loss: str, epsilon: float, solver: int) -> Answer:
        from liblinear.liblinearutil import parameter, train

        options = parameter(f"-s {solver} -c {C} -e {epsilon} -B {self.bias} -q")
        start = time.perf_counter()
        model = train(self.problem, options)
        seconds = time.perf_counter() - start
        sign = 1.0 if model.label[0] == 1 else -1.0
        w = sign * np.array(model.get_decfun()[0])
        b = sign * model.get_decfun()[1] if self.bias > 0 else 0.0
        primal = objective(self.X, self.y, w, C, loss, b) + 0.5 * (b / self.bias) ** 2
        return Answer(seconds, primal, epsilon)

    def best(
        self, C: float, loss: str, goal: float, repeats: int = 3, patience: float = PATIENCE
    ) -> tuple[Answer, bool]:
        """The fastest solver and tolerance whose objective is at most `goal`; is there one?

        If there is none: the time at the iteration limit, or of the first training that took
        longer than `patience` seconds without getting there (less than its limit: in its favour).
        """
        found = [self._best(C, loss, goal, (repeats, patience), s) for s in _SOLVERS[loss]]
        return min(found, key=lambda pair: (not pair[1], pair[0].seconds))

    def _best(self, C, loss, goal, effort, solver) -> tuple[Answer, bool]:
        repeats, patience = effort
        for epsilon in EPSILONS:
            answer = self.train(C, loss, epsilon, solver)
            if answer.primal <= goal or answer.seconds > patience:
                break
        times = [answer.seconds]
        if answer.seconds < 2.0:
            more = range(repeats - 1)
            times += [self.train(C, loss, answer.epsilon, solver).seconds for _ in more]
        return answer._replace(seconds=min(times)), answer.primal <= goal
