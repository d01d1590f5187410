"""What the commands say: results to standard output, notes to standard error."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterable
from typing import Any

import typer

# a parameter with its value, a name with an underscore, or one of which something is demanded
_PARAMETER = re.compile(
    r"(?<![\w./'-])"
    r"(?:(\w+)=(?:'([^']*)'|([\w.+-]*\w))|(\w+_\w+)(?![\w/=-]|\.\w)|(\w+)(?= must be ))"
)
_options: dict[str, str] = {}  # of the command at hand, by the names that the library has for them


def say(words: str) -> None:
    """A line of the result."""
    typer.echo(words)


def note(words: str) -> None:
    """A line beside the result."""
    typer.echo(f"pegasos: note: {words}", err=True)


def percent(share: float) -> str:
    """In two digits, or in whole ones."""
    return f"{100.0 * share:.2g}" if share < 0.995 else f"{100.0 * share:.0f}"


def counted(number: int, thing: str) -> str:
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def speak_of(parameters: Iterable[Any]) -> None:
    """Let `as_typed` know the parameters of the command at hand."""
    long = [option for one in parameters for option in one.opts if option.startswith("--")]
    _options.clear()
    _options.update({option[2:].replace("-", "_"): option for option in long})


def as_typed(words: str) -> str:
    """What the library says of parameters, said of options: --max-iter, --solver auto."""

    def option(found: re.Match[str]) -> str:
        name, value = found[1] or found[4] or found[5], found[2] or found[3]
        if name not in _options:
            return found[0]
        if value is None or value == "True":
            return _options[name]
        return f"{_options[name]} {value}"

    return re.sub(_PARAMETER, option, words)


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
