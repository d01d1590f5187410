"""Files that appear whole or not at all.

A new file is written beside its place under another name, flushed to the disk, and put in place by
one rename. Whatever goes wrong before that leaves the old file as it was and nothing beside it.
Who is killed leaves a temporary file, which the next write to the same place removes: a writer
holds a lock on its own, and no lock outlives its process.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

try:
    import fcntl
except ImportError:  # no such locks: nothing is removed
    fcntl = None  # type: ignore[assignment]

_ABANDONED = 600.0  # seconds without a write, after which it is asked whether the writer lives
_UMASK = os.umask(0)
os.umask(_UMASK)


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], private: bool = False) -> Iterator[IO[bytes]]:
    """A binary file to write, which takes the place of `path` if all goes well.

    A symbolic link stays one: its target is replaced. Permissions of an old file are kept; a
    `private` one is for its owner alone.
    """
    place = destination(path)
    _remove_abandoned(place)
    with named(path):
        handle, temporary = tempfile.mkstemp(
            prefix=f".{place.name[:40]}.", suffix=".tmp", dir=place.parent
        )
    _lock(handle)
    try:
        with named(path), os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            if hasattr(os, "fchmod") and not private:
                os.fchmod(file.fileno(), _mode(place))
            os.fsync(file.fileno())
        with named(path):
            os.replace(temporary, place)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_directory(place.parent)


@contextlib.contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file as `replacing` gives it, or standard output for "-"."""
    if os.fspath(path) != "-":
        with replacing(path) as file:
            yield file
        return
    if sys.stdout is None:
        raise OSError("standard output is closed: name a file")
    with named("standard output"):
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()


@contextlib.contextmanager
def named(path: str | os.PathLike[str]) -> Iterator[None]:
    """An error of the disk names the file that was to be written."""
    try:
        yield
    except OSError as error:
        ours = error.filename is None or str(error.filename).endswith(".tmp")
        if ours and error.errno is not None and not isinstance(error, BrokenPipeError):
            raise OSError(error.errno, error.strerror, os.fspath(path)) from None
        raise


def destination(path: str | os.PathLike[str]) -> Path:
    """Where a file would really be written; an error if it can be foreseen that it cannot be."""
    place = Path(os.path.realpath(path))
    if place.is_dir():
        raise IsADirectoryError(21, "is a directory, not a file", os.fspath(path))
    if place.exists() and not stat.S_ISREG(place.stat().st_mode):
        raise OSError(
            22, "is a device or pipe, which cannot be replaced by a file", os.fspath(path)
        )
    if not place.parent.is_dir():
        raise FileNotFoundError(2, "its directory does not exist", os.fspath(path))
    return place


def check_writable(path: str | os.PathLike[str]) -> None:
    """Find out before a long work whether its result can be written; leaves nothing behind."""
    place = destination(path)
    if place.exists() and not os.access(place, os.W_OK):
        raise PermissionError(13, "is read-only", os.fspath(path))
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{place.name[:40]}.", dir=place.parent)
    except OSError as error:
        raise OSError(
            error.errno, f"cannot be written: {error.strerror}", os.fspath(path)
        ) from None
    os.close(handle)
    os.unlink(temporary)


def _lock(handle: int) -> bool:
    """Whether the lock of an open file is ours, until it is closed."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove_abandoned(place: Path) -> None:
    """Temporary files of this place whose writers are dead."""
    ours = re.compile(rf"\.{re.escape(place.name[:40])}\.[a-z0-9_]{{8}}\.tmp", re.DOTALL)
    with contextlib.suppress(OSError), os.scandir(place.parent) as entries:
        for entry in [entry for entry in entries if ours.fullmatch(entry.name)]:
            age = time.time() - entry.stat(follow_symlinks=False).st_mtime
            if not entry.is_file(follow_symlinks=False) or age < _ABANDONED:
                continue
            with open(entry.path, "rb") as file:
                if _lock(file.fileno()):
                    os.unlink(entry.path)


def _mode(place: Path) -> int:
    if place.exists():
        return stat.S_IMODE(place.stat().st_mode)
    return 0o666 & ~_UMASK


def _sync_directory(folder: Path) -> None:
    """Make the rename last through a loss of power, where the system can."""
    with contextlib.suppress(OSError):
        handle: Any = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
