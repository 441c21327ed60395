"""The transactions along a log that is being cleaned: whose data is void, and which markers nobody needs any more.

Batches are told in order of their offsets, from a list of aborted transactions that was taken before; nothing is read
here. A marker is needed while a batch of its transaction is still in the log. Only ``batch_filter`` asks.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.storage.transactions import AbortedRange, Marker
from barnabas.wire.batch import TRANSACTIONAL, BatchHeader


class CleanedTransactions:
    def __init__(self, aborted: Iterable[AbortedRange]) -> None:
        # The next one to begin is the last.
        self._to_come = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
        self._aborted: dict[int, AbortedRange] = {}  # begun and not ended yet, by producer
        self._seen: set[int] = set()  # producers with a batch in the transaction that is open, whatever its end
        self.still_aborted: list[AbortedRange] = []  # those of which a batch was met: readers must know of them still

    def _advance(self, offset: int) -> None:
        while self._to_come and self._to_come[-1].first_offset <= offset:
            aborted = self._to_come.pop()
            self._aborted[aborted.producer_id] = aborted

    def is_aborted(self, header: BatchHeader) -> bool:
        """A batch of data comes by: whether its records are void."""
        if not header.attributes & TRANSACTIONAL:
            return False
        self._advance(header.last_offset)
        self._seen.add(header.producer_id)
        aborted = self._aborted.get(header.producer_id)
        # Should the marker of an aborted transaction be missing, what its producer wrote later is not void.
        return aborted is not None and header.base_offset < aborted.last_offset

    def is_over(self, header: BatchHeader, marker: Marker | None) -> bool:
        """A control batch comes by: whether nothing of the transaction that it ends was met before it."""
        self._advance(header.last_offset)
        if header.record_count == 0:
            return True
        if marker is None:
            return False
        was_seen = header.producer_id in self._seen
        self._seen.discard(header.producer_id)
        aborted = self._aborted.pop(header.producer_id, None) if marker.is_abort else None
        if aborted is not None and was_seen:
            self.still_aborted.append(aborted)
        return not was_seen
