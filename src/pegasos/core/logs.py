"""Listening to the logs of the library for a while; warnings."""

from __future__ import annotations

import contextlib
import logging
import sys
import warnings
from collections.abc import Iterator
from contextvars import ContextVar
from types import FrameType

_BETWEEN = ("pegasos", "sklearn")  # packages whose calls are not the user's
_whose = ContextVar("whose", default="")


@contextlib.contextmanager
def listening(name: str, handler: logging.Handler) -> Iterator[None]:
    """Let `handler` hear the logger from level INFO on."""
    log = logging.getLogger(name)
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


@contextlib.contextmanager
def on_behalf(whose: str) -> Iterator[None]:
    """Let warnings say whose they are: a part of what the user asked for."""
    token = _whose.set(f"{whose}: ")
    try:
        yield
    finally:
        _whose.reset(token)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """A warning that shows the line of the user who called, however deep it comes from."""
    frame: FrameType | None = sys._getframe()
    depth = 1
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in _BETWEEN:
        frame, depth = frame.f_back, depth + 1
    warnings.warn(_whose.get() + message, category, stacklevel=depth)
