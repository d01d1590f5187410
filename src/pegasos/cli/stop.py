"""Signals that end a command, and locks that die with it."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from pegasos.data.atomic import named

STOPPING = [signal.SIGINT, signal.SIGTERM]
if hasattr(signal, "SIGHUP"):
    STOPPING.append(signal.SIGHUP)


class Terminated(BaseException):
    """A signal asks the program to end; what is half-written is cleaned up on the way out."""

    def __init__(self, number: int, words: str = ""):
        name = "interrupted" if number == signal.SIGINT else "ended by a signal"
        super().__init__(f"{name}; {words}" if words else name)
        self.code = 128 + number


def _end(number: int, _: FrameType | None) -> None:
    raise Terminated(number)


def hear_signals() -> None:
    """Let TERM and HUP end the program by an exception, as Python does for Ctrl-C.

    One that was ignored when the program started stays ignored.
    """
    for number in STOPPING:
        with contextlib.suppress(ValueError):  # not the main thread
            if signal.getsignal(number) == signal.SIG_DFL:
                signal.signal(number, _end)


@contextlib.contextmanager
def locked(path: Path | None) -> Iterator[None]:
    """Keep other runs away from a file; a lock of a dead process does not count."""
    try:
        import fcntl
    except ImportError:
        path = None
    if path is None:
        yield
        return
    place = path.with_name(path.name + ".lock")
    while True:
        file = open(place, "a+")  # noqa: SIM115
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            holder = file.read().strip() or "another process"
            file.close()
            raise OSError(f"{path}: in use by process {holder}") from None
        if place.exists() and os.fstat(file.fileno()).st_ino == place.stat().st_ino:
            break
        file.close()  # removed by its holder in the meantime
    try:
        with named(path):
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
        yield
    finally:
        place.unlink(missing_ok=True)
        file.close()
