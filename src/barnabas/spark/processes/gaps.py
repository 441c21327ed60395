"""Free memory between what processes share is taken before they are forked, so that none of them writes there.

After many imports every page of the C library's heap has gaps. A process that is forked would put its first objects
into them, one here and one there, and get a copy of each page that it touches. Once the gaps are filled, with what
nobody will ever use, its objects stand side by side on new pages. Called by ``daemon.py`` before anything is forked.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

# Large ones first: what is too small for one is left for the next. The library keeps small ones apart by their sizes.
FILLER_BYTES: Final = (*(1 << bits for bits in range(16, 10, -1)), *range(1024, 16, -16))
FILLERS_MAX: Final = 100_000  # of a size; if there are more gaps, some stay
_HEAD_BYTES: Final = 8  # that the library itself keeps in front of each


class _Heap(ctypes.Structure):
    """What ``mallinfo2`` tells; ``keepcost`` is what is free at the end of the heap."""

    _names = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")
    _fields_ = [(name, ctypes.c_size_t) for name in _names]


def fill_gaps(library: Any) -> int:
    """How many; ``library`` is glibc, or None where there is another, whose gaps are left."""
    if library is None or not hasattr(library, "mallinfo2"):  # older than 2.33
        return 0
    library.mallinfo2.restype = _Heap
    library.sbrk.restype = library.malloc.restype = ctypes.c_void_p
    free_end = library.sbrk(0) - library.mallinfo2().keepcost
    count = 0
    for size in FILLER_BYTES:
        for _ in range(FILLERS_MAX):
            place = library.malloc(ctypes.c_size_t(size - _HEAD_BYTES))
            if place is None or place >= free_end:
                break
            count += 1
    library.malloc_trim(0)
    return count
