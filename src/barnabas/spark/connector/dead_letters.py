"""Records that a source cannot decode, written to a topic of their own with the reason and their place as headers.

They are acknowledged before the batch goes on. A task that Spark repeats writes them again: at least once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from barnabas.client.producer import Producer
from barnabas.client.serdes.columns import Malformed
from barnabas.client.settings.producer import ProducerSettings
from barnabas.spark.connector.link import link

if TYPE_CHECKING:
    import pyarrow


def send_dead_letters(
    batch: pyarrow.RecordBatch, malformed: Malformed, topic: str, settings: Mapping[str, str]
) -> None:
    connection = link(ProducerSettings, settings)
    producer = connection.call(lambda: Producer(ProducerSettings.of(dict(settings)), cluster=connection.cluster))
    try:
        connection.run(_send(producer, batch, malformed, topic))
    finally:
        connection.run(producer.close())


async def _send(producer: Producer, batch: pyarrow.RecordBatch, malformed: Malformed, topic: str) -> None:
    for row, reason in malformed:
        facts = {name: str(batch.column(name)[row].as_py()) for name in ("topic", "partition", "offset")}
        headers = [(f"barnabas.{name}", text.encode()) for name, text in (facts | {"reason": reason}).items()]
        key, value = (batch.column(name)[row].as_py() for name in ("key", "value"))
        await producer.send_soon(topic, key=key, value=value, headers=headers)
    await producer.flush()
