"""How many files of segments are open at once, over all logs of a store.

Files are opened when they are needed. Of those that were only read, the ones unused for longest are closed, with their
indexes; beyond that, of all that are open, the ones that were opened first: a log that is written opens its file again.
A file that a reader still holds is closed later, when nobody looks at it any more. The logs call ``used`` and
``retire``, their segments ``opened``.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from typing import Final

from barnabas.storage.batch_file import BatchFile
from barnabas.storage.segment import Segment
from barnabas.world.disk import File

READ_SEGMENTS_MAX: Final = 256
OPEN_SEGMENTS_MAX: Final = 1 << 16
OPEN_SEGMENTS_MIN: Final = 16  # however few files the process may have
# Our own list, the loop variable and the argument of getrefcount itself.
_REFERENCES_OF_OURS: Final = 3


class OpenSegments:
    def __init__(self, count_max: int = READ_SEGMENTS_MAX, *, open_max: int = OPEN_SEGMENTS_MAX) -> None:
        self._open_max = max(open_max, OPEN_SEGMENTS_MIN)
        self._count_max = min(count_max, self._open_max)
        self._used: OrderedDict[int, Segment] = OrderedDict()  # read, and not active
        self._open: OrderedDict[int, BatchFile] = OrderedDict()  # all, as they were opened
        self._retired: list[File] = []

    def opened(self, segment: BatchFile) -> None:
        """A segment has opened its file: close the one that was opened first if that is one too many."""
        self._open[id(segment)] = segment
        while len(self._open) > self._open_max:
            _, oldest = self._open.popitem(last=False)
            # Its indexes stay: those of an active segment know more than their files.
            file, oldest.file = oldest.file, None
            self._put_away(file)
            del file  # or we would count as a reader ourselves
            self._close_unused()

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
        self._open.pop(id(segment), None)
        file = segment.let_go()
        self._put_away(file)
        del file
        self._close_unused()

    def _put_away(self, file: File | None) -> None:
        if file is not None:
            self._retired.append(file)

    def _close_unused(self) -> None:
        kept = []
        for file in self._retired:
            if sys.getrefcount(file) > _REFERENCES_OF_OURS:
                kept.append(file)
            else:
                file.close()
        self._retired = kept

    @property
    def open_count(self) -> int:
        return len(self._open)

    @property
    def retired_count(self) -> int:
        """Files that are only open because somebody still reads them."""
        return len(self._retired)

    def close(self, segments: list[Segment]) -> None:
        """Close the files of these segments now, whoever holds them."""
        for segment in segments:
            self._used.pop(id(segment), None)
            self._open.pop(id(segment), None)
            segment.close()
