"""LIBSVM/SVMlight text to sparse rows, fast: blocks of lines parsed by threads, in order.

A block is parsed by one compiled loop straight into arrays. The loop knows only whether a line is
good; what is wrong with a bad one is said by `data.grammar`, which reads it again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from pegasos.core.rows import CsrRows
from pegasos.core.threads import available, in_order
from pegasos.data.errors import DataError
from pegasos.data.grammar import MAX_INDEX, Dialect, LineError, parse_line
from pegasos.data.scan import Space, count, parse
from pegasos.data.stream import Block, Text

log = logging.getLogger("pegasos")


class Piece(NamedTuple):
    """Parsed rows: labels, starts (rows + 1), columns from 0, values; lines and qids seen."""

    labels: np.ndarray
    starts: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    lines: int
    qids: int

    @property
    def width(self) -> int:
        """One more than the largest column."""
        return int(self.columns.max(initial=-1)) + 1


class Bad(NamedTuple):
    """The first bad line of a block: its number in the block, from 0, and its text."""

    line: int
    text: bytes


class Csr(NamedTuple):
    """All rows of a file: labels and the three arrays of a CSR matrix with `width` columns."""

    labels: np.ndarray
    starts: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    width: int


def read_pieces(
    text: Text, dialect: Dialect, dtype: Any, threads: int | None = None
) -> Iterator[Piece]:
    """The rows of a text, block by block, in order; the first bad line is a DataError."""
    lines, rows, qids = 0, 0, 0

    def work(block: Block) -> Piece | Bad:
        return parse_block(block, dialect, dtype)

    for block, result in in_order(text, work, threads or available()):
        text.reuse(block)
        if isinstance(result, Bad):
            raise _located(text.name, lines + result.line + 1, result.text, dialect)
        lines += result.lines
        rows += len(result.labels)
        qids += result.qids
        if len(result.labels):
            yield result
    if rows == 0:
        raise DataError(f"{text.name}: no rows in {lines} lines")
    if qids:
        log.warning("%s: qid ignored in %d fields", text.name, qids)


def rows_of(piece: Piece, width: int) -> tuple[CsrRows, int]:
    """Rows with a virtual column of ones, and how many entries beyond the width they leave out."""
    starts, columns, values = piece.starts, piece.columns, piece.values
    unknown = 0
    if piece.width > width:
        known = columns < width
        unknown = int(known.size - known.sum())
        starts = np.concatenate([[0], np.cumsum(known)])[starts]
        columns, values = columns[known], values[known]
    unsigned = np.uint32 if columns.itemsize == 4 else np.uint64
    rows = CsrRows(values, columns.view(unsigned), starts.astype(np.uint64), width, 1.0)
    return rows, unknown


def _located(name: str, line: int, text: bytes, dialect: Dialect) -> Exception:
    """The error for a bad line, in the words of the grammar."""
    try:
        parse_line(text, dialect)
    except LineError as fault:
        where = f"{name}:{line}:{fault.column}: field {fault.field}"
        return DataError(f"{where}: {fault.words}")
    return RuntimeError(f"{name}:{line}: the fast reader refuses a line that the grammar accepts")


def parse_block(block: Block, dialect: Dialect, dtype: Any) -> Piece | Bad:
    """The rows of complete lines, or the first bad one."""
    data = np.frombuffer(block.data, dtype=np.uint8)
    lines, fields = count(data, block.size)
    space = Space(
        np.empty(lines),
        np.zeros(lines + 1, dtype=np.int64),
        np.empty(fields, dtype=np.int32),
        np.empty(fields, dtype=dtype),
    )
    slow = np.empty((16, 3), dtype=np.int64)
    while True:
        rows, _, bad, n_slow, qids, unsorted = parse(data, block.size, dialect, space, slow)
        if n_slow <= len(slow):
            break
        slow = np.empty((n_slow, 3), dtype=np.int64)
    entries = int(space.starts[rows])  # without those of a bad line
    if rows < lines or entries < fields:
        space = Space(
            space.labels[:rows].copy(),
            space.starts[: rows + 1].copy(),
            space.columns[:entries].copy(),
            space.values[:entries].copy(),
        )
    double = rows
    if unsorted:
        space, double = _sorted(space, dialect)
    for row, first, end in slow[:n_slow].tolist():
        if row > double or not _filled(space, row, bytes(block.data[first:end]), dialect):
            break
    else:
        row = rows
    if min(row, double) < rows:
        return _bad_at(block.data, _start_of(block.data, min(row, double)))
    if bad >= 0:
        return _bad_at(block.data, bad)
    return Piece(*space, lines, qids)


def _filled(space: Space, row: int, line: bytes, dialect: Dialect) -> bool:
    """Write the numbers of a slow line; whether it is good."""
    try:
        parsed = parse_line(line, dialect)
    except LineError:
        return False
    assert parsed is not None
    space.labels[row], found = parsed
    begin, end = space.starts[row], space.starts[row + 1]
    space.values[begin:end] = [found[j] for j in sorted(found)]
    return True


def _sorted(space: Space, dialect: Dialect) -> tuple[Space, int]:
    """The rows with rising columns, repeated ones summed, and the first row that may not be."""
    rows = len(space.labels)
    owner = np.repeat(np.arange(rows), np.diff(space.starts))
    order = np.lexsort((space.columns, owner))  # stable: sums go in the order of the line
    columns, values = space.columns[order], space.values[order]
    again = np.zeros(len(columns), dtype=bool)
    again[1:] = (columns[1:] == columns[:-1]) & (owner[1:] == owner[:-1])
    if not again.any():
        return space._replace(columns=columns, values=values), rows
    if not dialect.add:
        return space, int(owner[np.argmax(again)])
    sums = values[~again].astype(np.float64)
    np.add.at(sums, (np.cumsum(~again) - 1)[again], values[again])  # in order, not pairwise
    owner, columns = owner[~again], columns[~again]
    starts = np.searchsorted(owner, np.arange(rows + 1))
    over = np.abs(sums) >= dialect.limit
    double = int(owner[np.argmax(over)]) if over.any() else rows
    with np.errstate(over="ignore"):
        return Space(space.labels, starts, columns, sums.astype(values.dtype)), double


def _start_of(data: bytearray, row: int) -> int:
    """Where the line of a row begins."""
    at = 0
    while True:
        line = bytes(data[at : data.index(b"\n", at)])
        if line.split(b"#", 1)[0].strip(b" \t\r"):
            if row == 0:
                return at
            row -= 1
        at += len(line) + 1


def _bad_at(data: bytearray, first: int) -> Bad:
    line = bytes(data[first : data.index(b"\n", first)])
    return Bad(data.count(b"\n", 0, first), line[:-1] if line.endswith(b"\r") else line)


def gather(pieces: Iterator[Piece], share: Callable[[], float]) -> Csr:
    """One matrix of the pieces, each copied to its place and dropped: their sum never exists twice.

    `share()` is the part of the file that the pieces so far came from (0 if unknown): it tells how
    much room to ask for. Memory that is asked for but not filled costs nothing.
    """
    row, k, width = 0, 0, 0
    whole: Csr | None = None
    for piece in pieces:
        n, m = len(piece.labels), len(piece.values)
        width = max(width, piece.width)
        if whole is None or row + n > len(whole.labels) or k + m > len(whole.values):
            whole = _more_room(whole, row, k, piece, share())
        whole.labels[row : row + n] = piece.labels
        np.add(piece.starts[1:], k, out=whole.starts[row + 1 : row + n + 1])
        whole.columns[k : k + m] = piece.columns
        whole.values[k : k + m] = piece.values
        row, k = row + n, k + m
    assert whole is not None
    columns, starts = whole.columns[:k], whole.starts[: row + 1]
    if k <= MAX_INDEX:  # SciPy wants one integer type for both
        starts = starts.astype(np.int32)
    else:
        columns = columns.astype(np.int64)
    return Csr(whole.labels[:row], starts, columns, whole.values[:k], width)


def _more_room(whole: Csr | None, row: int, k: int, piece: Piece, share: float) -> Csr:
    """Arrays for the whole file by the density so far, or of twice the size."""
    rows, entries = row + len(piece.labels), k + len(piece.values)
    factor = 1.1 / share if 0.0 < share < 1.0 else 2.0
    n, m = int(max(1.5, factor) * rows) + 1, int(max(1.5, factor) * entries) + 1
    room = Csr(
        np.empty(n),
        np.zeros(n + 1, dtype=np.int64),
        np.empty(m, dtype=np.int32),
        np.empty(m, dtype=piece.values.dtype),
        0,
    )
    if whole is not None:
        room.labels[:row] = whole.labels[:row]
        room.starts[: row + 1] = whole.starts[: row + 1]
        room.columns[:k] = whole.columns[:k]
        room.values[:k] = whole.values[:k]
    return room
