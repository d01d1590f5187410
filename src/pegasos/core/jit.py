"""`@hot`: a loop compiled by Numba at its first call and cached on disk.

The cache directory carries a hash of the sources that hot loops use, because Numba does not notice
when a verb in another file was edited. Types from outside the package that occur in a signature
add the hash of the file that defines them. Where no directory can be written there is no cache,
and where Numba's JIT is switched off (NUMBA_DISABLE_JIT=1) a hot loop is the plain function.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pegasos.core.dispatch import HELPERS, ON_HELPER, ON_VERB, VERBS

log = logging.getLogger("pegasos.jit")
_PACKAGE = Path(__file__).resolve().parents[1]
_lock = threading.RLock()
COUNTED: list[str] = []  # loops that were to make no arrays, and do with some arguments


def hot(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile `function` when it is first called; it takes tuples, arrays and numbers only.

    It makes no arrays, so references to them are not counted: the counts are locked instructions,
    which wait until all that a row has stored is stored.
    """
    return _hot(function, counting=False)


def hot_allocating(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same for a loop that makes arrays."""
    return _hot(function, counting=True)


def _hot(function: Callable[..., Any], counting: bool) -> Callable[..., Any]:
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return _interpreted(function)
    compiled: list[Any] = []

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        if not compiled:
            with _lock:
                if not compiled:
                    compiled.append(_compile(function, counting))
        try:
            return compiled[0](*args)
        except SystemError as error:  # how a Ctrl-C shows that came while the loop ran
            cause: BaseException | None = error
            while cause is not None:
                if not isinstance(cause, Exception):
                    raise cause from None
                cause = cause.__cause__
            raise
        except Exception as error:
            if counting or type(error).__module__ != "numba.core.errors":
                raise
        with _lock:
            _count(function, compiled[0], args)
        return compiled[0](*args)

    return call


def _interpreted(function: Callable[..., Any]) -> Callable[..., Any]:
    import numpy as np

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        with np.errstate(all="ignore"):  # compiled loops wrap and divide in silence as well
            return function(*args)

    return call


def _compile(function: Callable[..., Any], counting: bool, cached: bool = True) -> Any:
    import numba

    _install()
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    try:
        dispatcher = numba.njit(**options, _nrt=counting)(function)
    except KeyError:  # a Numba without this option
        dispatcher = numba.njit(**options)(function)
    cache = _disk_cache(function) if cached else None
    if cache is not None:
        dispatcher._cache = cache
    return dispatcher


def _count(function: Callable[..., Any], dispatcher: Any, args: tuple[Any, ...]) -> None:
    """Give the dispatcher a loop with counts for such arguments: a verb makes arrays there.

    It is kept on disk only if that verb may be one from outside.
    """
    from pegasos.core.llvm import outside

    kinds = tuple(dispatcher.typeof_pyval(value) for value in args)
    if kinds not in dispatcher.overloads:  # else another thread was here
        counted = _compile(function, True, cached=bool(outside(kinds)))
        counted.compile(kinds)
        dispatcher.add_overload(counted.overloads[kinds])
        COUNTED.append(function.__name__)


@functools.cache
def _install() -> None:
    """Tell Numba about the verbs, the helpers and the compiler-only prefetch."""
    from numba.extending import overload, register_jitable

    from pegasos.core import (  # noqa: F401  (they register)
        llvm,
        llvm_elementary,
        llvm_entries,
        llvm_lanes,
        llvm_tile,
    )

    reorder = {"fastmath": {"reassoc", "contract"}}  # never more: NaN must stay NaN
    inlined = {"forceinline": True}  # a loop with a call in it does not vectorise

    def enter(verb: Any) -> None:
        overload(verb, strict=False, jit_options=reorder)(_chooser(verb, reordered=True))
        overload(verb, strict=False, jit_options=inlined)(_chooser(verb, reordered=False))

    for verb in VERBS:
        enter(verb)
    for function in HELPERS:
        register_jitable(**inlined)(function)
    ON_VERB.append(enter)
    ON_HELPER.append(register_jitable(**inlined))


def _chooser(verb: Any, reordered: bool) -> Callable[..., Any]:
    """What Numba asks while it compiles: the function for the type of the first argument."""

    def choose(first: Any, *rest: Any) -> Any:
        cls = getattr(first, "instance_class", None)
        if cls is None or (cls in verb.reordered) != reordered:
            return None
        return verb.lookup(cls)

    return choose


def cache_directory() -> Path | None:
    """Where compiled loops of exactly these sources are kept; None if there is no place."""
    given = os.environ.get("NUMBA_CACHE_DIR")
    try:
        base = Path(given) if given else user_cache() / "pegasos"
    except RuntimeError:  # no home directory
        return None
    return base / f"pegasos-{_fingerprint()}"


def user_cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData/Local")
    if sys.platform == "darwin":
        return Path.home() / "Library/Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


@functools.cache
def _fingerprint() -> str:
    digest = hashlib.sha256()
    compiled = ("core", "data", "objective", "solvers", "maps")
    for path in sorted(p for room in compiled for p in (_PACKAGE / room).rglob("*.py")):
        digest.update(path.relative_to(_PACKAGE).as_posix().encode() + b"\0")
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _disk_cache(function: Callable[..., Any]) -> Any:
    """Numba's function cache in our directory, or None where it cannot be written."""
    import numba

    directory = cache_directory()
    if directory is None:
        return None
    from pegasos.core.llvm import HotCache

    previous, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(directory)
    try:
        return HotCache(function)
    except (RuntimeError, OSError):
        return None
    finally:
        numba.config.CACHE_DIR = previous


def source_hash(cls: type) -> str | None:
    """A hash of the file that defines `cls`; None if that does not identify it."""
    path = getattr(sys.modules.get(cls.__module__), "__file__", None)
    made_in_a_function = "<locals>" in cls.__qualname__
    if path is None or cls.__module__ == "__main__" or made_in_a_function:
        return None
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
