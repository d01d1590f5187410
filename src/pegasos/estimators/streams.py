"""The state of a learner from a stream: carried from batch to batch, to files and back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from pegasos.estimators.base import OF_A_FIT
from pegasos.model.decision import chosen
from pegasos.objective.multiclass import multiclass_problem
from pegasos.objective.problem import make_problem
from pegasos.solvers.iterate import Scalars, SubgradientState, empty_state
from pegasos.solvers.multiclass_steps import MulticlassSteps
from pegasos.solvers.subgradient import Subgradient

OF_A_STREAM = ("_stream", "t_", "progressive_")


class Progressive(NamedTuple):
    """How rows were met before they were learnt: each is a test of what came before it."""

    rows: int
    errors: int
    loss: float

    @property
    def error_rate(self) -> float:
        return self.errors / self.rows if self.rows else 0.0


class Stream(NamedTuple):
    """A state per problem, the weight seen of each class and of all, rows learnt, and errors
    before that."""

    states: list[SubgradientState]
    counts: np.ndarray
    rows: int = 0
    errors: int = 0

    @property
    def progressive(self) -> Progressive:
        """Errors and mean loss (weighted as in the objective; of several problems their mean)."""
        total = sum(state.scalars.losses for state in self.states)
        return Progressive(self.rows, self.errors, total / max(1, self.rows * len(self.states)))


class Batch(NamedTuple):
    """Rows of a stream, the numbers of their classes, c_i, the loss, a centre for each weight
    vector, the reading of b."""

    rows: Any
    label: np.ndarray
    c: np.ndarray
    loss: Any
    centers: np.ndarray
    free: bool


class OnStream:
    """A linear classifier that `fit` or a stream has taught, never both."""

    _stream: Stream
    t_: int
    progressive_: Progressive

    def _carry(self, stream: Stream) -> None:
        """Have learnt all this, and nothing by `fit`."""
        self._forget(OF_A_FIT)
        self._stream, self.t_, self.progressive_ = stream, stream.states[0].t, stream.progressive

    def _record(self, *of_a_fit: Any) -> None:
        self._forget(OF_A_STREAM)
        super()._record(*of_a_fit)  # type: ignore[misc]

    def _forget(self, names: tuple[str, ...]) -> None:
        for name in names:
            self.__dict__.pop(name, None)


Learnt = tuple[list[SubgradientState], list[np.ndarray]]  # states, scores of the rows before


def steps_of_each(method: Subgradient, batch: Batch, states: list[SubgradientState]) -> Learnt:
    """Every problem learns the rows for itself."""
    found = []
    for k, state in enumerate(states):
        y = np.where(batch.label == (k if len(states) > 1 else 1), 1.0, -1.0)
        problem = make_problem(batch.rows, y, batch.c, batch.loss, batch.centers[k], batch.free)
        found.append(method.on_stream(problem, state))
    return [state for state, _ in found], [scores for _, scores in found]


def steps_of_all(method: Subgradient, batch: Batch, states: list[SubgradientState]) -> Learnt:
    """All classes learn the rows together."""
    if len(states) == 1:  # of w_1 = -w_0 the difference pays half the penalty
        half = replace(method, lam=0.5 * (method.lam or 0.0))
        return steps_of_each(half, batch, states)
    center = np.ascontiguousarray(batch.centers.T)
    problem = multiclass_problem(batch.rows, batch.label, batch.c, center, batch.free)
    return MulticlassSteps(method).on_stream(problem, states)


def begin(n_classes: int, n_features: int) -> Stream:
    """Before the first row."""
    n_problems = 1 if n_classes == 2 else n_classes
    states = [empty_state(n_features + 1, 0) for _ in range(n_problems)]
    return Stream(states, np.zeros(n_classes + 1))


def balanced(
    counts: np.ndarray, label: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Of each row, weight of all / (classes * weight of its class), both with the rows up to it;
    the counts after the last.

    Sums run row by row, so that it makes no difference where a batch begins.
    """
    counts, own = counts.copy(), np.zeros(len(label))
    every = np.cumsum(np.append(counts[-1], weight))
    counts[-1] = every[-1]
    for k in np.unique(label):
        rows = np.flatnonzero(label == k)
        seen = np.cumsum(np.append(counts[k], weight[rows]))
        own[rows], counts[k] = seen[1:], seen[-1]
    share = (len(counts) - 1) * own
    return np.divide(every[1:], share, out=np.zeros(len(label)), where=share > 0.0), counts


def after(stream: Stream, scores: list[np.ndarray], label: np.ndarray) -> Stream:
    """The stream with rows counted; `scores` are theirs before they were learnt, per problem."""
    if not scores:
        return stream
    wrong = np.count_nonzero(chosen(np.column_stack(scores)) != label)
    return stream._replace(rows=stream.rows + len(label), errors=stream.errors + int(wrong))


def widened(stream: Stream, n_features: int) -> Stream:
    """The stream as if it had had more columns, all of them empty so far."""

    def longer(vector: np.ndarray) -> np.ndarray:
        new = np.zeros(n_features + 1)
        new[: len(vector) - 1], new[-1] = vector[:-1], vector[-1]
        return new

    def wider(state: SubgradientState) -> SubgradientState:
        old = state.vectors
        return state._replace(vectors=old._replace(v=longer(old.v), past=longer(old.past)))

    return stream._replace(states=[wider(state) for state in stream.states])


def to_arrays(stream: Stream) -> dict[str, np.ndarray]:
    """The arrays that `model.stream` speaks of."""
    vectors = [state.vectors for state in stream.states]
    return {
        **{name: np.array([getattr(x, name) for x in vectors]) for name in _KEPT},
        "scalars": np.array([state.scalars for state in stream.states]),
        "steps": np.array([state.t for state in stream.states]),
        "counts": stream.counts,
        "tally": np.array([stream.rows, stream.errors]),
    }


def from_arrays(arrays: dict[str, np.ndarray]) -> Stream:
    states = []
    for k, t in enumerate(arrays["steps"].tolist()):
        state = empty_state(arrays["v"].shape[1], 0)
        kept = {name: arrays[name][k].copy() for name in _KEPT}
        scalars = Scalars(*arrays["scalars"][k].tolist())
        vectors = state.vectors._replace(**kept)
        states.append(state._replace(vectors=vectors, scalars=scalars, t=t))
    return Stream(states, arrays["counts"].copy(), *arrays["tally"].tolist())


_KEPT = ("v", "past")
