"""Named arrays and a JSON header in one file: the safetensors layout, with checks of our own.

    8 bytes      length of the header, little-endian
    header       JSON: "__metadata__": {"pegasos": description}, then for each array its dtype,
                 shape and place
    data         the arrays one after the other, then 32 bytes `seal`: SHA-256 of all before `data`

The description holds a CRC-32 per array, so the seal of the header vouches for every byte: damage
is found (not malice: who can write the file can write its checksums). Any program that reads
safetensors reads the arrays. Nothing in a file is ever executed, and nothing is allocated beyond
the size of the file.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
import re
import zlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any, NamedTuple

import numpy as np

from pegasos.core.threads import available
from pegasos.data.errors import DataError

_DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "U64": "<u8", "U32": "<u4"} | {
    "U8": "|u1",
    "BOOL": "|b1",
}
_NAMES = {np.dtype(code): name for name, code in _DTYPES.items()}
_MAX_HEADER = 100_000_000
_MAX_ARRAYS = 10_000
_MAX_VALUES = 2_000_000  # of JSON: a second's work, and memory to match
_SEAL = 32
_FORMAT = re.compile(rb'\{"__metadata__":\{"pegasos":"\{\\"format\\": \\"([a-z-]+)\\"')


class Contents(NamedTuple):
    """The description and the arrays of a file."""

    description: dict[str, Any]
    arrays: dict[str, np.ndarray]


def write(
    file: IO[bytes], description: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> None:
    """The same description and arrays give the same bytes."""
    plain = {name: _plain(array) for name, array in arrays.items()}
    sums = {name: zlib.crc32(_bytes(array)) for name, array in plain.items()}
    parts = {**description, "crc32": sums}
    ordered = {key: parts[key] for key in sorted(parts, key=lambda key: (key != "format", key))}
    text = json.dumps(ordered, allow_nan=False)
    if len(plain) >= _MAX_ARRAYS:
        raise ValueError(f"{len(plain)} arrays are too many for a file")
    header: dict[str, Any] = {"__metadata__": {"pegasos": text}}
    place = 0
    for name, array in plain.items():
        end = place + array.nbytes
        header[name] = _entry(_NAMES[array.dtype], array.shape, place, end)
        place = end
    header["seal"] = _entry("U8", (_SEAL,), place, place + _SEAL)
    head = json.dumps(header, separators=(",", ":")).encode()
    if len(head) > _MAX_HEADER or _values(head.decode()) > _MAX_VALUES:
        raise ValueError("too many names or words for the header of a file")
    head += b" " * (-len(head) % 64)  # arrays begin where the processor likes it
    front = len(head).to_bytes(8, "little") + head
    file.write(front)
    for array in plain.values():
        file.write(_bytes(array))
    file.write(hashlib.sha256(front).digest())


def _entry(dtype: str, shape: tuple[int, ...], start: int, end: int) -> dict[str, Any]:
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [start, end]}


def _plain(array: np.ndarray) -> np.ndarray:
    """The array in the byte order and layout of the file."""
    array = np.asarray(array, order="C")
    return array.astype(array.dtype.newbyteorder("<"), copy=False)


def _bytes(array: np.ndarray) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def kind_of(path: str | os.PathLike[str]) -> str | None:
    """The format that a file of ours says it has; None for any other, a pipe included."""
    if os.fspath(path) == "-" or not os.path.isfile(path):
        return None
    with open(path, "rb") as file:
        found = _FORMAT.match(file.read(256)[8:])
    return found[1].decode() if found else None


def read(path: str | os.PathLike[str], mapped: bool = False) -> Contents:
    """Everything in a file, checked; `mapped`: the arrays are views of the file itself."""
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            raise DataError(f"{path}: is empty")
        whole = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if mapped else file.read()
    try:
        return parse(memoryview(whole))
    except DataError as error:
        raise DataError(f"{os.fspath(path)}: {error}") from None


def parse(buffer: memoryview) -> Contents:
    """The contents of a file in memory; a DataError names the part that is wrong."""
    front, header = _header(buffer)
    metadata = _object(header.pop("__metadata__", None), "header: __metadata__")
    text = metadata.get("pegasos")
    if not isinstance(text, str):
        raise DataError("not a file of pegasos: the header has no description")
    places = _places(header, len(buffer) - front)
    if "seal" not in places or places["seal"].shape != (_SEAL,):
        raise DataError("header: the seal is missing")
    data = buffer[front:]
    arrays = {name: _view(data, place) for name, place in places.items()}
    if hashlib.sha256(buffer[:front]).digest() != arrays.pop("seal").tobytes():
        raise DataError("header: damaged (its checksum does not agree)")
    description = _object(_json(text, "description"), "description")
    _check_sums(description.pop("crc32", None), arrays)
    return Contents(description, arrays)


def _header(buffer: memoryview) -> tuple[int, dict[str, Any]]:
    """Where the data begin, and the header."""
    if len(buffer) < 8:
        raise DataError(f"ends early: {len(buffer)} bytes are too few for a header")
    length = int.from_bytes(buffer[:8], "little")
    if length > min(_MAX_HEADER, len(buffer) - 8):
        raise DataError(
            _looks_like(bytes(buffer[:64]))
            or f"header: a length of {length} bytes is beyond the file"
        )
    raw = bytes(buffer[8 : 8 + length])
    if not raw.startswith(b'{"'):
        raise DataError(_looks_like(bytes(buffer[:64])) or "header: not JSON")
    return 8 + length, _object(_json(raw, "header"), "header")


def _looks_like(start: bytes) -> str | None:
    """What a file that is not ours seems to be."""
    known = {
        b"\x80": "a pickle (never loaded: it could run code)",
        b"PK\x03\x04": "a zip archive",
        b"solver_type": "a LIBLINEAR model (use pegasos convert)",
        b"svm_type": "a LIBSVM model",
        b"{": "a JSON file",
        b"\x1f\x8b": "a gzip file",
    }
    for magic, what in known.items():
        if start.startswith(magic):
            return f"not a file of pegasos but {what}"
    if start and all(byte in b"\t\r\n" or 32 <= byte < 127 for byte in start):
        return "not a file of pegasos but text (a data file? are the arguments swapped?)"
    return None


class _Place(NamedTuple):
    dtype: np.dtype
    shape: tuple[int, ...]
    start: int
    end: int


def _places(header: dict[str, Any], size: int) -> dict[str, _Place]:
    """dtype, shape and place of every array; they fill the data without hole or overlap."""
    if len(header) > _MAX_ARRAYS:
        raise DataError(f"header: {len(header)} arrays, more than {_MAX_ARRAYS}")
    places = {name: _place(name, entry) for name, entry in header.items()}
    at = 0
    for name, place in sorted(places.items(), key=lambda item: item[1][2:]):
        if place.start != at:
            raise DataError(f"array {name[:80]!r}: begins at byte {place.start}, expected {at}")
        at = place.end
    if at != size:
        raise DataError(f"ends early or late: {size} bytes of data, the header speaks of {at}")
    return places


def _place(name: str, entry: Any) -> _Place:
    fields = _object(entry, f"array {name[:80]!r}")
    if set(fields) != {"dtype", "shape", "data_offsets"}:
        raise DataError(f"array {name[:80]!r}: expected dtype, shape and data_offsets")
    code, shape, offsets = fields["dtype"], fields["shape"], fields["data_offsets"]
    if not isinstance(code, str) or code not in _DTYPES:
        raise DataError(f"array {name[:80]!r}: unknown dtype {str(code)[:20]!r}")
    good = _counts(shape) and len(shape) <= 4 and _counts(offsets) and len(offsets) == 2
    if not good or math.prod(n or 1 for n in shape) >= 1 << 59:  # NumPy's limit, empty or not
        raise DataError(
            f"array {name[:80]!r}: shape and data_offsets must be whole numbers in range"
        )
    dtype = np.dtype(_DTYPES[code])
    if offsets[1] - offsets[0] != math.prod(shape) * dtype.itemsize:
        raise DataError(f"array {name[:80]!r}: its shape does not agree with its place")
    return _Place(dtype, tuple(shape), *offsets)


def _counts(values: Any) -> bool:
    return isinstance(values, list) and all(type(v) is int and 0 <= v < 1 << 62 for v in values)


def _view(data: memoryview, place: _Place) -> np.ndarray:
    count = math.prod(place.shape)
    flat = (
        np.frombuffer(data, dtype=place.dtype, count=count, offset=place.start)
        if count
        else np.empty(0, place.dtype)
    )
    return flat.reshape(place.shape)


def _check_sums(sums: Any, arrays: dict[str, np.ndarray]) -> None:
    if not isinstance(sums, dict) or set(sums) != set(arrays):
        raise DataError("description: a checksum per array is missing")
    if sum(array.nbytes for array in arrays.values()) < 1 << 20:  # not worth a thread
        found = [_crc(array) for array in arrays.values()]
    else:
        with ThreadPoolExecutor(available()) as pool:
            found = list(pool.map(_crc, arrays.values()))
    for (name, _), crc in zip(arrays.items(), found, strict=True):
        if sums[name] != crc:
            raise DataError(f"array {name[:80]!r}: damaged (its checksum does not agree)")


def _crc(array: np.ndarray) -> int:
    return zlib.crc32(_bytes(array))


def _values(text: str) -> int:
    """At least as many as there are values in JSON."""
    return 1 + sum(text.count(mark) for mark in ",[{")


def _json(raw: bytes | str, where: str) -> Any:
    def no_constant(name: str) -> Any:
        raise DataError(f"{where}: {name} is not JSON")

    try:
        text = raw if isinstance(raw, str) else raw.decode("utf-8")
        if _values(text) > _MAX_VALUES:
            raise DataError(f"{where}: more than {_MAX_VALUES} values")
        return json.loads(text, object_pairs_hook=_unique, parse_constant=no_constant)
    except (ValueError, RecursionError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{where}: not JSON") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise DataError("header: a name occurs twice")
    return found


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DataError(f"{where}: expected a JSON object")
    return value
