"""A topic as a table: everything between a start and an end, as Arrow columns, without an object for a record.

Starts and ends are those of ``offsets.py``: offsets, times, edges, for all partitions alike or for each. A consumer
does the reading; ``blocking.py`` has the same without async.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.consumer import Consumer
from barnabas.client.offsets import EARLIEST, LATEST, Start, resolve
from barnabas.client.scan.table import TableSearch
from barnabas.client.settings.client import settled
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.model.ids import TopicPartition
from barnabas.wire.columns import schema

if TYPE_CHECKING:
    import pyarrow


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
