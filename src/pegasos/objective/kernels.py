"""Kernels K(x, z), and the algebra that makes new ones: 2 * k, k + 1, k1 + k2, k1 * k2, exp(k).

A kernel is a small tuple of numbers. Most are functions of products alone,

    K(x, z) = of_products(kernel, x.z, ||x||^2, ||z||^2)

and a whole block of them, however nested, is one matrix product and one compiled pass over it (see
`objective.kernel_blocks`). A kernel from outside the package joins with `@kernel` and its
`of_products`. Sums, products, positive multiples and exponentials of kernels are kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from pegasos.core.dispatch import generic
from pegasos.core.elementary import MAX_POWER, exponential, power, tangent
from pegasos.data.check import variance

_KERNELS: set[type] = set()


@generic
def of_products(kernel: Any, t: float, a: float, b: float) -> float:
    """K(x, z) from t = x.z, a = ||x||^2, b = ||z||^2, in their precision"""


@generic
def of_distance(kernel: Any) -> bool:
    """Whether K(x, z), not made of others, depends on x - z alone: rows may be moved together"""
    return False


def is_kernel(k: Any) -> bool:
    return is_kernel_type(type(k))


def is_kernel_type(cls: type) -> bool:
    return cls in _KERNELS


def is_ours(cls: type) -> bool:
    """Whether a type of kernels is one of this module."""
    return cls.__module__ == __name__


def kernel_types() -> dict[str, Any]:
    """Kernels by the names of their types; the package's own go before others."""
    ours = [cls for cls in _KERNELS if is_ours(cls)]
    return {cls.__name__: cls for cls in (*_KERNELS, *ours)}


def kernel(cls: Any) -> Any:
    """Make a kernel of a NamedTuple: it gets the algebra, and is told apart by its type."""
    _KERNELS.add(cls)
    cls.__add__ = cls.__radd__ = _plus
    cls.__mul__ = cls.__rmul__ = _times
    cls.__array_ufunc__ = None  # NumPy's numbers leave 2 * k to us, and do not make an array of k
    cls.__repr__ = _text
    cls.__eq__ = lambda k, other: type(k) is type(other) and tuple(k) == tuple(other)
    cls.__ne__ = lambda k, other: not k == other
    cls.__hash__ = lambda k: hash((type(k).__name__, tuple(k)))
    return cls


def _plus(k: Any, other: Any) -> Any:
    if is_kernel(other):
        return Sum(k, other)
    if not isinstance(other, Real):
        return NotImplemented
    return Shifted(k, _from_zero(other, "a constant added to a kernel"))


def _times(k: Any, other: Any) -> Any:
    if is_kernel(other):
        return Product(k, other)
    if not isinstance(other, Real):
        return NotImplemented
    return Scaled(_from_zero(other, "a factor of a kernel"), k)


def _from_zero(number: Any, what: str) -> float:
    if not (math.isfinite(number) and number >= 0):
        raise ValueError(f"{what} must be >= 0, else the result is no kernel; got {number!r}")
    return float(number)


def _text(k: Any) -> str:
    """As it would be written."""
    if isinstance(k, Sum):
        return f"{k.left!r} + {k.right!r}"
    if isinstance(k, Shifted):
        return f"{k.kernel!r} + {k.constant:g}"
    if isinstance(k, Product):
        return f"{_factor(k.left)} * {_factor(k.right)}"
    if isinstance(k, Scaled):
        return f"{k.factor:g} * {_factor(k.kernel)}"
    if isinstance(k, Exp):
        return f"exp({k.kernel!r})"
    if isinstance(k, Function):
        return f"Function({getattr(k.f, '__name__', k.f)})"
    shown = ", ".join(f"{name}={value!r}" for name, value in zip(k._fields, k, strict=True))
    return f"{type(k).__name__}({shown})"


def _factor(k: Any) -> str:
    return f"({k!r})" if isinstance(k, Sum | Shifted) else repr(k)


def exp(k: Any) -> Exp:
    """The kernel exp(K(x, z))."""
    if not is_kernel(k):
        raise TypeError(f"exp is for kernels, such as exp(Linear()); got {k!r}")
    return Exp(k)


@kernel
class Linear(NamedTuple):
    """x.z"""


@kernel
class Polynomial(NamedTuple):
    """(gamma x.z + coef0)^degree"""

    degree: int = 3
    gamma: Any = "scale"
    coef0: float = 0.0


@kernel
class Gaussian(NamedTuple):
    """exp(-gamma ||x - z||^2)"""

    gamma: Any = "scale"


@kernel
class Laplacian(NamedTuple):
    """exp(-gamma ||x - z||_1)"""

    gamma: Any = "scale"


@kernel
class Sigmoid(NamedTuple):
    """tanh(gamma x.z + coef0): in general no kernel, see `check_kernel`"""

    gamma: Any = "scale"
    coef0: float = 0.0


@kernel
class Precomputed(NamedTuple):
    """The matrix itself in place of X: (n, n) to train with, (m, n) for m rows to predict."""


@kernel
class Function(NamedTuple):
    """A function of yours: f(A, B) that gives the matrix of rows A and B, or f(x, z) a number.

    `pairs`: whether it is the latter; by default it is tried out on a few rows.
    """

    f: Callable[..., Any]
    pairs: bool | None = None


