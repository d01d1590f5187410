"""Errors that name the file, the line and the field."""

from __future__ import annotations


class DataError(ValueError):
    """Bad input: what was found, where, and what is allowed, in one line."""


class ReadError(OSError):
    """The file cannot be read to its end: truncated, changed or out of reach."""


def excerpt(token: bytes) -> str:
    """A token as it can be shown in a message."""
    text = token[:40].decode("utf-8", errors="backslashreplace")
    return repr(text + "…" if len(token) > 40 else text)
