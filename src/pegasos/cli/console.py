"""What the commands say: results to standard output, notes to standard error."""

from __future__ import annotations

import logging
import math
from typing import Any

import typer


def say(words: str) -> None:
    """A line of the result."""
    typer.echo(words)


def note(words: str) -> None:
    """A line beside the result."""
    typer.echo(f"pegasos: note: {words}", err=True)


def listed(names: Any, most: int = 8) -> str:
    """Names for a message, the first of them if they are many."""
    shown = [str(name) for name in names]
    return ", ".join(shown[:most]) + (", …" if len(shown) > most else "")


def finite(value: Any) -> Any:
    """What is not finite as null, which JSON knows."""
    if isinstance(value, dict):
        return {key: finite(part) for key, part in value.items()}
    if isinstance(value, list):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class Notes(logging.Handler):
    """Warnings of the library as notes."""

    def emit(self, record: logging.LogRecord) -> None:
        note(record.getMessage())


def show_warnings() -> None:
    """Let the warnings of the library be seen."""
    log = logging.getLogger("pegasos")
    if not any(isinstance(handler, Notes) for handler in log.handlers):
        handler = Notes(logging.WARNING)
        log.addHandler(handler)
        log.propagate = False
