"""What came into a topic: how much, in which batches, from how many producers; read off the log itself.

What was written since a position is read batch by batch, up to a limit in bytes; the figures are of what was read, and
include how much that was. Nothing is decompressed or decoded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from barnabas.client.offsets import Start, resolve
from barnabas.model.ids import TopicPartition
from barnabas.ops.records.batch_reader import BatchReader

if TYPE_CHECKING:
    from barnabas.client.cluster.cluster import Cluster
    from barnabas.ops.records.batch_reader import ReadBatch


async def read_batches(cluster: Cluster, name: str, start: Start, *, bytes_max: int) -> list[ReadBatch]:
    """Return the batches of a topic from ``start`` to its end, without their data, until ``bytes_max`` were read."""
    topic = await cluster.topic(name, timeout_ms=0)
    places = [TopicPartition(name, index) for index in topic.led_partitions]
    starts = await resolve(cluster, dict.fromkeys(places, start), isolation_level="read_uncommitted")
    found: list[ReadBatch] = []
    total = 0
    async for batch in BatchReader(cluster, starts, until_end=True).read():
        found.append(batch._replace(data=b""))
        total += batch.header.size_bytes
        if total >= bytes_max:
            break
    return found


def analyze(batches: Sequence[ReadBatch]) -> dict[str, Any]:
    """Figures of all batches, and of those of each partition."""
    by_partition: dict[int, list[ReadBatch]] = {}
    for batch in batches:
        by_partition.setdefault(batch.partition.partition, []).append(batch)
    return {
        **_figures(batches),
        "codecs": dict(Counter(batch.header.codec.name.lower() for batch in batches)),
        "producers": len({batch.header.producer_id for batch in batches if batch.header.producer_id >= 0}),
        "transactional_batches": sum(batch.header.is_transactional for batch in batches),
        "partitions": [{"partition": number, **_figures(each)} for number, each in sorted(by_partition.items())],
    }


def _figures(batches: Iterable[ReadBatch]) -> dict[str, Any]:
    headers = [batch.header for batch in batches]
    sizes = sorted(header.size_bytes for header in headers)
    count = sum(header.record_count for header in headers)
    first = min((header.base_timestamp for header in headers), default=0)
    last = max((header.max_timestamp for header in headers), default=0)
    seconds = max(last - first, 1) / 1000
    return {
        "records": count,
        "batches": len(headers),
        "bytes": sum(sizes),
        "span_ms": last - first,
        "records_per_second": round(count / seconds, 1) if len(headers) > 1 else None,
        "bytes_per_second": round(sum(sizes) / seconds) if len(headers) > 1 else None,
        "batch_bytes_p50": sizes[len(sizes) // 2] if sizes else None,
        "batch_bytes_max": sizes[-1] if sizes else None,
        "records_per_batch": round(count / len(headers), 1) if headers else None,
    }
