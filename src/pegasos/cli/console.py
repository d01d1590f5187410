"""What the commands say: results to standard output, notes to standard error."""

from __future__ import annotations

import logging

import typer


def say(words: str) -> None:
    """A line of the result."""
    typer.echo(words)


def note(words: str) -> None:
    """A line beside the result."""
    typer.echo(f"pegasos: note: {words}", err=True)


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
