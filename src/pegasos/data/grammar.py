"""The grammar of LIBSVM text, slow and exact: it says what is wrong with a line, and where.

    line   = [blank] [label *(blank [field])] ["#" anything]      (without labels: only fields)
    label  = number
    field  = index ":" number | "qid:" anything
    index  = 1*DIGIT, from 1 (from 0 if asked) to 2147483647; once per line, in any order
    number = ["+" | "-"] (1*DIGIT ["." *DIGIT] | "." 1*DIGIT) [("e" | "E") ["+" | "-"] 1*DIGIT]
    blank  = 1*(SPACE | TAB)

Lines end with LF or CRLF. A number must be finite, and in float32 if that is what is asked for.
Values of a repeated index, if allowed, are summed in float64, in the order of the line.
The fast reader accepts exactly the same lines; the tests hold the two against each other.
"""

from __future__ import annotations

import ctypes
import re
from typing import NamedTuple

from pegasos.data.errors import excerpt

MAX_INDEX = 2**31 - 1
FLOAT32_LIMIT = 3.4028235677973366e38  # from here on, float32 rounds to infinity

NUMBER = re.compile(rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_TOKEN = re.compile(rb"[^ \t]+")
_INDEX = re.compile(rb"[0-9]+")


class Dialect(NamedTuple):
    """What may vary: first and last index; whether a repeated index is summed and lines begin
    with a label; the size from which a value is too large."""

    first: int = 1
    last: int = MAX_INDEX
    add: bool = False
    labelled: bool = True
    limit: float = FLOAT32_LIMIT


class LineError(Exception):
    """What is wrong with a line: column and field, counted from 1, and the words."""

    def __init__(self, column: int, field: int, words: str):
        super().__init__(words)
        self.column, self.field, self.words = column, field, words


def parse_line(line: bytes, dialect: Dialect) -> tuple[float, dict[int, float]] | None:
    """Label and entries (columns from 0) of a line without its end; None for a blank one."""
    tokens = list(_TOKEN.finditer(line.split(b"#", 1)[0]))
    if not tokens:
        return None
    texts = [(token.group(), token.start() + 1) for token in tokens]
    label = _label(*texts[0], dialect) if dialect.labelled else 0.0
    entries: dict[int, float] = {}
    for number, (text, column) in enumerate(texts, start=1):
        if number == 1 and dialect.labelled:
            continue
        if text.startswith(b"qid:"):
            continue
        index, value = _field(text, column, number, dialect)
        if index in entries and not dialect.add:
            shown = index + dialect.first
            raise LineError(column, number, f"index {shown} occurs twice in this line")
        entries[index] = entries[index] + value if index in entries else value
    for index, total in entries.items():
        if not abs(total) < dialect.limit:
            words = f"the values of index {index + dialect.first} overflow"
            raise LineError(texts[-1][1], len(texts), words)
    return label, entries


def _label(text: bytes, column: int, dialect: Dialect) -> float:
    if NUMBER.fullmatch(text):
        return _finite(text, column, 1, dialect._replace(limit=float("inf")))
    if b":" in text:
        raise LineError(column, 1, f"the label is missing: the line begins with {excerpt(text)}")
    if b"," in text:
        raise LineError(column, 1, f"{excerpt(text)}: several labels in a row (or a decimal comma)")
    raise LineError(column, 1, f"the label {excerpt(text)} is not a number{_hint(text)}")


def _field(text: bytes, column: int, number: int, dialect: Dialect) -> tuple[int, float]:
    parts = text.split(b":")
    if len(parts) != 2:
        hint = _hint(text)
        raise LineError(column, number, f"{excerpt(text)}: expected index:value{hint}")
    if not _INDEX.fullmatch(parts[0]):
        words = f"the index {excerpt(parts[0])} is not a whole number from {dialect.first} on"
        raise LineError(column, number, words + _hint(parts[0]))
    digits = parts[0].lstrip(b"0") or b"0"
    index = int(digits) if len(digits) < 20 else MAX_INDEX + 1
    if index < dialect.first:
        words = "index 0, but indices start at 1 (else: zero_based=True, --zero-based)"
        raise LineError(column, number, words)
    if index > dialect.last:
        words = f"the index {excerpt(parts[0])} is above the limit of {dialect.last}"
        raise LineError(column, number, words)
    at = column + len(parts[0]) + 1
    if not NUMBER.fullmatch(parts[1]):
        words = f"the value {excerpt(parts[1])} is not a finite decimal number{_hint(parts[1])}"
        raise LineError(at, number, words)
    value = _finite(parts[1], at, number, dialect)
    if dialect.limit == FLOAT32_LIMIT:
        value = ctypes.c_float(value).value
    return index - dialect.first, value


def _finite(text: bytes, column: int, number: int, dialect: Dialect) -> float:
    value = float(text)
    if not abs(value) < float("inf"):
        raise LineError(column, number, f"{excerpt(text)} is too large for a float64")
    if not abs(value) < dialect.limit:
        words = f"{excerpt(text)} is too large for a float32; ask for float64 (--float64)"
        raise LineError(column, number, words)
    return value


def _hint(text: bytes) -> str:
    """What often explains a token that is no number."""
    if b"\x00" in text:
        return " (it holds a NUL byte: is the file UTF-16 or damaged?)"
    if text[:1] == b"\r" or b"\r" in text:
        return " (it holds a lone carriage return)"
    if any(byte > 127 for byte in text):
        return " (only ASCII digits and signs count)"
    if b"," in text:
        return " (the decimal sign is a point)"
    return ""
