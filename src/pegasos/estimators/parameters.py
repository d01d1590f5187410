"""Constructor parameters: checked once, with messages that say what would work."""

from __future__ import annotations

from typing import Any

import numpy as np

from pegasos.core.parameters import (  # noqa: F401  (offered here)
    count,
    one_of,
    positive,
    seed_of,
    threads_of,
)
from pegasos.objective.losses import Hinge, Pinball, SquaredHinge, check_loss
from pegasos.solvers.stops import RULES

LOSSES = {"hinge": Hinge, "squared_hinge": SquaredHinge, "pinball": lambda: Pinball(0.5)}
SOLVERS = ("auto", "dual", "newton", "newton_cg", "interior")
INTERCEPTS = ("free", "penalised", "none")


def loss_of(value: Any, names: dict[str, Any] = LOSSES) -> Any:
    """A loss from its name or from a loss object."""
    if isinstance(value, str):
        if value not in names:
            known = ", ".join(repr(n) for n in names)
            raise ValueError(
                f"loss must be one of {known} or a loss object such as Pinball(0.3), got {value!r}"
            )
        return names[value]()
    if isinstance(value, Pinball) and not 0.0 <= value.tau <= 1.0:
        raise ValueError(f"Pinball needs 0 <= tau <= 1, got {value.tau!r}")
    return check_loss(value)


def loss_in(multi_class: Any, value: Any, names: dict[str, Any] = LOSSES) -> Any:
    """The loss of the problems of a mode, where "squared_hinge" is the default and so gives way."""
    if multi_class != "crammer_singer":
        return loss_of(value, names)
    untouched = isinstance(value, str) and value == "squared_hinge"
    return loss_of_all_classes(value, Hinge() if untouched else loss_of(value, names))


def loss_of_all_classes(given: Any, loss: Any) -> Any:
    """The same loss, if one problem for all classes can have it; `given`: as the user wrote it."""
    if loss != Hinge():
        raise ValueError(
            f"multi_class='crammer_singer' has a hinge loss of its own, not {given!r}: "
            "use loss='hinge', or multi_class='ovr'"
        )
    return loss


def intercept_of(intercept: Any, fit_intercept: Any) -> str:
    """The reading of the intercept from our parameter and scikit-learn's."""
    if isinstance(intercept, bool | np.bool_):
        intercept = "free" if intercept else "none"
    reading = one_of("intercept", intercept, INTERCEPTS)
    if fit_intercept:
        return reading
    if reading == "penalised":
        raise ValueError("fit_intercept=False contradicts intercept='penalised': drop one of them")
    return "none"


def class_factors(factors: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The same class weights, if all are finite and from zero."""
    bad = np.flatnonzero(~(np.isfinite(factors) & (factors >= 0.0)))
    if bad.size:
        name, factor = shown(classes[bad[0]]), shown(factors[bad[0]])
        raise ValueError(f"class_weight of class {name} must be a number >= 0, got {factor}")
    return factors


def shown(value: Any) -> str:
    """As Python writes it, without NumPy's types."""
    plain = value.tolist() if isinstance(value, np.generic | np.ndarray) else value
    return repr(plain)


def rules_of(stop: Any) -> tuple[Any, ...]:
    """Rules of `pegasos.stopping` from None, one of them or a list."""
    rules = () if stop is None else tuple(stop) if isinstance(stop, list | tuple) else (stop,)
    for rule in rules:
        if not isinstance(rule, RULES):
            names = ", ".join(cls.__name__ for cls in RULES)
            raise TypeError(f"stop must be None, one of {names}, or a list of them, got {rule!r}")
    return rules


def values_of_C(Cs: Any) -> list[float]:  # noqa: N802
    """Values of C, at least one."""
    values = [positive("C", C) for C in np.ravel(Cs).tolist()]
    if not values:
        raise ValueError("Cs is empty: give at least one value of C")
    return values
