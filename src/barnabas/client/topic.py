"""A topic as a table: everything between a start and an end, as Arrow columns, without an object for a record.

Starts and ends are those of ``offsets.py``: offsets, times, edges, for all partitions alike or for each. A consumer
does the reading; ``blocking.py`` has the same without async.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.consumer import Consumer
from barnabas.client.errors import Undecodable
from barnabas.client.offsets import EARLIEST, LATEST, Start, resolve
from barnabas.client.scan.table import TableSearch
from barnabas.client.settings.client import settled
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.model.ids import TopicPartition
from barnabas.wire.columns import schema

if TYPE_CHECKING:
    import pyarrow

    from barnabas.client.serdes.columns import TypedColumns

PLACES: Final = ("key", "topic", "partition", "offset", "timestamp")


class Topic:
    def __init__(self, name: str, settings: ConsumerSettings | None = None, *, cluster: Cluster | None = None) -> None:
        self.name = name
        self.settings = settled(ConsumerSettings, settings)
        self._cluster = cluster

    async def to_arrow(
        self,
        start: Start | Mapping[int, Start] = EARLIEST,
        end: Start | Mapping[int, Start] = LATEST,
        *,
        with_headers: bool = False,
        where: str | None = None,
    ) -> pyarrow.Table:
        """The rows from ``start`` up to, but not including, ``end``; LATEST is where the topic ends now.

        With a mapping of partitions, those that a start does not name are not read, and those that an end does not
        name are read to where they end now. Rows are in order within their partition. ``with_headers`` adds a column
        of headers, a list of key and value for each row. ``where`` is an expression, as of ``barnabas consume
        --filter``, that must hold for a row; InvalidExpression is raised for one that is not understood.
        """
        import pyarrow as pa

        search = None if where is None else TableSearch(where, with_headers=with_headers)
        async with Consumer(self.settings, cluster=self._cluster) as consumer:
            found = await consumer.cluster.topic(self.name)
            indexes = range(len(found.partitions)) if isinstance(start, Start) else sorted(start)
            places = [TopicPartition(self.name, index) for index in indexes]
            ends = await resolve(
                consumer.cluster,
                {place: end if isinstance(end, Start) else end.get(place.partition, LATEST) for place in places},
                isolation_level=self.settings.isolation_level,
            )
            starts = {place: start if isinstance(start, Start) else start[place.partition] for place in places}
            await consumer.assign(starts, ends=ends, probe=None if search is None else search.probe)
            if search is not None:
                return await search.read(consumer)
            tables = [schema(with_headers=with_headers).empty_table()]
            while not consumer.is_at_end:
                tables.append(await consumer.poll_arrow(with_headers=with_headers))
            return pa.concat_tables(tables)

    async def to_typed_arrow(
        self,
        reader: TypedColumns,
        start: Start | Mapping[int, Start] = EARLIEST,
        end: Start | Mapping[int, Start] = LATEST,
        *,
        skip_malformed: bool = False,
    ) -> pyarrow.Table:
        """The same rows with values of a schema registry as columns, beside ``_key``, ``_topic``, ``_partition``,
        ``_offset`` and ``_timestamp``. Raises Undecodable for the first malformed value, unless those are skipped."""
        plain = await self.to_arrow(start, end)
        return await typed_table(plain, reader, skip_malformed=skip_malformed)


async def typed_table(plain: pyarrow.Table, reader: TypedColumns, *, skip_malformed: bool = False) -> pyarrow.Table:
    """A table of records with the fields of their values as columns."""
    import pyarrow as pa

    pieces = []
    for batch in plain.to_batches() or [pa.RecordBatch.from_pylist([], schema=plain.schema)]:
        values, malformed = await reader.decode(batch.column("value"))
        if malformed and not skip_malformed:
            row, reason = malformed[0]
            place = TopicPartition(batch.column("topic")[row].as_py(), batch.column("partition")[row].as_py())
            error = Undecodable(f"{place} at offset {batch.column('offset')[row].as_py()}: {reason}")
            error.partition, error.offset = place, batch.column("offset")[row].as_py()
            raise error
        is_record = pa.types.is_struct(values.type)
        columns = dict(zip(values.type.names, values.flatten(), strict=True)) if is_record else {"value": values}
        columns |= {f"_{name}": batch.column(name) for name in PLACES}
        piece = pa.RecordBatch.from_pydict(columns)
        if malformed:
            bad = {row for row, _ in malformed}
            piece = piece.filter(pa.array([row not in bad for row in range(len(values))]))
        pieces.append(piece)
    return pa.Table.from_batches(pieces)
