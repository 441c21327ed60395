"""What is measured: six kinds of work, and the records that all sides read."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import pyarrow

__all__ = ["PARTITIONS", "WORKLOADS", "Workload", "batches", "probe"]

PARTITIONS: Final = 4
CHUNK_RECORDS: Final = 50_000
RECORDS_PER_MS: Final = 10  # of event time: a million records are 100 s
START_MS: Final = 1_700_000_000_000
PADDING: Final = "x" * 60


class Workload(NamedTuple):
    """One kind of work. ``right`` is what its second topic has: nothing, a row for each key, or a stream."""

    name: str
    right: str  # "", "rows" or "stream"
    has_latency: bool  # results have the time at which the record of the first topic was sent
    is_stateful: bool = True


WORKLOADS: Final = {
    each.name: each
    for each in (
        Workload("map-filter", "", has_latency=True, is_stateful=False),
        Workload("count", "", has_latency=False),
        Workload("windowed-count", "", has_latency=False),
        Workload("stream-table", "rows", has_latency=True),
        Workload("table-table", "rows", has_latency=True),
        Workload("stream-stream", "stream", has_latency=False),
    )
}


def probe(amount: int, sent_ms: int) -> bytes:
    """The value of a record: 100 bytes of JSON."""
    return f'{{"amount":{amount},"sent":{sent_ms},"text":"{PADDING}"}}'.encode()


def batches(workload: Workload, records: int, keys: int) -> Iterator[tuple[str, pyarrow.Table]]:
    """The input, as topics and tables of records, in the order in which it is produced."""
    if workload.right == "rows":
        for start in range(0, keys, CHUNK_RECORDS):
            yield "right", _table(range(start, min(keys, start + CHUNK_RECORDS)), start, at=START_MS)
    random = Random(1)
    for start in range(0, records, CHUNK_RECORDS):
        count = min(CHUNK_RECORDS, records - start)
        for topic in ("left", "right") if workload.right == "stream" else ("left",):
            chosen = [random.randrange(keys) for _ in range(count)]
            yield topic, _table(chosen, start)


def _table(keys: range | list[int], start: int, at: int | None = None) -> pyarrow.Table:
    import pyarrow as pa

    numbers = range(start, start + len(keys))
    times = [START_MS + number // RECORDS_PER_MS if at is None else at for number in numbers]
    return pa.table(
        {
            "key": pa.array([f"key-{key}".encode() for key in keys]),
            "value": pa.array([probe(number % 100, 0) for number in numbers]),
            "timestamp": pa.array(times, pa.timestamp("ms", tz="UTC")),
        }
    )
