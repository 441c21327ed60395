"""A range of a partition as Arrow batches: what a task of Spark does, in an executor's process.

The next piece is fetched and decoded while Spark takes the last one. Which ranges there are is the driver's to say.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import InputPartition

from barnabas.client.consumer import Consumer
from barnabas.client.errors import OffsetGone
from barnabas.client.offsets import EARLIEST_TIMESTAMP, Start, list_offsets
from barnabas.client.settings.client import Settings
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.model.ids import TopicPartition
from barnabas.spark.connector.link import Link, link
from barnabas.spark.connector.offsets import Range
from barnabas.spark.connector.plan import loss_sentence
from barnabas.spark.connector.source_options import SourceOptions
from barnabas.spark.errors import DataLost, ReadStalled
from barnabas.spark.processes.memory import trim

if TYPE_CHECKING:
    import pyarrow

    from barnabas.spark.connector.formats import SourceFormats

log = logging.getLogger("barnabas.spark")

FETCH_BYTES_MIN: Final = 64 * 1024
RECORD_BYTES_GUESS: Final = 1024
_record_bytes: dict[str, int] = {}  # by topic, as this process last saw them


class RangePartition(InputPartition):
    """One task's share."""

    def __init__(self, topic: str, partition: int, start: int, end: int, topic_id: str) -> None:
        super().__init__(None)
        self.topic = topic
        self.partition = partition
        self.start = start
        self.end = end
        self.topic_id = topic_id

    @classmethod
    def of(cls, whole: Range, topic_ids: dict[str, str]) -> RangePartition:
        return cls(*whole.place, whole.start, whole.end, topic_ids.get(whole.place.topic, ""))

    def __repr__(self) -> str:
        return f"{self.topic}-{self.partition}[{self.start}:{self.end}]"


def read(
    share: InputPartition, options: SourceOptions, formats: SourceFormats | None = None
) -> Iterator[pyarrow.RecordBatch]:
    if not isinstance(share, RangePartition):
        return  # Spark makes up a partition where there is none
    connection = link(ConsumerSettings, options.settings)
    reading = _Reading(connection, share, options)
    read_bytes = 0
    try:
        for batch in reading.batches():
            read_bytes += batch.nbytes
            yield batch if formats is None else formats.apply(batch)
            del batch
    finally:
        reading.close()
        trim(read_bytes)


def sized(settings: Settings, share: RangePartition) -> ConsumerSettings:
    """Settings that fetch no more of a small range than it has, by the size of the topic's records the last time."""
    assert isinstance(settings, ConsumerSettings)
    record_bytes = _record_bytes.get(share.topic, RECORD_BYTES_GUESS)
    wanted = max(FETCH_BYTES_MIN, (share.end - share.start) * record_bytes)
    if wanted >= settings.max_partition_fetch_bytes:
        return settings
    return replace(settings, max_partition_fetch_bytes=wanted)


class _Reading:
    def __init__(self, connection: Link, share: RangePartition, options: SourceOptions) -> None:
        self._link = connection
        self._share = share
        self._options = options
        self._place = TopicPartition(share.topic, share.partition)
        settings = sized(connection.settings, share)
        self._consumer = connection.call(lambda: Consumer(settings, cluster=connection.cluster))

    def batches(self) -> Iterator[pyarrow.RecordBatch]:
        link, consumer = self._link, self._consumer
        self._check_topic()
        link.run(self._assign(self._share.start))
        following = link.start(self._poll())
        while True:
            try:
                table = following.result()
            except OffsetGone:
                begin = self._begin_after_loss()
                if begin >= self._share.end:
                    return
                link.run(self._assign(begin))
                following = link.start(self._poll())
                continue
            is_last = consumer.is_at_end
            if not table.num_rows and not is_last:
                raise self._stalled()
            if not is_last:
                following = link.start(self._poll())
            if table.num_rows:
                _record_bytes[self._share.topic] = table.nbytes // table.num_rows
            yield from table.to_batches()
            if is_last:
                return

    def close(self) -> None:
        self._link.run(self._consumer.close())

    async def _assign(self, start: int) -> None:
        await self._consumer.assign({self._place: Start.at(start)}, ends={self._place: self._share.end})

    async def _poll(self) -> pyarrow.Table:
        timeout_ms = self._options.poll_timeout_ms
        return await self._consumer.poll_arrow(timeout_ms=timeout_ms, with_headers=self._options.include_headers)

    def _check_topic(self) -> None:
        """A topic of the same name that was made since the batch was planned has other records."""
        cluster, share = self._link.cluster, self._share
        found = self._link.run(cluster.topic(share.topic))
        if share.topic_id and found.id.hex() != share.topic_id:
            self._link.call(cluster.invalidate)
            found = self._link.run(cluster.topic(share.topic))
            if found.id.hex() != share.topic_id:
                self._lost(f"topic {share.topic} was deleted and made again while {share} was to be read")

    def _begin_after_loss(self) -> int:
        listed = self._link.run(list_offsets(self._link.cluster, {self._place: EARLIEST_TIMESTAMP}))
        begin = listed[self._place].offset
        share = self._share
        self._lost(f"records of {self._place} from {share.start} up to {min(begin, share.end)} are gone (retention?)")
        return max(begin, share.start)

    def _lost(self, what: str) -> None:
        if self._options.fail_on_data_loss:
            raise DataLost(loss_sentence([what]))
        log.warning("%s; failOnDataLoss=false: going on with what is there", what)

    def _stalled(self) -> ReadStalled:
        position = self._consumer.position(self._place)
        return ReadStalled(
            f"{self._place}: no records came from {position} on within kafkaConsumer.pollTimeoutMs="
            f"{self._options.poll_timeout_ms}, though the range ends at {self._share.end}"
        )
