"""The changes of a follower to its log: append the leader's batches, truncate, or start over.

Each step leaves the log consistent and runs without a pause. :mod:`barnabas.replication.follower` decides which step to
take; :mod:`barnabas.replication.fetcher` calls this module.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from barnabas.observe.log import logger
from barnabas.replication.follower import CutTo, Diverged, StartOver, relocate, truncation_offset
from barnabas.replication.partition import Partition
from barnabas.storage.log import UnexpectedOffset
from barnabas.wire.batch import iterate
from barnabas.world.disk import Buffer

log = logger("follower")

SLICE_BYTES: Final = 512 * 1024  # bytes appended at once, before the loop serves other connections


def slices(records: Buffer) -> Iterator[memoryview]:
    """Split records into pieces of whole batches; an incomplete batch at the end stays with the last piece."""
    view = memoryview(records)
    start = 0
    if len(view) > SLICE_BYTES:
        for position, header in iterate(view):
            end = position + header.size_bytes
            if end - start >= SLICE_BYTES:
                yield view[start:end]
                start = end
    if start < len(view):
        yield view[start:]


def append(partition: Partition, records: Buffer, *, leader_epoch: int) -> None:
    """Append batches of the leader without changes."""
    now_ms = partition.log.clock.wall_ms()
    try:
        partition.log.append_as_follower(records, leader_epoch_max=leader_epoch, now_ms=now_ms)
    except UnexpectedOffset as error:
        found = partition.log
        is_empty = found.end_offset == found.log_start_offset
        if not (is_empty and error.first_offset < found.end_offset <= error.last_offset):
            raise
        # The leader's log starts within a batch, as after DeleteRecords; the leader sends the whole batch.
        found.truncate_fully(error.first_offset)
        found.append_as_follower(records, leader_epoch_max=leader_epoch, now_ms=now_ms)


def keep_up(partition: Partition, *, high_watermark: int, log_start_offset: int) -> None:
    """Follow the leader's high watermark, up to the end of this log, and its log start offset."""
    found = partition.log
    if found.advance_high_watermark(high_watermark):
        partition.readers.wake()
    if log_start_offset > found.log_start_offset:
        found.delete_records(min(log_start_offset, found.high_watermark))


def cut(partition: Partition, diverged: Diverged) -> None:
    """Truncate the records that the leader does not have."""
    found = partition.log
    offset = truncation_offset(found.epochs, found.end_offset, diverged)
    _truncate(partition, offset)


def settle(partition: Partition, *, leader_start: int, leader_end: int) -> None:
    """The leader does not have the end offset of this log: truncate it, start over, or continue."""
    found = partition.log
    step = relocate(found.end_offset, leader_start=leader_start, leader_end=leader_end)
    if isinstance(step, StartOver):
        log.warning("log begins anew", partition=partition.id, end_offset=found.end_offset, leader_start=step.offset)
        found.truncate_fully(step.offset)
    elif isinstance(step, CutTo):
        _truncate(partition, step.offset)


def _truncate(partition: Partition, offset: int) -> None:
    found = partition.log
    if offset < found.high_watermark:
        log.warning(
            "log is cut below its high watermark",
            partition=partition.id,
            offset=offset,
            high_watermark=found.high_watermark,
        )
    log.info("log is cut", partition=partition.id, offset=offset, end_offset=found.end_offset)
    found.truncate_to(offset)
