"""Kernels as JSON: {"kernel": name, "fields": [...]}, with kernels inside kernels.

Reading makes only kernels that are known: those of the package, and those that the program itself
has made with `@kernel`. A function cannot be written: it is code.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

from pegasos.objective.kernels import (
    Function,
    is_kernel,
    is_ours,
    kernel_types,
    leaves,
    mapped,
    parts,
    resolved,
)

MOST_PARTS, DEEPEST = 64, 16  # of a kernel in a file: all of it has to be compiled
_INNER = ("left", "right", "kernel")
_NUMBERS = ("gamma", "coef0", "degree", "factor", "constant")


def to_json(kernel: Any) -> dict[str, Any]:
    """The kernel as plain values; a TypeError if it is not made of numbers."""
    if any(isinstance(leaf, Function) for leaf in leaves(kernel)):
        raise TypeError(
            f"{kernel!r} is Python code, which a model file never holds: use pickle, or write the "
            "function as a kernel of its own with @kernel (see pegasos.kernels)"
        )
    _within_limits(kernel)
    return _written(kernel)


def _written(kernel: Any) -> dict[str, Any]:
    return {
        "kernel": type(kernel).__name__,
        "fields": [_written(value) if is_kernel(value) else _plain(value) for value in kernel],
    }


def _within_limits(kernel: Any) -> None:
    level, count, depth = [kernel], 0, 0
    while level:
        count, depth = count + len(level), depth + 1
        _refuse_beyond(count, depth)
        level = [part for one in level for part in parts(one)]


def _refuse_beyond(count: int, depth: int) -> None:
    if count > MOST_PARTS:
        raise ValueError(f"kernel: more than {MOST_PARTS} parts, the most in a file")
    if depth > DEEPEST:
        raise ValueError(f"kernel: nested more than {DEEPEST} deep, the most in a file")


def _plain(value: Any) -> Any:
    if isinstance(value, bool | int | str) or value is None:
        return value
    if isinstance(value, Real):
        return float(value)
    raise TypeError(f"a kernel with {value!r} cannot be saved: use pickle")


def from_json(value: Any) -> Any:
    """The kernel, its numbers checked; a ValueError says what is wrong."""
    try:
        return _made(value, [0], 1)
    except (KeyError, TypeError, OverflowError) as error:
        raise ValueError(f"kernel: {str(error)[:100]}") from None


def _made(value: Any, count: list[int], depth: int) -> Any:
    count[0] += 1
    _refuse_beyond(count[0], depth)
    name, fields = value["kernel"], value["fields"]
    known = kernel_types()
    if not isinstance(name, str) or name not in known or known[name] is Function:
        raise ValueError(
            f"kernel: {str(name)[:40]!r} is unknown here; if it is yours, import the module that "
            "makes it with @kernel first"
        )
    if not isinstance(fields, list) or len(fields) != len(known[name]._fields):
        raise ValueError(f"kernel: the fields of {name} are missing")
    return known[name](
        *(_made(field, count, depth + 1) if isinstance(field, dict) else field for field in fields)
    )


def checked(kernel: Any) -> Any:
    """The kernel of a fitted model: with numbers, and those in range."""
    _check_places(kernel)
    return resolved(mapped(kernel, _number), None)


def _check_places(kernel: Any) -> None:
    """Kernels where kernels belong, and only there."""
    for name, value in zip(kernel._fields, kernel, strict=True):
        if is_ours(type(kernel)) and is_kernel(value) != (name in _INNER):
            wanted = "a kernel" if name in _INNER else "a number"
            raise ValueError(f"kernel: {name} must be {wanted}, got {str(value)[:40]!r}")
        if is_kernel(value):
            _check_places(value)


def _number(name: str, value: Any) -> Any:
    if name not in _NUMBERS:
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"kernel: {name} must be a number, got {str(value)[:40]!r}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"kernel: {name} is not finite")
    if name in ("factor", "constant") and number < 0.0:
        raise ValueError(f"kernel: {name} must be >= 0, got {value!r}")
    return number
