"""Adapter to scikit-learn's callback protocol (1.9, experimental there: kept in one place)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pegasos.solvers.driver import Progress


class FitTasks:
    """The task tree of a fit: one task per binary problem, one leaf per epoch.

    `attributes(weights)` turns the weights of all problems into attributes of a fitted model.
    Without callbacks on the estimator nothing is built and nothing is called.
    """

    def __init__(self, estimator: Any, n_problems: int, data: Callable[[], Any], attributes: Any):
        self.estimator, self.attributes = estimator, attributes
        self.wanted = bool(getattr(estimator, "_skl_callbacks", None))
        if self.wanted:
            self.data: dict[str, Any] = data()
            self.root = estimator._init_callback_context(max_subtasks=n_problems)
            self.root.call_on_fit_task_begin(estimator=estimator, **self.data)

    def problem(self, name: str, weights: Callable[[], np.ndarray]) -> ProblemTask | None:
        """The task of one binary problem; `weights()` gives the weights of all problems so far."""
        return ProblemTask(self, name, weights) if self.wanted else None

    def end(self) -> None:
        if self.wanted:
            self.root.call_on_fit_task_end(
                estimator=self.estimator, reconstruction_attributes={}, **self.data
            )


class ProblemTask:
    """Called by the driver after each step; returns True if a callback asks to stop."""

    def __init__(self, tasks: FitTasks, name: str, weights: Callable[[], np.ndarray]):
        self.tasks = tasks
        self.model = lambda: tasks.attributes(weights())
        self.context = tasks.root.subcontext(task_name=name, max_subtasks=None)
        self.context.call_on_fit_task_begin(estimator=tasks.estimator, **tasks.data)
        self.epoch = 0

    def __call__(self, progress: Progress) -> bool:
        stop = False
        for _ in range(self.epoch, progress.epoch):
            leaf = self.context.subcontext(task_name="epoch")
            leaf.call_on_fit_task_begin(estimator=self.tasks.estimator, **self.tasks.data)
            stop |= leaf.call_on_fit_task_end(
                estimator=self.tasks.estimator,
                reconstruction_attributes=self.model,
                **self.tasks.data,
            )
        self.epoch = progress.epoch
        return stop

    def end(self, weights: np.ndarray) -> None:
        """The problem is solved: `weights` are those that will be returned."""
        self.context.call_on_fit_task_end(
            estimator=self.tasks.estimator,
            reconstruction_attributes=self.tasks.attributes(weights),
            **self.tasks.data,
        )
