"""Rows of offsets around a share-partition: what the log has, what members acknowledge, what they have acquired."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from barnabas.broker.share.records import Acknowledge, Acknowledgement, Acquired, Limits, LogBatch, Range

THROTTLE_FROM_MIN: Final = 2  # delivery count from which on records are delivered in smaller portions, at least


def throttle_from(limits: Limits) -> int:
    """The delivery count from which on records are delivered in smaller and smaller portions."""
    return max(THROTTLE_FROM_MIN, math.ceil(limits.deliveries_max / 2))


def runs(batches: Sequence[LogBatch], offset: int) -> list[LogBatch]:
    """All offsets from one on as runs: delivered ones, and gaps and batches that are not delivered."""
    found: list[LogBatch] = []
    next_offset = offset
    for batch in batches:
        if batch.last < next_offset:
            continue
        for first, last, is_delivered in (
            (next_offset, batch.first - 1, False),
            (max(next_offset, batch.first), batch.last, batch.is_delivered),
        ):
            if first > last:
                continue
            if found and found[-1].is_delivered is is_delivered:
                found[-1] = LogBatch(found[-1].first, last, is_delivered)
            else:
                found.append(LogBatch(first, last, is_delivered))
        next_offset = batch.last + 1
    return found


def parts(row: Acknowledgement) -> Iterator[tuple[int, int, Acknowledge]]:
    """The runs of one acknowledge type in a row."""
    if len(row.types) == 1:
        yield row.first, row.last, Acknowledge(row.types[0])
        return
    first = row.first
    for place, kind in enumerate(row.types):
        if place + 1 == len(row.types) or row.types[place + 1] != kind:
            yield first, row.first + place, Acknowledge(kind)
            first = row.first + place + 1


def acquired_rows(taken: Sequence[Range], batches: Sequence[LogBatch], batch_size: int | None) -> Iterator[Acquired]:
    """What a member has acquired, neighbours together; cut at batches of the log into rows of about ``batch_size``."""
    joined: list[Acquired] = []
    for each in taken:
        if joined and joined[-1].last + 1 == each.first and joined[-1].delivery_count == each.delivery_count:
            joined[-1] = joined[-1]._replace(last=each.last)
        else:
            joined.append(Acquired(each.first, each.last, each.delivery_count))
    for row in joined:
        first = row.first
        if batch_size is not None and row.last - row.first + 1 > batch_size:
            for batch in batches:
                if first < batch.first <= row.last and batch.first - first >= batch_size:
                    yield Acquired(first, batch.first - 1, row.delivery_count)
                    first = batch.first
        yield Acquired(first, row.last, row.delivery_count)
