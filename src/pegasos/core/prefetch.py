"""Software prefetch: a hint to the processor in compiled loops, nothing in plain Python."""

from typing import Any


def prefetch(array: Any, index: Any) -> None:
    """Ask for the cache line of array[index]; the index is not checked."""
