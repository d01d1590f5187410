"""Rules that end a run before its certificate does: small steps, or a validation score.

Window:       the last `steps` steps moved w by less than eps in all (their lengths summed)
Displacement: a step moved w by at most eps
Validation:   `patience` exact evaluations, one an epoch, brought no better score
Optimality:   the optimality conditions hold up to eps (kernel solvers, whose states measure it)

The first two look at single steps. A solver that has them (it has a field `quiet`) ends a slice of
work where such a rule holds, so that the run stops at that very step. The third looks at w alone
and goes with every solver; the run then returns the best-scoring w.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from pegasos.core.dispatch import helper
from pegasos.core.matrix import all_products, products
from pegasos.objective.certificate import Certificate, Evaluation

LONGEST = 1024  # steps whose lengths are kept


@helper
def at_rest(lengths: np.ndarray, t: int, steps: int, limit: float) -> bool:
    """Whether the last of t steps are together at most `limit` long; `lengths` is a ring."""
    total = 0.0
    for s in range(steps):
        total += lengths[(t - 1 - s) % lengths.shape[0]]
    return total <= limit


@helper
def quiet(lengths: np.ndarray, t: int, limits: np.ndarray) -> bool:
    """Whether after t steps one of the limits holds, given as rows of (steps, limit)."""
    for r in range(limits.shape[0]):
        steps, limit = np.int64(limits[r, 0]), limits[r, 1]
        if lengths[(t - 1) % lengths.shape[0]] <= limit and at_rest(lengths, t, steps, limit):
            return True
    return False


@dataclass(frozen=True)
class Window:
    """Stop when the last `steps` steps moved w by less than `eps` in all."""

    steps: int
    eps: float
    reason: ClassVar[str] = "window"

    def __post_init__(self) -> None:
        if isinstance(self.steps, bool) or not isinstance(self.steps, int | np.integer):
            raise TypeError(f"steps must be a whole number from 1 to {LONGEST}, got {self.steps!r}")
        if not 1 <= self.steps <= LONGEST:
            raise ValueError(f"steps must be from 1 to {LONGEST}, got {self.steps!r}")
        _check_eps(self.eps, zero=False)

    @property
    def quiet(self) -> tuple[int, float]:
        """So many steps, and the most that they may sum to."""
        return int(self.steps), float(np.nextafter(self.eps, -np.inf))


@dataclass(frozen=True)
class Displacement:
    """Stop when a step moved w by at most `eps`."""

    eps: float
    reason: ClassVar[str] = "displacement"

    def __post_init__(self) -> None:
        _check_eps(self.eps, zero=True)

    @property
    def quiet(self) -> tuple[int, float]:
        return 1, float(self.eps)


@dataclass(frozen=True, eq=False)
class Validation:
    """Stop when the score on rows kept aside has not risen for `patience` epochs.

    `score(y, f)`, the more the better, of labels -1 and +1 and decision values f (of numbers of
    classes and a column for each, where one problem has them all); by default the share of rows
    that are right. Solvers want X as rows, and y as these labels or numbers.
    """

    X: Any = field(repr=False)
    y: Any = field(repr=False)
    patience: int = 5
    score: Callable[[np.ndarray, np.ndarray], float] | None = None
    reason: ClassVar[str] = "validation"

    def __post_init__(self) -> None:
        if isinstance(self.patience, bool) or not isinstance(self.patience, int | np.integer):
            raise TypeError(f"patience must be a whole number from 1, got {self.patience!r}")
        if self.patience < 1:
            raise ValueError(f"patience must be 1 or more, got {self.patience!r}")
        if self.score is not None and not callable(self.score):
            raise TypeError(f"score must be a function of y and decision values: {self.score!r}")

    def against_the_rest(self, target: int) -> Validation:
        """The rule of one class, where y numbers the classes."""
        return replace(self, y=np.where(self.y == target, 1.0, -1.0))

    def score_of(self, w: np.ndarray) -> float:
        """The score of w; one that is no number is the lowest."""
        if w.ndim == 2:
            f = all_products(self.X, w)
            right = f.argmax(axis=1) == self.y
        else:
            f = products(self.X, w)
            right = (f > 0.0) == (self.y > 0.0)
        score = float(np.mean(right) if self.score is None else self.score(self.y, f))
        return -np.inf if np.isnan(score) else score


@dataclass(frozen=True)
class Optimality:
    """Stop when no pair of dual variables violates the optimality conditions by more than `eps`;
    it is asked again after an exact evaluation."""

    eps: float
    reason: ClassVar[str] = "kkt"


RULES = (Window, Displacement, Validation)


class Scored(NamedTuple):
    """The best-scoring point so far, of equals that of the lowest objective; its score, and how
    many evaluations brought no better one."""

    point: Evaluation
    score: float
    waited: int


def heeding(solver: Any, rules: tuple[Any, ...]) -> Any:
    """The solver that ends its slices where one of the rules may hold; an error if it has no steps
    to look at."""
    looks = [rule for rule in rules if hasattr(rule, "quiet")]
    if sum(isinstance(rule, Validation) for rule in rules) > 1:
        raise ValueError("stop: one Validation at most, for one best point is returned")
    if not looks:
        return solver
    if not hasattr(solver, "quiet"):
        raise ValueError(
            f"stop={looks[0]!r} looks at the single steps of a binary problem, which are those of "
            "PegasosClassifier with multi_class='ovr' or 'ovo'; here use tol, or Validation"
        )
    return replace(solver, quiet=tuple(rule.quiet for rule in looks))


def held(rules: tuple[Any, ...], state: Any) -> str | None:
    """The name of a rule about steps that holds after the last one."""
    for rule in rules:
        if isinstance(rule, Optimality) and state.violation <= rule.eps:
            return rule.reason
        looks = hasattr(rule, "quiet")
        if looks and at_rest(state.vectors.lengths, state.t, *rule.quiet):
            return rule.reason
    return None


def judged(rule: Validation, seen: Evaluation, before: Scored | None) -> Scored:
    """What is known after one more evaluation."""
    score = rule.score_of(seen.w)
    if before is None or score > before.score:
        return Scored(seen, score, 0)
    lower = seen.certificate.primal <= before.point.certificate.primal
    point = seen if score == before.score and lower else before.point
    return Scored(point, before.score, before.waited + 1)


def best_scoring(scored: Scored, best: Evaluation) -> Evaluation:
    """The best-scoring w, with its own objective and the best bound that was proven."""
    w, _, margins, (primal, _) = scored.point
    return Evaluation(w, best.alpha, margins, Certificate(primal, best.certificate.dual))


def _check_eps(eps: Any, zero: bool) -> None:
    kind = "a finite number >= 0" if zero else "a finite number > 0"
    if isinstance(eps, bool) or not isinstance(eps, int | float | np.integer | np.floating):
        raise TypeError(f"eps must be {kind}, got {eps!r}")
    if not (np.isfinite(eps) and (eps > 0 or (zero and eps == 0))):
        raise ValueError(f"eps must be {kind}, got {eps!r}")
