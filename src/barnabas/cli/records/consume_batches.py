"""``barnabas consume`` where the format or ``--print-control`` asks for what only batches say; see ``batch_reader``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from struct import Struct
from typing import Final

from barnabas.client.fetch.isolation import ABORT_MARKER
from barnabas.model.ids import TopicPartition
from barnabas.ops.records.batch_reader import BatchReader, ReadBatch
from barnabas.ops.records.format import Line
from barnabas.wire.records import Record

COMMIT_MARKER: Final = 1
_MARKER: Final = Struct(">hh")
_MARKERS: Final = {ABORT_MARKER: b"ABORT", COMMIT_MARKER: b"COMMIT"}


async def print_batches(
    reader: BatchReader,
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int] | None,
    print_lines: Callable[[list[Line]], Awaitable[bool]],
) -> None:
    """Until everything is read, or ``print_lines`` says that it is enough."""
    async for batch in reader.read():
        end = None if ends is None else ends.get(batch.partition)
        if await print_lines(list(lines_of(batch, start=starts[batch.partition], end=end))):
            return


def lines_of(batch: ReadBatch, *, start: int, end: int | None) -> Iterator[Line]:
    header, edges = batch.header, batch.edges
    for record in batch.records():
        if record.offset < start or (end is not None and record.offset >= end):
            continue
        if header.is_control:
            record = _readable(record)
        yield Line(
            *batch.partition,
            record.offset,
            record.timestamp,
            record.key,
            record.value,
            record.headers,
            leader_epoch=header.leader_epoch,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            **edges._asdict(),
        )


def _readable(marker: Record) -> Record:
    """A marker's key says what it decides; its value is the coordinator's own affair."""
    kind = _MARKER.unpack_from(marker.key)[1] if marker.key is not None and len(marker.key) >= _MARKER.size else -1
    return marker._replace(key=b"(control)", value=_MARKERS.get(kind, b"CONTROL"))
