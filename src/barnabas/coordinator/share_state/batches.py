"""Ranges of offsets with one delivery state and delivery count, and how a newer list changes an older one.

Lists are sorted by offset and do not overlap. The share coordinator merges what share-partition leaders write.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple


class StateBatch(NamedTuple):
    """The state of the records from the first to the last offset, both included."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


def merged(old: Sequence[StateBatch], new: Iterable[StateBatch], *, start_offset: int) -> list[StateBatch]:
    """The old batches with the new ones applied, without offsets below ``start_offset``.

    Where both have an offset, the larger delivery count applies, and with equal counts the larger state: a write that
    arrives late does not undo a newer one. Neighbours with the same state become one batch.
    """
    result = list(old)
    for batch in sorted(new):
        if batch.last_offset >= batch.first_offset:
            result = list(_overlaid(result, batch))
    return list(_joined(_above(result, start_offset)))


def _overlaid(batches: Iterable[StateBatch], new: StateBatch) -> Iterator[StateBatch]:
    """Sorted batches with one more laid over them."""
    next_offset = new.first_offset  # first offset of the new batch that no batch has covered yet
    for old in batches:
        if old.last_offset < new.first_offset or old.first_offset > new.last_offset:
            if old.first_offset > new.last_offset and next_offset <= new.last_offset:
                yield new._replace(first_offset=next_offset)
                next_offset = new.last_offset + 1
            yield old
            continue
        if old.first_offset < new.first_offset:
            yield old._replace(last_offset=new.first_offset - 1)
        elif next_offset < old.first_offset:
            yield new._replace(first_offset=next_offset, last_offset=old.first_offset - 1)
        first, last = max(old.first_offset, new.first_offset), min(old.last_offset, new.last_offset)
        winner = max(old, new, key=lambda batch: (batch.delivery_count, batch.delivery_state))
        yield winner._replace(first_offset=first, last_offset=last)
        next_offset = last + 1
        if old.last_offset > new.last_offset:
            yield old._replace(first_offset=new.last_offset + 1)
    if next_offset <= new.last_offset:
        yield new._replace(first_offset=next_offset)


def _above(batches: Iterable[StateBatch], start_offset: int) -> Iterator[StateBatch]:
    for batch in batches:
        if batch.last_offset >= start_offset:
            yield batch._replace(first_offset=max(batch.first_offset, start_offset))


def _joined(batches: Iterable[StateBatch]) -> Iterator[StateBatch]:
    last: StateBatch | None = None
    for batch in batches:
        if last is not None and last.last_offset + 1 == batch.first_offset and last[2:] == batch[2:]:
            last = last._replace(last_offset=batch.last_offset)
            continue
        if last is not None:
            yield last
        last = batch
    if last is not None:
        yield last
