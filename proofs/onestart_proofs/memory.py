"""Memory of a process that searches: freed columns are kept for the next block.

A block's columns are a few megabytes, freed and needed again at once. glibc gives such memory back to the system and
has to be handed zeroed pages again, which takes up to a third of a search's time.
"""

from __future__ import annotations

import ctypes
import sys

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LARGEST_MMAP_THRESHOLD = 32 << 20
_LARGEST_INT = 2**31 - 1


def keep_freed_memory() -> bool:
    """Ask the C library to keep freed memory; for programs, which own their process. False where it cannot be asked."""
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    kept = mallopt(_M_MMAP_THRESHOLD, _LARGEST_MMAP_THRESHOLD) and mallopt(_M_TRIM_THRESHOLD, _LARGEST_INT)
    return bool(kept)
