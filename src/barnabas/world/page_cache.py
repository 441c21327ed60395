"""What the system's page cache is asked and told about one open file.

Whoever looks at what is not cached makes the system fetch it. On the loop that is a wait for memory, a tenth of a
second where a group of processes has used up its own. So the loop asks before it looks, where the system can be asked
(``cachestat``, Linux 6.5 and later), and threads fetch.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache
from typing import Final

CACHESTAT: Final = 451  # of the system's calls, the same on nearly every kind of processor
CACHESTAT_FIGURES: Final = 5  # the first is the number of pages that are there
SYNC_FILE_RANGE_WRITE: Final = 2
RWF_NOWAIT: Final[int] = getattr(os, "RWF_NOWAIT", 0)
PRESENT_BYTES_MIN: Final = 64 * 1024  # with less than this in the cache a thread may as well fetch it all
FETCHED_BYTES_MAX: Final = 1024 * 1024  # at once, for a reader that waits for the device
READ_AHEAD_BYTES: Final = 4 * 1024 * 1024  # while what was waited for is sent

_probe = bytearray(1)  # what is read to find out whether it is cached


@cache
def _find_cachestat() -> Callable[[int, int], bool]:
    """What answers whether a byte of a file is in the cache: the system, or a look."""
    if not sys.platform.startswith("linux"):
        return _look
    import ctypes  # for the first reader of much, not for everybody who has a disk

    # The interpreter is kept: letting others run and waiting for them takes longer than the call. Two loops of one
    # process may still mix up their answers, once in a blue moon, and one of them then waits for the device.
    call = ctypes.PyDLL(None, use_errno=True).syscall
    call.argtypes = [ctypes.c_long, ctypes.c_uint, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint]
    call.restype = ctypes.c_long
    span = (ctypes.c_uint64 * 2)(0, 1)
    figures = (ctypes.c_uint64 * CACHESTAT_FIGURES)()
    span_address, figures_address = ctypes.addressof(span), ctypes.addressof(figures)

    def has_page(descriptor: int, position: int) -> bool:
        span[0] = position
        if call(CACHESTAT, descriptor, span_address, figures_address, 0):
            raise OSError(ctypes.get_errno(), "cachestat")
        return figures[0] > 0

    try:
        has_page(_nowhere(), 0)
    except OSError:  # the system is older, or whoever runs this does not allow it
        return _look
    return has_page


def _look(descriptor: int, position: int) -> bool:
    try:
        return os.preadv(descriptor, (_probe,), position, RWF_NOWAIT) == 1
    except BlockingIOError:
        return False


def _has_come(descriptor: int, position: int) -> bool:
    return is_present(descriptor, position) and _look(descriptor, position)


def can_be_asked() -> bool:
    return _find_cachestat() is not _look


def is_present(descriptor: int, position: int) -> bool:
    """Whether this byte is in the cache or on the way to it."""
    return _find_cachestat()(descriptor, position)


@cache
def _find_sync_file_range() -> Callable[[int], object] | None:
    """Linux's call that starts writing dirty pages without waiting for them; other systems have none."""
    if not sys.platform.startswith("linux"):
        return None
    import ctypes  # for the first segment that is full, not for everybody who has a disk

    function = getattr(ctypes.CDLL(None, use_errno=True), "sync_file_range", None)
    if function is None:
        return None
    function.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]
    return lambda descriptor: function(descriptor, 0, 0, SYNC_FILE_RANGE_WRITE)


@cache
def _nowhere() -> int:
    """Open until the process ends: a number that was closed and used again would get a file's bytes."""
    return os.open(os.devnull, os.O_RDWR)


def find_present(descriptor: int, position: int, size_bytes: int) -> int:
    """How many of these bytes are in the cache, from the first on: all, or half of them, and so on.

    Less than PRESENT_BYTES_MIN of many is nothing. Pages come and go in order: where the first is and the last has
    come, the rest has.
    """
    if not is_present(descriptor, position):
        return 0
    while not _has_come(descriptor, position + size_bytes - 1):
        size_bytes //= 2
        if size_bytes < PRESENT_BYTES_MIN:
            return 0
    return size_bytes


def fetch(descriptor: int, position: int, size_bytes: int) -> None:
    """Wait until the cache has this. Sent to nowhere it is waited for, and nobody copies it."""
    read_ahead(descriptor, position, size_bytes)
    end = position + size_bytes
    while position < end:
        count = os.sendfile(_nowhere(), descriptor, position, end - position)
        if count == 0:
            break
        position += count


def fill(descriptor: int, view: memoryview, position: int) -> int:
    """Read as much as there is, and wait for it; how much that was."""
    read_ahead(descriptor, position, len(view))
    filled = 0
    while filled < len(view):
        count = os.preadv(descriptor, (view[filled:],), position + filled)
        if count == 0:
            break
        filled += count
    return filled


def read_ahead(descriptor: int, position: int, size_bytes: int) -> None:
    """Let the device fetch this and what follows, and let the system fetch nothing by itself from now on.

    It would do so wherever a reader goes on, in whoever comes by; and so much at once, in such large pages, that in a
    group of processes with little memory the next append waits for a tenth of a second until there is some.
    """
    if hasattr(os, "posix_fadvise"):  # not on macOS
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
        os.posix_fadvise(descriptor, position, size_bytes + READ_AHEAD_BYTES, os.POSIX_FADV_WILLNEED)


def can_write_back() -> bool:
    return _find_sync_file_range() is not None


def write_back(descriptor: int) -> None:
    """Let the device begin to write; a hint: what it cannot write, the next fsync reports."""
    start_writing = _find_sync_file_range()
    if start_writing is not None:
        start_writing(descriptor)
