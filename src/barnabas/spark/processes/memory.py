"""Limits what Spark's Python workers keep of the memory that a task has freed.

glibc and Arrow's allocator keep freed memory for each thread. A worker that has read a large range once would stay
large until Spark ends it. :func:`limit_arenas` runs before workers are forked (``daemon.py``), :func:`trim` at the
end of a task. Both call documented functions of glibc; with another C library, and in workers that Spark starts
itself, nothing happens.
"""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any, Final

ARENAS_MAX: Final = 2  # glibc's default is eight for each core
ARROW_POOL: Final = "ARROW_DEFAULT_MEMORY_POOL"
_M_ARENA_MAX: Final = -8  # from malloc.h
TASK_BYTES_MIN: Final = 4 * 1024 * 1024  # a task that moved less leaves nothing worth returning to the system
_limited: list[Any] = []  # glibc, if limit_arenas() has run in this process or in the one it was forked from


def limit_arenas() -> None:
    """Use few arenas, for Arrow too. Call it before any thread starts and before Arrow is imported."""
    library = _c_library()
    if library is not None:
        library.mallopt(_M_ARENA_MAX, ARENAS_MAX)
        os.environ.setdefault(ARROW_POOL, "system")
        _limited[:] = [library]


def trim(task_bytes: int) -> None:
    """Return freed memory to the system after a task that has read or written ``task_bytes``."""
    if _limited and task_bytes >= TASK_BYTES_MIN:
        _limited[0].malloc_trim(0)


def _c_library() -> Any:
    """glibc; None where the C library is another one, which has no such functions."""
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "malloc_trim") and hasattr(library, "mallopt") else None
