"""A coordinator's log, read from its start in slices small enough that replaying one does not hold up the broker.

Only whole batches are handed out, in order. The runtime reads a shard's partition with this before it serves; what the
batches mean is the shard's business.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Final

from barnabas.model.errors import CorruptBatch
from barnabas.storage.log import PartitionLog
from barnabas.storage.slices import load
from barnabas.wire.batch import BatchHeader, crc_matches, iterate
from barnabas.world.disk import FileClosed

SLICE_BYTES: Final = 64 * 1024
READS_REPEATED_MAX: Final = 100  # how often a segment may be replaced under us before something must be wrong

Batches = list[tuple[int, BatchHeader]]


async def slices(log_of: Callable[[], PartitionLog]) -> AsyncIterator[tuple[bytes, Batches]]:
    """Bytes and the batches in them (position and header), up to the log's end as it is when that is reached.

    The log is asked for each time: it may move to another directory meanwhile, and its old files vanish.
    """
    offset, repeated = log_of().log_start_offset, 0
    while offset < (log := log_of()).end_offset:
        offset = max(offset, log.log_start_offset)
        found = log.read(offset, size_bytes_max=SLICE_BYTES, end_offset_max=log.end_offset, at_least_one=True)
        if found.records is None:
            return  # compaction has removed everything from here on
        try:
            data = await load(found.records)
        except FileClosed:
            # The cleaner has put another segment in this one's place: the offset is still right.
            repeated += 1
            if repeated > READS_REPEATED_MAX:
                raise
            continue
        batches = list(iterate(data))
        if not batches:
            raise CorruptBatch(f"{log.partition}: no whole batch at offset {offset}")
        for position, header in batches:
            if not crc_matches(data, position, header):
                raise CorruptBatch(f"{log.partition}: the batch at offset {header.base_offset} fails its checksum")
        yield data, [batch for batch in batches if batch[1].last_offset >= offset]
        offset, repeated = batches[-1][1].next_offset, 0
