"""Kernels by the names and parameters of scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pegasos.objective.kernels import (
    Function,
    Gaussian,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
    check_number,
    is_kernel,
    is_kernel_type,
)

NAMED: dict[str, Callable[[Any, int, float], Any]] = {
    "linear": lambda gamma, degree, coef0: Linear(),
    "poly": lambda gamma, degree, coef0: Polynomial(degree, gamma, coef0),
    "rbf": lambda gamma, degree, coef0: Gaussian(gamma),
    "laplacian": lambda gamma, degree, coef0: Laplacian(gamma),
    "sigmoid": lambda gamma, degree, coef0: Sigmoid(gamma, coef0),
    "precomputed": lambda gamma, degree, coef0: Precomputed(),
}


def is_of_rows(value: Any) -> bool:
    """Whether a parameter of a kernel is a number that rows decide."""
    return isinstance(value, str) and value == "scale"


def kernel_of(k: Any, gamma: Any = "scale", degree: int = 3, coef0: float = 0.0) -> Any:
    """A kernel from scikit-learn's names and parameters, a function, or a kernel itself.

    Parameters that it does not use are checked, too.
    """
    for name, value in (("gamma", gamma), ("degree", degree), ("coef0", coef0)):
        check_number(name, value)
    if is_kernel(k):
        return k
    if isinstance(k, str) and k in NAMED:
        return NAMED[k](gamma, degree, coef0)
    if isinstance(k, type) and is_kernel_type(k):
        raise ValueError(f"kernel must be a kernel, not its type: {k.__name__}(...)")
    if callable(k):
        return Function(k)
    names = ", ".join(map(repr, NAMED))
    raise ValueError(
        f"kernel must be one of {names}, a kernel such as Gaussian(0.5), or a function; got {k!r}"
    )
