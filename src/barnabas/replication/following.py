"""What a follower does to its log: append what the leader sent, cut what the leader does not have, begin anew.

Each step leaves the log consistent and is over before anything else runs on the loop. When to take which step is
decided in :mod:`barnabas.replication.follower`; :mod:`barnabas.replication.fetcher` calls this.
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

SLICE_BYTES: Final = 512 * 1024  # appended in one go; others are served before the next slice


def slices(records: Buffer) -> Iterator[memoryview]:
    """Whole batches, in pieces that do not hold up the loop; what is cut off at the end stays with the last."""
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
    """Write batches of the leader as they are."""
    now_ms = partition.log.clock.wall_ms()
    try:
        partition.log.append_as_follower(records, leader_epoch_max=leader_epoch, now_ms=now_ms)
    except UnexpectedOffset as error:
        found = partition.log
        is_empty = found.end_offset == found.log_start_offset
        if not (is_empty and error.first_offset < found.end_offset <= error.last_offset):
            raise
        # The leader's log starts in the middle of a batch, as DeleteRecords may leave it: the whole batch comes here.
        found.truncate_fully(error.first_offset)
        found.append_as_follower(records, leader_epoch_max=leader_epoch, now_ms=now_ms)


def keep_up(partition: Partition, *, high_watermark: int, log_start_offset: int) -> None:
    """Follow the leader's high watermark, as far as this log reaches, and the start of its log."""
    found = partition.log
    if found.advance_high_watermark(high_watermark):
        partition.readers.wake()
    if log_start_offset > found.log_start_offset:
        found.delete_records(min(log_start_offset, found.high_watermark))


def cut(partition: Partition, diverged: Diverged) -> None:
    """Drop what the leader does not have."""
    found = partition.log
    offset = truncation_offset(found.epochs, found.end_offset, diverged)
    _truncate(partition, offset)


def settle(partition: Partition, *, leader_start: int, leader_end: int) -> None:
    """The leader does not have the offset where this log ends: cut it, begin anew, or simply go on."""
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
