"""Listening to the logs of the library for a while."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator


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
