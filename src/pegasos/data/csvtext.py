"""CSV text to columns, fast: blocks of lines parsed by Arrow in threads, in order.

    file   = [header] *row              (blank lines are skipped, but not if there is one column)
    row    = field *(delimiter field)   (as many fields as the header; ends with LF or CRLF)
    field  = *char | '"' *(char | '""') '"'

A quoted field holds no line break. Arrow knows only whether a block is good; what is wrong with a
bad one is said by `explain`, which reads it again, slow and exact.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from pegasos.core.threads import available, in_order
from pegasos.data.columns import MISSING, Columns, Piece, listed
from pegasos.data.errors import DataError, excerpt
from pegasos.data.formats import delimiter_of
from pegasos.data.grammar import FLOAT32_LIMIT, NUMBER
from pegasos.data.stream import Block, Text

_ODD = re.compile(rb"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_DELIMITERS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}


class Form(NamedTuple):
    """How rows are read: columns, delimiter, type of the features, whether there is a header."""

    columns: Columns
    delimiter: str
    dtype: np.dtype
    header: bool


class Csv(Text):
    """A CSV file, opened: the names of its columns, and its rows in pieces."""

    kind = "CSV text"
    texts_may_be_numbers = True

    def __init__(self, path: str | os.PathLike[str], header: bool = True):
        super().__init__(path)
        self.delimiter = delimiter_of(path)
        self._header = header
        self._taken = self._given = 0  # bytes
        try:
            self._blocks = super().__iter__()
            self.names = self._read_names()
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> Csv:
        return self

    def _read_names(self) -> list[str]:
        block = next(self._blocks, None)
        text = b"" if block is None else bytes(block.data[: block.size])
        text = text.lstrip(b"\r\n ")  # blanks stand for a byte order mark
        line, _, rest = text.partition(b"\n")
        if not line:
            raise DataError(f"{self.name}: no rows: the file is empty")
        body = bytearray(rest if self._header else text)
        self._first = Block(body, len(body))
        fields = self._first_fields(line.removesuffix(b"\r"))
        if not self._header:
            return [f"f{j}" for j in range(len(fields))]
        if all(NUMBER.fullmatch(field.strip()) for field in fields):
            words = f"the header {excerpt(line.strip())} is all numbers; if it is a row"
            raise DataError(f"{self.name}: {words}, say so: header=False, or --no-header")
        return [field.decode() for field in fields]

    def _first_fields(self, line: bytes) -> list[bytes]:
        what = "the header" if self._header else "row 1"
        words = _damage(line)
        fields = [] if words else split(line, self.delimiter.encode())
        if words or isinstance(fields, str):
            raise DataError(f"{self.name}: {what}: {words or fields}")
        if len(fields) == 1 and b'"' not in line:
            for other, called in _DELIMITERS.items():
                if other != self.delimiter and other.encode() in fields[0]:
                    ours = _DELIMITERS[self.delimiter]
                    found = f"{what} is one field, {excerpt(fields[0])}"
                    raise DataError(f"{self.name}: {found}: is {called} the delimiter, not {ours}?")
        return fields

    def pieces(self, columns: Columns, dtype: np.dtype) -> Iterator[Piece]:
        """The rows of the file, block by block, in order; the first fault is a DataError."""
        form = Form(columns, self.delimiter, dtype, self._header)
        rows = 0

        def blocks() -> Iterator[Block]:
            for block in itertools.chain([self._first], self._blocks):
                self._taken += block.size
                yield block

        for block, piece in in_order(blocks(), parser(form), available()):
            if piece is None:
                raise explain(self.name, block, rows, form)
            rows += len(piece.X)
            self._given += block.size
            self.reuse(block)
            if len(piece.X):
                yield piece
        if rows == 0:
            raise DataError(f"{self.name}: no rows below the header {listed(columns.names)}")

    def share(self) -> float:
        """The part of the file that the pieces so far came from; 0 if unknown."""
        done, size = self.progress()
        return done / size * self._given / self._taken if size and self._taken else 0.0


def parser(form: Form) -> Callable[[Block], Piece | None]:
    """What makes a piece of a block: None if anything is wrong with it."""
    import pyarrow as pa
    from pyarrow import csv

    names, label, features = form.columns
    keys = [str(j) for j in range(len(names))]
    types = {key: pa.from_numpy_dtype(form.dtype) for key in keys}
    if label is not None:
        types[keys[label]] = pa.dictionary(pa.int32(), pa.string())
    converting = csv.ConvertOptions(column_types=types, null_values=[""])
    # A blank line of a single column is a missing value: to skip it would shift the rows.
    parsing = csv.ParseOptions(delimiter=form.delimiter, ignore_empty_lines=len(names) > 1)

    def parse(block: Block) -> Piece | None:
        if not block.size:
            return Piece(np.empty((0, len(features)), form.dtype), None)
        if not sound(block, ord(form.delimiter)):
            return None
        reading = csv.ReadOptions(use_threads=False, block_size=block.size + 1, column_names=keys)
        try:
            source = pa.BufferReader(pa.py_buffer(memoryview(block.data)[: block.size]))
            table = csv.read_csv(source, reading, parsing, converting).combine_chunks()
        except pa.ArrowInvalid:
            return None
        X = np.empty((table.num_rows, len(features)), dtype=form.dtype)
        for k, j in enumerate(features):
            X[:, k] = table.column(j).to_numpy()
        if not np.isfinite(X).all():  # what is missing is NaN by now
            return None
        labels = None if label is None else _chunk(table.column(label))
        return None if labels is not None and _blank(labels.dictionary) else Piece(X, labels)

    return parse


def _chunk(column: Any) -> Any:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _blank(texts: Any) -> bool:
    """Whether one of the texts is empty or all blanks."""
    import pyarrow.compute as pc

    return bool(pc.any(pc.equal(pc.utf8_trim(texts, " \t"), "")).as_py())


def sound(block: Block, delimiter: int) -> bool:
    """Whether quotes stand around fields, in pairs on one line, and no NUL or lone CR occurs."""
    data, size = block
    if data.find(b"\0", 0, size) >= 0:
        return False
    if data.count(b"\r", 0, size) != data.count(b"\r\n", 0, size):
        return False
    if data.find(b'"', 0, size) < 0:
        return True
    text = np.frombuffer(data, dtype=np.uint8, count=size)
    quotes = np.flatnonzero(text == ord('"'))
    if len(quotes) % 2:
        return False
    lines = np.searchsorted(np.flatnonzero(text == ord("\n")), quotes)
    opening, closing = quotes[::2], quotes[1::2]
    before = text[opening - 1]  # of the very first, the newline that ends the block
    after = text[closing + 1]
    outside = [delimiter, ord("\n"), ord("\r"), ord('"')]  # a quote: the other half of a pair
    good = np.isin(before, outside).all() and np.isin(after, outside).all()
    return bool(good and np.array_equal(lines[::2], lines[1::2]))


def explain(name: str, block: Block, rows: int, form: Form) -> Exception:
    """The error for the first bad row of a block that follows on so many rows."""
    row = rows
    for line in bytes(block.data[: block.size]).removesuffix(b"\n").split(b"\n"):
        line = line.removesuffix(b"\r")
        if not line and len(form.columns.names) > 1:
            continue
        row += 1
        words = fault_of(line, form)
        if words and row == 1 and not form.header and "is not a number" in words:
            words += " (is it a header?)"
        if words:
            return DataError(f"{name}: row {row}: {words}")
    return RuntimeError(f"{name}: Arrow refuses rows {rows + 1} to {row}, which seem good")


def fault_of(line: bytes, form: Form) -> str | None:
    """What is wrong with a row; None if nothing is."""
    damage = _damage(line)
    if damage:
        return damage
    fields = split(line, form.delimiter.encode())
    if isinstance(fields, str):
        return fields
    names = form.columns.names
    if len(fields) != len(names):
        found = f"{len(fields)} field{'s' * (len(fields) != 1)}"
        return f"{found}, but {'the header' if form.header else 'row 1'} has {len(names)}"
    for j, field in enumerate(fields):
        words = field_fault(field.strip(b" \t"), form.dtype, j == form.columns.label)
        if words:
            return f"column {listed([names[j]])}: {words}"
    return None


def field_fault(field: bytes, dtype: np.dtype, is_label: bool) -> str | None:
    """What is wrong with a field without its quotes and blanks; None if nothing is."""
    if not field:
        return MISSING
    if is_label:
        return None
    if _ODD.fullmatch(field):
        return f"{excerpt(field)} is not a finite number"
    if not NUMBER.fullmatch(field):
        hint = " (the decimal sign is a point)" if b"," in field else ""
        return f"{excerpt(field)} is not a number{hint}"
    size = abs(float(field))
    if size == np.inf:
        return f"{excerpt(field)} is too large for a float64"
    if dtype == np.float32 and size >= FLOAT32_LIMIT:
        return f"{excerpt(field)} is too large for a float32; ask for float64"
    return None


def _damage(line: bytes) -> str | None:
    """What makes a line no text at all."""
    if b"\0" in line:
        return f"a NUL byte at byte {line.index(0) + 1} (is the file UTF-16 or damaged?)"
    if b"\r" in line:
        return "a carriage return inside of the line; lines end with LF or CRLF"
    try:
        line.decode()
    except UnicodeDecodeError as error:
        shown = excerpt(line[error.start : error.start + 10])
        return f"not UTF-8 at byte {error.start + 1}: {shown} (convert the file to UTF-8)"
    return None


def split(line: bytes, delimiter: bytes) -> list[bytes] | str:
    """The fields of a line without their quotes, or what is wrong with the quotes."""
    if b'"' not in line:
        return line.split(delimiter)
    end = re.escape(delimiter)
    field = re.compile(rb'(?:"([^"]*(?:""[^"]*)*)"|([^"' + end + rb"]*))(?=" + end + rb"|$)")
    fields: list[bytes] = []
    at = 0
    while at <= len(line):
        found = field.match(line, at)
        if found is None:
            number = f"field {len(fields) + 1}"
            if re.compile(rb'"[^"]*(?:""[^"]*)*$').match(line, at):
                return f"{number}: a quote is not closed on its line"
            return f"{number}: a quote inside of the field {excerpt(line[at:])}, not around it"
        quoted, bare = found.groups()
        fields.append(bare if quoted is None else quoted.replace(b'""', b'"'))
        at = found.end() + 1
    return fields
