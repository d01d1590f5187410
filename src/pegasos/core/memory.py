"""How much memory there is."""

from __future__ import annotations

import contextlib
import os

_USUAL = 64e9  # bytes, where the system does not tell


def total_memory() -> float:
    """Bytes of this machine; inf if the system does not tell."""
    with contextlib.suppress(AttributeError, OSError, ValueError):
        pages = os.sysconf("SC_PHYS_PAGES")
        if pages > 0:
            return float(pages * os.sysconf("SC_PAGE_SIZE"))
    return float("inf")


def free_memory() -> float:
    """Bytes that nobody uses now, as far as the system tells."""
    with contextlib.suppress(OSError, ValueError), open("/proc/meminfo") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return 1024.0 * int(line.split()[1])
    return min(total_memory(), _USUAL)
