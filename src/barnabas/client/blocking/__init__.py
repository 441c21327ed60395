"""The clients without async: the same names and arguments, each call waits for its answer.

A loop in a thread of its own does the work; a call crosses over to it once, for a whole poll or batch, never for a
record. Each client is a module of its own; this one has them all, and the shortest ways to have a topic as a table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from barnabas.client import topic as topics
from barnabas.client.blocking.admin import Admin
from barnabas.client.blocking.consumer import Consumer
from barnabas.client.blocking.loop import LoopThread
from barnabas.client.blocking.producer import Producer
from barnabas.client.offsets import EARLIEST, LATEST, Start
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.model.ids import TopicPartition

if TYPE_CHECKING:
    import pyarrow

    from barnabas.client.serdes.avro import AvroSchema
    from barnabas.client.serdes.columns import TypedColumns
    from barnabas.client.serdes.registry import Registry

__all__ = ["Admin", "Consumer", "LoopThread", "Producer", "Topic", "read"]


class Topic:
    """As :class:`barnabas.client.topic.Topic`, waiting: ``Topic("orders", bootstrap_servers=…).to_arrow()``."""

    def __init__(
        self, name: str, *, bootstrap_servers: str | Sequence[str] = "127.0.0.1:9092", **settings: Any
    ) -> None:
        servers = bootstrap_servers if isinstance(bootstrap_servers, str) else ",".join(bootstrap_servers)
        self.name = name
        self.settings = ConsumerSettings.of({"bootstrap.servers": servers, **settings})

    def to_arrow(
        self,
        start: Start | Mapping[int, Start] = EARLIEST,
        end: Start | Mapping[int, Start] = LATEST,
        *,
        with_headers: bool = False,
        where: str | None = None,
    ) -> pyarrow.Table:
        thread = LoopThread()
        try:
            topic = topics.Topic(self.name, self.settings)
            return thread.run(topic.to_arrow(start, end, with_headers=with_headers, where=where))
        finally:
            thread.stop()

    def to_typed_arrow(
        self,
        reader: TypedColumns,
        start: Start | Mapping[int, Start] = EARLIEST,
        end: Start | Mapping[int, Start] = LATEST,
        *,
        skip_malformed: bool = False,
    ) -> pyarrow.Table:
        thread = LoopThread()
        try:
            topic = topics.Topic(self.name, self.settings)
            return thread.run(topic.to_typed_arrow(reader, start, end, skip_malformed=skip_malformed))
        finally:
            thread.stop()


def _typed_columns(registry: Registry | str | None, schema: AvroSchema | type, subject: str) -> TypedColumns:
    from barnabas.client.serdes.column_readers import typed_columns

    thread = LoopThread()
    try:
        return thread.run(typed_columns(registry, schema, subject))
    finally:
        thread.stop()


def read(
    topic: str,
    *,
    bootstrap_servers: str | Sequence[str] = "127.0.0.1:9092",
    start: Start | Mapping[int, Start] = EARLIEST,
    end: Start | Mapping[int, Start] = LATEST,
    ends: Mapping[TopicPartition, int] | None = None,
    with_headers: bool = False,
    where: str | None = None,
    schema: AvroSchema | type | Literal["latest"] | None = None,
    registry: Registry | str | None = None,
    on_bad_record: Literal["stop", "skip"] = "stop",
    **settings: Any,
) -> pyarrow.Table:
    """A topic as an Arrow table, from a start to an end, or to where it ends now: key, value, topic, partition, offset…

    ``ends`` has offsets to stop at, by partition. ``where`` is an expression that must hold for a row, such as
    ``'value.total > 100 && key == "ann"'``; batches that cannot contain a match are not decoded. ``settings`` are those
    of a consumer, as ``isolation_level="read_committed"``.

    With ``schema`` the values are decoded with a schema registry, and their fields become columns, beside ``_key``,
    ``_topic``, ``_partition``, ``_offset`` and ``_timestamp``. It is an Avro schema, a dataclass or struct, or
    ``"latest"`` for the latest version of the subject ``<topic>-value``, of any kind. ``registry`` is the registry or
    its URL, by default that of ``barnabas up``. ``where`` is about stored bytes: it cannot be combined with ``schema``.
    """
    if ends is not None:
        end = {place.partition: Start.at(offset) for place, offset in ends.items()}
    place = Topic(topic, bootstrap_servers=bootstrap_servers, **settings)
    if schema is not None:
        if where is not None:
            raise ValueError("where is about stored bytes: filter the table that schema gives instead")
        reader = _typed_columns(registry, schema, f"{topic}-value")
        return place.to_typed_arrow(reader, start, end, skip_malformed=on_bad_record == "skip")
    return place.to_arrow(start, end, with_headers=with_headers, where=where)
