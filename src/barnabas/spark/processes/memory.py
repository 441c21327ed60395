"""What keeps Spark's processes of Python small: memory that a task has used goes back to the system when it is done.

Arrow's own allocator and the C library keep what was freed, for each thread by itself, in case it is wanted again; a
worker that has read a large range would stay large for as long as Spark keeps it. Called before workers are forked
(``daemon.py``, ``nursery.py``) and by a task at its end.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache
from typing import Any, Final

ARENAS_MAX: Final = 2  # of the C library, instead of eight for each core
ARROW_POOL: Final = "ARROW_DEFAULT_MEMORY_POOL"
_M_ARENA_MAX: Final = -8  # from malloc.h
TASK_BYTES_MIN: Final = 4 * 1024 * 1024  # of data in a task; with less there is nothing to give back


def be_frugal() -> None:
    """Before any thread is there, and before Arrow is imported, all of which then takes its memory where
    :func:`give_back` reaches it; what is told later would count for half of it."""
    library = c_library()
    if library is not None:
        library.mallopt(_M_ARENA_MAX, ARENAS_MAX)
        os.environ.setdefault(ARROW_POOL, "system")


def give_back(task_bytes: int) -> None:
    """At the end of a task that has read or written so many bytes."""
    library = c_library()
    if library is not None and task_bytes >= TASK_BYTES_MIN:
        library.malloc_trim(0)


@cache
def c_library() -> Any:
    """The C library, if it is glibc: others have no such calls, and keep less."""
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "malloc_trim") and hasattr(library, "mallopt") else None
