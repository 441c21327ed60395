"""Reads a partition of a compacted topic of the application to an end: committed records, in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from barnabas.client.consumer import Consumer
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.model.ids import TopicPartition
from barnabas.spark.connector.link import Link, link

__all__ = ["READ_COMMITTED", "read_partition"]

READ_COMMITTED: Final = {"isolation.level": "read_committed", "enable.auto.commit": "false"}
POLL_MS: Final = 5_000


def read_partition(
    topic: str, partition: int, end: int, client: Mapping[str, str]
) -> Iterator[tuple[bytes, bytes | None]]:
    """Keys and values of the committed records before an offset."""
    connection = link(ConsumerSettings, dict(client) | READ_COMMITTED)
    reader = connection.call(lambda: Consumer(connection.settings, cluster=connection.cluster))  # type: ignore[arg-type]
    try:
        place = TopicPartition(topic, partition)
        connection.run(reader.assign([place], ends={place: end}))
        while not reader.is_at_end:
            yield from _polled(connection, reader)
    finally:
        connection.run(reader.close(commit=False))


def _polled(connection: Link, reader: Consumer) -> Iterator[tuple[bytes, bytes | None]]:
    for record in connection.run(reader.poll(timeout_ms=POLL_MS)):
        if record.key is not None:
            yield record.key, record.value
