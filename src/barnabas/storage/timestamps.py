"""Finding offsets by time: the first record at or after a moment, and the youngest record of all; and times by offset.

All read headers first and unpack at most the batch that holds the answer. What of the log a client may see of it is
decided where the request is answered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from barnabas.storage.segment import Segment
from barnabas.wire.records import decode_batch

BATCHES_LOOKED_AT_MAX: Final = 100  # of which none holds a record: empty ones, and the ends of transactions


class TimestampedOffset(NamedTuple):
    offset: int
    timestamp: int
    leader_epoch: int


def offset_for_time(segments: Sequence[Segment], timestamp: int, *, start_offset: int) -> TimestampedOffset | None:
    """The first record, not below the start of the log, whose timestamp is at or after this one."""
    for segment in segments:
        if segment.largest_timestamp() >= timestamp:
            return _within(segment, timestamp, start_offset)
    return None


def _within(segment: Segment, timestamp: int, start_offset: int) -> TimestampedOffset | None:
    # Up to the entry found, nothing is younger than it; its own batch may hold the first record that is as young.
    found = segment.locate(max(segment.base_offset + segment.time_index.floor(timestamp), start_offset))
    if found is None:
        return None
    for position, header in segment.headers(found[0]):
        if header.max_timestamp < timestamp or header.last_offset < start_offset:
            continue
        for record in decode_batch(segment.read_batch(position, header.size_bytes)):
            if record.timestamp >= timestamp and record.offset >= start_offset:
                return TimestampedOffset(record.offset, record.timestamp, header.leader_epoch)
    return None


def offset_of_max_timestamp(segments: Sequence[Segment]) -> TimestampedOffset | None:
    """The first record that has the largest timestamp of the log."""
    segment = max(segments, key=lambda each: each.max_timestamp)
    if segment.max_timestamp < 0:
        return None
    found = segment.locate(segment.offset_of_max_timestamp)
    if found is None:
        return None
    for position, header in segment.headers(found[0]):
        if header.max_timestamp == segment.max_timestamp:
            for record in decode_batch(segment.read_batch(position, header.size_bytes)):
                if record.timestamp == header.max_timestamp:
                    return TimestampedOffset(record.offset, record.timestamp, header.leader_epoch)
    return None


def newest_timestamp(segments: Sequence[Segment]) -> int:
    """The largest timestamp of the log, −1 if it holds no record."""
    return max(segment.max_timestamp for segment in segments)


def time_of_record(segments: Sequence[Segment], offset: int) -> int | None:
    """The time of the first record at or after an offset, where ``segments`` begin; None if there is none near it.

    The ends of transactions are no records that anybody reads.
    """
    looked_at = 0
    for segment in segments:
        found = segment.locate(offset)
        if found is None:
            continue
        for position, header in segment.headers(found[0]):
            if looked_at >= BATCHES_LOOKED_AT_MAX:
                return None
            looked_at += 1
            if header.is_control or not header.record_count or header.last_offset < offset:
                continue
            if header.uses_append_time:
                return header.max_timestamp
            for record in decode_batch(segment.read_batch(position, header.size_bytes)):
                if record.offset >= offset:
                    return record.timestamp
    return None
