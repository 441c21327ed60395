"""The batches of a partition's log for a share group: their offsets, and which of them are delivered."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from barnabas.broker.share.records import Acquired, LogBatch
from barnabas.replication.partition import Partition
from barnabas.storage.slices import load
from barnabas.storage.transactions import AbortedTransaction, read_marker
from barnabas.wire.batch import BatchHeader, iterate

READ_BYTES: Final = 256 * 1024  # size of one read; a larger batch is read as a whole


class ReadBatches(NamedTuple):
    data: bytes
    places: list[tuple[int, BatchHeader]]
    batches: list[LogBatch]

    def of(self, acquired: Sequence[Acquired]) -> bytes:
        """The bytes of the batches that have acquired records."""
        rows, parts = deque(acquired), []
        start = end = 0
        for position, header in self.places:
            while rows and rows[0].last < header.base_offset:
                rows.popleft()
            if not rows:
                break
            if rows[0].first > header.last_offset:
                continue
            if position != end:
                parts.append(self.data[start:end])
                start = position
            end = position + header.size_bytes
        parts.append(self.data[start:end])
        return parts[0] if len(parts) == 1 else b"".join(parts)


async def read_batches(
    partition: Partition, offset: int, *, size_bytes_max: int, is_committed_only: bool
) -> ReadBatches | None:
    """Whole batches from the one that holds an offset on; None if there are none that may be read."""
    end_offset = partition.readable_end(is_committed_only=is_committed_only)
    found = partition.read(
        offset, size_bytes_max=min(size_bytes_max, READ_BYTES), end_offset_max=end_offset, at_least_one=True
    )
    if found.records is None:
        return None
    aborted = partition.log.aborted_transactions(offset, found.next_offset_bound) if is_committed_only else []
    data = await load(found.records)
    places = [place for place in iterate(data) if offset <= place[1].last_offset < end_offset]
    return ReadBatches(data, places, _batches(data, places, aborted)) if places else None


def _batches(
    data: bytes, places: Sequence[tuple[int, BatchHeader]], aborted: Sequence[AbortedTransaction]
) -> list[LogBatch]:
    waiting = deque(sorted(aborted, key=lambda each: each.first_offset))
    void: set[int] = set()  # producers whose records belong to an aborted transaction
    batches = []
    for position, header in places:
        while waiting and waiting[0].first_offset <= header.last_offset:
            void.add(waiting.popleft().producer_id)
        is_void = header.is_transactional and header.producer_id in void
        if header.is_control and is_void:
            marker = read_marker(data, position, header)
            if marker is not None and marker.is_abort:
                void.discard(header.producer_id)
        batches.append(LogBatch(header.base_offset, header.last_offset, not header.is_control and not is_void))
    return batches
