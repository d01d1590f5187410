"""Kernels as JSON: {"kernel": name, "fields": [...]}, with kernels inside kernels.

Reading makes only kernels that are known: those of the package, and those that the program itself
has made with `@kernel`. A function cannot be written: it is code.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

from pegasos.objective.kernels import Function, is_kernel, kernel_types, leaves, resolved

MOST_LEAVES = 64  # of a kernel in a file: each more has to be compiled


def to_json(kernel: Any) -> dict[str, Any]:
    """The kernel as plain values; a TypeError if it is not made of numbers."""
    made_of = leaves(kernel)
    if any(isinstance(leaf, Function) for leaf in made_of):
        raise TypeError(
            f"{kernel!r} is Python code, which a model file never holds: use pickle, or write the "
            "function as a kernel of its own with @kernel (see pegasos.kernels)"
        )
    if len(made_of) > MOST_LEAVES:
        raise ValueError(f"a kernel of {len(made_of)} parts, more than {MOST_LEAVES}")
    return {
        "kernel": type(kernel).__name__,
        "fields": [to_json(value) if is_kernel(value) else _plain(value) for value in kernel],
    }


def _plain(value: Any) -> Any:
    if isinstance(value, bool | int | str) or value is None:
        return value
    if isinstance(value, Real):
        return float(value)
    raise TypeError(f"a kernel with {value!r} cannot be saved: use pickle")


def from_json(value: Any) -> Any:
    """The kernel, its numbers checked; a ValueError says what is wrong."""
    try:
        kernel = _made(value, [0])
        return kernel
    except (KeyError, TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"kernel: {str(error)[:100]}") from None


def _made(value: Any, count: list[int]) -> Any:
    count[0] += 1
    if count[0] > 4 * MOST_LEAVES:
        raise ValueError(f"kernel: more than {MOST_LEAVES} parts")
    name, fields = value["kernel"], value["fields"]
    known = kernel_types()
    if not isinstance(name, str) or name not in known or known[name] is Function:
        raise ValueError(
            f"kernel: {str(name)[:40]!r} is unknown here; if it is yours, import the module that "
            "makes it with @kernel first"
        )
    if not isinstance(fields, list) or len(fields) != len(known[name]._fields):
        raise ValueError(f"kernel: the fields of {name} are missing")
    parts = [_made(field, count) if isinstance(field, dict) else field for field in fields]
    return known[name](*parts)


def checked(kernel: Any) -> Any:
    """The kernel of a fitted model: with numbers, and those in range."""
    for leaf in leaves(kernel):
        for name, value in zip(leaf._fields, leaf, strict=True):
            if name in ("gamma", "coef0", "degree"):
                _number(name, value)
    _factors(kernel)
    return resolved(kernel, None)


def _factors(kernel: Any) -> None:
    for name, value in zip(kernel._fields, kernel, strict=True):
        if is_kernel(value):
            _factors(value)
        elif name in ("factor", "constant"):
            if not _number(name, value) >= 0.0:
                raise ValueError(f"kernel: {name} must be >= 0, got {value!r}")
        elif name in ("left", "right", "kernel"):
            raise ValueError(f"kernel: {name} must be a kernel")


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"kernel: {name} must be a number, got {str(value)[:40]!r}")
    if not math.isfinite(value):
        raise ValueError(f"kernel: {name} is not finite")
    return float(value)
