"""Text files as blocks of whole lines: plain, gzip, bzip2 or xz, told apart by their first bytes.

A block holds complete lines, each with its newline, so that blocks can be parsed
independently. A file that changes while it is read, or that ends early, is an error.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import os
import select
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from pegasos.data.errors import DataError, ReadError

BLOCK = 1 << 22  # bytes of a block
MAX_LINE = 1 << 28  # bytes of the longest line
SILENCE = 0.5  # seconds

_BOM = b"\xef\xbb\xbf"
_OPENERS = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}
_FOREIGN = {
    b"PK\x03\x04": "a zip archive",
    b"\x28\xb5\x2f\xfd": "a zstd file (decompress it first)",
    b"PAR1": "a Parquet file (name it .parquet)",
    b"\xff\xfe": "UTF-16 text (convert it to UTF-8)",
    b"\xfe\xff": "UTF-16 text (convert it to UTF-8)",
    b"\x80\x04": "a pickle",
    b"\x80\x05": "a pickle",
}


class Block(NamedTuple):
    """Bytes data[:size] of a file: complete lines, the last newline added if it was missing."""

    data: bytearray
    size: int


def name_of(path: str | os.PathLike[str]) -> str:
    """What messages call a file."""
    return "standard input" if str(path) == "-" else os.fspath(path)


class Text:
    """A text file (`-` for standard input), opened; iterating gives its blocks.

    `kind` is what it should be, for messages; a block has `block` bytes, more if a line has. With
    `block` given, what comes through a pipe makes a block when nothing follows for a while.
    """

    kind = "LIBSVM text"

    def __init__(self, path: str | os.PathLike[str], block: int | None = None):
        self.path, self.name = path, name_of(path)
        self._block = block or BLOCK
        if str(path) == "-" and sys.stdin is None:
            raise ReadError("standard input is closed")
        self._raw: IO[bytes] = sys.stdin.buffer if str(path) == "-" else _open(Path(path))
        self._before = _state(self._raw)
        self._live = self._raw if block is not None and self._before is None else None
        self._spare: list[bytearray] = []
        try:
            self._file = self._decompressed()
        except BaseException:
            self._raw.close()
            raise

    def __enter__(self) -> Text:
        return self

    def __exit__(self, *_: Any) -> None:
        self._file.close()
        self._raw.close()

    def _decompressed(self) -> IO[bytes]:
        try:
            start = self._raw.read(32)
        except OSError as error:
            raise ReadError(f"{self.name}: cannot be read: {error.strerror or error}") from None
        if self._before is not None:
            self._raw.seek(0)
        else:
            self._raw = io.BufferedReader(_Joined(start, self._raw))
        if start[8:].startswith(b'{"__metadata__"'):
            raise DataError(f"{self.name}: not {self.kind} but a file of pegasos, or safetensors")
        for magic, what in _FOREIGN.items():
            if start.startswith(magic):
                raise DataError(f"{self.name}: not {self.kind} but {what}")
        for magic, opener in _OPENERS.items():
            if start.startswith(magic):
                return opener(self._raw, "rb")  # type: ignore[operator]
        return self._raw

    @property
    def is_file(self) -> bool:
        """Whether it is all there: what comes through a pipe may let one wait."""
        return self._before is not None

    def progress(self) -> tuple[int, int]:
        """Bytes of the file (as stored) read so far, and its size; (0, 0) for a pipe."""
        if self._before is None:
            return 0, 0
        with contextlib.suppress(OSError, ValueError):
            return self._raw.tell(), self._before[0]
        return 0, 0

    def __iter__(self) -> Iterator[Block]:
        rest, first = bytearray(), True
        while True:
            data, size, ended = self._fill(rest)
            if first and data[:3] == _BOM:
                data[:3] = b"   "  # blanks
            first = False
            cut = size if ended else data.rfind(b"\n", 0, size) + 1
            if cut == 0 and not ended:
                if size >= MAX_LINE:
                    raise DataError(f"{self.name}: a line of more than {MAX_LINE} bytes")
                rest = data[:size]
                continue
            rest = data[cut:size]
            if ended and cut and data[cut - 1] != 10:
                data[cut] = 10  # there is room: the file ended before the block was full
                cut += 1
            if cut:
                yield Block(data, cut)
            if ended:
                break
        self._check_unchanged()

    def reuse(self, block: Block) -> None:
        """The block is done with: its memory serves for another."""
        self._spare.append(block.data)

    def _fill(self, rest: bytearray) -> tuple[bytearray, int, bool]:
        """The rest of the last block and more; its size; whether the file has ended."""
        data = self._spare.pop() if self._spare else bytearray()
        if len(data) < max(self._block, 2 * len(rest)):
            data = bytearray(max(self._block, 2 * len(rest)))
        size = len(rest)
        data[:size] = rest
        view = memoryview(data)
        while size < len(data):
            if self._live is not None and _is_silent(self._live, data, size):
                break
            got = self._read(view[size:])
            if got == 0:
                view.release()
                return data, size, True
            size += got
        view.release()
        return data, size, False

    def _read(self, view: memoryview) -> int:
        try:
            read = "readinto" if self._live is None else "readinto1"  # what is there
            return getattr(self._file, read)(view)
        except EOFError:
            raise ReadError(f"{self.name}: the compressed file ends early") from None
        except (zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
            raise ReadError(f"{self.name}: the compressed file is damaged: {error}") from None
        except OSError as error:
            if isinstance(error, ReadError):
                raise
            at, _ = self.progress()
            cause = error.strerror or error
            raise ReadError(f"{self.name}: cannot be read at byte {at}: {cause}") from None

    def _check_unchanged(self) -> None:
        if self._before is not None and self._before != _state(self._raw):
            raise ReadError(f"{self.name}: changed while it was read; try again")


def _is_silent(pipe: IO[bytes], data: bytearray, size: int) -> bool:
    """Whether there are whole lines, and no more to read for a while."""
    if data.rfind(b"\n", 0, size) < 0:
        return False
    try:
        return not select.select([pipe], [], [], SILENCE)[0]
    except (OSError, ValueError):  # where pipes cannot be asked
        return False


class _Joined(io.RawIOBase):
    """Bytes that were read from a pipe, and the rest of it."""

    def __init__(self, start: bytes, rest: IO[bytes]):
        self._start, self._rest = start, rest

    def readable(self) -> bool:
        return True

    def readinto(self, view: Any) -> int:
        start = self._start[: len(view)] or self._rest.read1(len(view))  # type: ignore[attr-defined]
        self._start = self._start[len(view) :]
        view[: len(start)] = start
        return len(start)


def _open(path: Path) -> IO[bytes]:
    try:
        return open(path, "rb")
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise DataError(f"{path}: is a directory, not a file") from None


def _state(file: IO[bytes]) -> tuple[int, int] | None:
    """Size and time of change of a regular file."""
    with contextlib.suppress(OSError, ValueError):
        import stat

        status = os.fstat(file.fileno())
        if stat.S_ISREG(status.st_mode):
            return status.st_size, status.st_mtime_ns
    return None
