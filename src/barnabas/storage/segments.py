"""The segments of one log in order, never none; the last one is active.

Only the order lives here. Who adds and drops segments is the log; recovery builds the first list.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import TypeAlias

from barnabas.storage.batch_file import BatchFile
from barnabas.storage.segment import Segment

OnOpen: TypeAlias = Callable[[BatchFile], None]


class Segments:
    __slots__ = ("_bases", "_items", "_on_open", "active")

    def __init__(self, segments: list[Segment]) -> None:
        assert segments
        self._items = segments
        self._bases = [segment.base_offset for segment in segments]
        self.active = segments[-1]
        self._on_open: OnOpen | None = None

    def watch(self, on_open: OnOpen) -> None:
        """Have somebody told of every file that is opened, of these segments and of those to come."""
        self._on_open = on_open
        for segment in self._items:
            self._watch(segment)

    def _watch(self, segment: Segment) -> None:
        segment.on_open = self._on_open
        if segment.file is not None and self._on_open is not None:
            self._on_open(segment)

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: int) -> Segment:
        return self._items[index]

    def all(self) -> list[Segment]:
        return list(self._items)

    @property
    def first(self) -> Segment:
        return self._items[0]

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self._items)

    @property
    def base_offsets(self) -> list[int]:
        return list(self._bases)

    def floor_index(self, offset: int) -> int:
        """The index of the segment that an offset would lie in; the first one's for anything below it."""
        return max(0, bisect_right(self._bases, offset) - 1)

    def holds(self, segment: Segment) -> bool:
        """Whether a segment is one of these, and not one that was dropped or replaced."""
        return self._items[self.floor_index(segment.base_offset)] is segment

    def from_offset(self, offset: int) -> list[Segment]:
        """The segment that an offset would lie in and all after it."""
        return self._items[self.floor_index(offset) :]

    def end_of(self, index: int, *, end_offset: int) -> int:
        """The offset where a segment ends: where the next one begins, or the log's end."""
        return self._bases[index + 1] if index + 1 < len(self._bases) else end_offset

    def add(self, segment: Segment) -> None:
        assert segment.base_offset > self._bases[-1]
        self._items.append(segment)
        self._bases.append(segment.base_offset)
        self.active = segment
        self._watch(segment)

    def replace_all(self, segment: Segment) -> list[Segment]:
        """Begin again with one segment; the old ones are the answer."""
        dropped = self._items
        self._items, self._bases, self.active = [segment], [segment.base_offset], segment
        self._watch(segment)
        return dropped

    def replace(self, old: Sequence[Segment], new: Segment) -> None:
        """Put one closed segment in the place of some that follow each other."""
        start = self._bases.index(new.base_offset)
        end = start + len(old)
        assert self._items[start:end] == list(old)
        assert end < len(self._items)
        self._items[start:end], self._bases[start:end] = [new], [new.base_offset]
        self._watch(new)

    def drop_first(self, count: int) -> list[Segment]:
        assert count < len(self._items)
        dropped = self._items[:count]
        del self._items[:count], self._bases[:count]
        return dropped

    def drop_from(self, index: int) -> list[Segment]:
        """Drop a segment, which is not the first, and all after it."""
        assert index > 0
        dropped = self._items[index:]
        del self._items[index:], self._bases[index:]
        self.active = self._items[-1]
        return dropped
