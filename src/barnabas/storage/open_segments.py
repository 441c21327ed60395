"""How many files of segments are open at once, over all logs of a store.

The active segment of a log stays open; the others are opened for readers and closed when more were used since. A file
that a reader still holds is closed later, when nobody looks at it any more. The logs call ``used`` and ``retire``.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from typing import Final

from barnabas.storage.segment import Segment
from barnabas.world.disk import File

OPEN_SEGMENTS_MAX: Final = 256
# Our own list, the loop variable and the argument of getrefcount itself.
_REFERENCES_OF_OURS: Final = 3


class OpenSegments:
    def __init__(self, count_max: int = OPEN_SEGMENTS_MAX) -> None:
        self._count_max = count_max
        self._used: OrderedDict[int, Segment] = OrderedDict()
        self._retired: list[File] = []

    def used(self, segment: Segment) -> None:
        """A segment that is not active was read: keep it open, and close the one unused for longest if need be."""
        key = id(segment)
        if key in self._used:
            self._used.move_to_end(key)
            return
        self._used[key] = segment
        if len(self._used) > self._count_max:
            self.retire(self._used.popitem(last=False)[1])

    def retire(self, segment: Segment) -> None:
        """Let go of a segment's file and close it as soon as no reader holds it."""
        self._used.pop(id(segment), None)
        file = segment.let_go()
        if file is not None:
            self._retired.append(file)
        del file  # or we would count as a reader ourselves
        self._close_unused()

    def _close_unused(self) -> None:
        kept = []
        for file in self._retired:
            if sys.getrefcount(file) > _REFERENCES_OF_OURS:
                kept.append(file)
            else:
                file.close()
        self._retired = kept

    @property
    def retired_count(self) -> int:
        """Files that are only open because somebody still reads them."""
        return len(self._retired)

    def close(self, segments: list[Segment]) -> None:
        """Close the files of these segments now, whoever holds them."""
        for segment in segments:
            self._used.pop(id(segment), None)
            segment.close()