@kernel
class Sum(NamedTuple):
    """k1 + k2"""

    left: Any
    right: Any


@kernel
class Product(NamedTuple):
    """k1 * k2"""

    left: Any
    right: Any


@kernel
class Scaled(NamedTuple):
    """factor * k"""

    factor: float
    kernel: Any


@kernel
class Shifted(NamedTuple):
    """k + constant"""

    kernel: Any
    constant: float


@kernel
class Exp(NamedTuple):
    """exp(k)"""

    kernel: Any


@of_products.register(Linear)
def _(kernel, t, a, b):
    return t


@of_products.register(Polynomial)
def _(kernel, t, a, b):
    return power(kernel.gamma * t + kernel.coef0, kernel.degree)


@of_products.register(Gaussian)
def _(kernel, t, a, b):
    return exponential(-abs(kernel.gamma * (a + b - t - t)))


@of_products.register(Sigmoid)
def _(kernel, t, a, b):
    return tangent(kernel.gamma * t + kernel.coef0)


@of_products.register(Sum)
def _(kernel, t, a, b):
    return of_products(kernel.left, t, a, b) + of_products(kernel.right, t, a, b)


@of_products.register(Product)
def _(kernel, t, a, b):
    return of_products(kernel.left, t, a, b) * of_products(kernel.right, t, a, b)


@of_products.register(Scaled)
def _(kernel, t, a, b):
    return kernel.factor * of_products(kernel.kernel, t, a, b)


@of_products.register(Shifted)
def _(kernel, t, a, b):
    return of_products(kernel.kernel, t, a, b) + kernel.constant


@of_products.register(Exp)
def _(kernel, t, a, b):
    return exponential(of_products(kernel.kernel, t, a, b))


@of_distance.register(Gaussian)
@of_distance.register(Laplacian)
def _(kernel):
    return True


def parts(k: Any) -> list[Any]:
    """The kernels that a kernel is made of; none of one that is made of numbers."""
    return [part for part in k if is_kernel(part)]


def leaves(k: Any) -> list[Any]:
    """The kernels of numbers at the bottom of it."""
    inner = parts(k)
    return [leaf for part in inner for leaf in leaves(part)] if inner else [k]


def moves(k: Any) -> bool:
    """Whether rows may be moved together without a change of values."""
    return all(of_distance(leaf) for leaf in leaves(k))


def by_products(k: Any) -> bool:
    """Whether all of it is a function of products."""
    return all(_has_products(type(leaf)) for leaf in leaves(k))


def _has_products(cls: type) -> bool:
    try:
        of_products.lookup(cls)
    except TypeError:
        return False
    return True


def mapped(k: Any, change: Callable[[str, Any], Any]) -> Any:
    """The kernel with change(name, value) in place of each parameter of each of its parts."""
    return type(k)(
        *(
            mapped(value, change) if is_kernel(value) else change(name, value)
            for name, value in zip(k._fields, k, strict=True)
        )
    )


def in_precision(k: Any, dtype: Any) -> Any:
    """The kernel with its numbers in a dtype: a compiled pass then computes in it throughout."""
    scalar = np.dtype(dtype).type
    return mapped(k, lambda _, value: scalar(value) if isinstance(value, float) else value)


def resolved(k: Any, X: Any, weight: np.ndarray | None = None) -> Any:
    """The kernel, checked, with numbers in place of gamma="scale", 1 / (d var(X)), and "auto", 1/d.

    X is an array or a CSR matrix, or anything else if there is no gamma to find. `weight`: of its
    rows, in the variance.
    """
    if not is_kernel(k):
        raise TypeError(f"not a kernel: {k!r}; use those of pegasos.kernels or Function(f)")

    def change(name: str, value: Any) -> Any:
        if name == "gamma":
            return gamma_of(value, X, weight)
        check_number(name, value)
        return {"degree": int, "coef0": float}.get(name, lambda given: given)(value)

    return mapped(k, change)


def check_number(name: str, value: Any) -> None:
    """A parameter of a kernel, by its name: an error that says what would work, or None."""
    number = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    if name == "degree" and not (number and value in range(MAX_POWER + 1)):
        raise ValueError(f"degree must be an integer from 0 to {MAX_POWER}, got {value!r}")
    if name == "coef0" and not (number and math.isfinite(value)):
        raise ValueError(f"coef0 must be finite and a number, got {value!r}")
    if name == "gamma" and isinstance(value, str):
        if value not in ("scale", "auto"):
            raise ValueError(f"gamma must be 'scale', 'auto' or a number > 0, got {value!r}")
    elif name == "gamma":
        if not number:
            raise TypeError(f"gamma must be 'scale', 'auto' or a number > 0, got {value!r}")
        if not 0.0 < float(value) < math.inf:
            raise ValueError(f"gamma must be finite and > 0 (or 'scale', 'auto'), got {value!r}")


def gamma_of(gamma: Any, X: Any, weight: np.ndarray | None = None) -> float:
    """The number behind a gamma, checked."""
    check_number("gamma", gamma)
    if not isinstance(gamma, str):
        return float(gamma)
    spread = variance(X, weight) if gamma == "scale" else 1.0
    return float(1.0 / (X.shape[1] * spread)) if spread > 0.0 else 1.0
