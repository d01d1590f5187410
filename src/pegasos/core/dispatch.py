"""Open verbs: one generic function, a table *type -> plain Python function*.

Called from Python a verb looks the type of its first argument up. Inside a hot loop Numba
resolves the same table at compile time and inlines the function it finds, so one source of a
loop serves every storage, loss and dtype, and a type defined outside the package joins by
registering its functions. Nothing here imports Numba: `core.jit` hands it the lists below when
the first hot loop is called.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

VERBS: list[Any] = []
HELPERS: list[Callable[..., Any]] = []
NAMES: dict[str, type] = {}
# The compiler, once loaded, is told of what is declared later.
ON_VERB: list[Callable[..., Any]] = []
ON_HELPER: list[Callable[..., Any]] = []


def generic(stub: Callable[..., Any]) -> Any:
    """Make a verb of `stub`, whose body is the fallback for types without an entry.

    A stub whose body is only a docstring has no fallback: an unknown type is a TypeError that
    names the verb and the type.
    """
    table: dict[type, Callable[..., Any]] = {}
    reordered: set[type] = set()
    fallback = stub if _has_body(stub) else None

    def lookup(cls: type) -> Callable[..., Any]:
        function = table.get(cls, fallback)
        if function is None:
            raise TypeError(
                f"{cls.__name__} has no {stub.__name__!r}: register one with "
                f"@{stub.__name__}.register({cls.__name__})"
            )
        return function

    @functools.wraps(stub)
    def verb(first: Any, *rest: Any) -> Any:
        return (table.get(type(first)) or lookup(type(first)))(first, *rest)

    def register(cls: type, reassociate: bool = False) -> Callable[..., Any]:
        """Enter a function for `cls`; `reassociate`: its sums may be reordered to vectorise."""

        def enter(function: Callable[..., Any]) -> Callable[..., Any]:
            _tell_apart(cls)
            table[cls] = function
            (reordered.add if reassociate else reordered.discard)(cls)
            return function

        return enter

    verb.lookup, verb.register = lookup, register  # type: ignore[attr-defined]
    verb.reordered = reordered  # type: ignore[attr-defined]
    VERBS.append(verb)
    for tell in ON_VERB:
        tell(verb)
    return verb


def _tell_apart(cls: type) -> None:
    """Give a type its own name: the compiler links loops of types with one name as one.

    A class defined anew in a notebook would otherwise keep running the code of the first.
    """
    known = NAMES.setdefault(cls.__name__, cls)
    if known is not cls:
        cls.__name__ = f"{cls.__name__}_{len(NAMES)}"
        NAMES[cls.__name__] = cls


def helper(function: Callable[..., Any]) -> Callable[..., Any]:
    """A plain function that hot loops may call: no dispatch, inlined by the compiler."""
    HELPERS.append(function)
    for tell in ON_HELPER:
        tell(function)
    return function


def _has_body(function: Callable[..., Any]) -> bool:
    """Whether `function` does anything beyond its docstring."""
    code = function.__code__
    longer = len(code.co_code) > len(_empty.__code__.co_code)
    return longer or code.co_consts[-1] is not None  # `return constant` is no longer than nothing


def _empty() -> None:
    """A docstring and nothing else."""
