"""What a follower has fetched, before it is appended: whole batches, in order, of an epoch it may take.

The bytes come from a leader that has validated them, but over a network and from its disk, so checksums and offsets
are looked at again. Only ``PartitionLog.append_as_follower`` calls this.
"""

from __future__ import annotations

from barnabas.model.errors import BarnabasError, CorruptBatch
from barnabas.wire.batch import BatchHeader, crc_matches, iterate
from barnabas.world.disk import Buffer


class UnexpectedOffset(BarnabasError):
    """The first batch starts below the end of the log: the leader's log starts in the middle of a batch."""

    def __init__(self, *, first_offset: int, last_offset: int, end_offset: int) -> None:
        super().__init__(f"offset {first_offset} was fetched for a log that ends at {end_offset}")
        self.first_offset = first_offset
        self.last_offset = last_offset


def checked_batches(records: Buffer, *, end_offset: int, leader_epoch_max: int | None) -> list[tuple[int, BatchHeader]]:
    """Position and header of each batch that may be appended to a log with this end."""
    batches: list[tuple[int, BatchHeader]] = []
    expected = end_offset
    for position, header in iterate(records):
        if leader_epoch_max is not None and header.leader_epoch > leader_epoch_max:
            # The leader changed while it answered: what comes from here on is asked for again, in the new epoch.
            break
        if not crc_matches(records, position, header):
            raise CorruptBatch(f"the batch at offset {header.base_offset} fails its checksum")
        if header.base_offset < expected:
            if not batches:
                raise UnexpectedOffset(
                    first_offset=header.base_offset, last_offset=header.last_offset, end_offset=end_offset
                )
            raise CorruptBatch(f"offset {header.base_offset} does not follow {expected - 1}")
        batches.append((position, header))
        expected = header.next_offset
    return batches
