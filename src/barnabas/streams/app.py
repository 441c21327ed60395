"""The application: the entry to the DSL. Streams and tables start here; ``topology()`` is the result."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from barnabas.streams.durations import Duration, milliseconds
from barnabas.streams.errors import TopologyError
from barnabas.streams.policies import ErrorPolicy, Fail
from barnabas.streams.serdes import SerdeLike
from barnabas.streams.stream import Stream
from barnabas.streams.table import GlobalTable, Table
from barnabas.streams.topology.description import describe, describe_execution
from barnabas.streams.topology.drawing import svg
from barnabas.streams.topology.graph import Graph, GraphNode
from barnabas.streams.topology.node import Topology
from barnabas.streams.topology.operators import Source
from barnabas.streams.topology.picture import mermaid
from barnabas.streams.topology.stores import StoreSpec
from barnabas.streams.topology.table_operators import TableSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from typing_extensions import TypeVar

    from barnabas.streams.queries.view import StoreView

    K = TypeVar("K", default=str)
    V = TypeVar("V", default=bytes)
else:
    from typing import TypeVar

    K = TypeVar("K")
    V = TypeVar("V")

__all__ = ["App"]

_ID = re.compile(r"[a-zA-Z0-9._-]{1,200}")


class App:
    """A Streams application.

    application_id: id of the application; it is the consumer group and the prefix of internal topics.
    on_error: what happens to records that cannot be read, processed or written, unless a node has its own policy.
    """

    def __init__(self, application_id: str, *, on_error: ErrorPolicy | None = None) -> None:
        if not _ID.fullmatch(application_id):
            raise TopologyError(
                f"{application_id!r} is not an application id; use letters, digits, '.', '_' and '-', at most 200"
            )
        self.application_id = application_id
        self.module: str = sys._getframe(1).f_globals.get("__name__", "")  # workers of Spark run this module again
        self.on_error: ErrorPolicy = on_error if on_error is not None else Fail()
        self._graph = Graph(application_id)
        self._topology: Topology | None = None

    def stream(
        self,
        topics: str | Sequence[str] | re.Pattern[str],
        *,
        key: SerdeLike[K] | None = None,
        value: SerdeLike[V] | None = None,
        at: Callable[[V], int] | None = None,
        name: str | None = None,
        on_error: ErrorPolicy | None = None,
    ) -> Stream[K, V]:
        """Read topics as a stream of records.

        topics: a name, several names, or a compiled pattern of names.
        key: type or serde of the keys; ``str`` by default.
        value: type or serde of the values; ``bytes`` by default.
        at: function that returns the timestamp of a record, in milliseconds, from its value.
        name: name of the source node.
        on_error: what happens to records that cannot be read.
        """
        names = (topics,) if isinstance(topics, str) else () if isinstance(topics, re.Pattern) else tuple(topics)
        pattern = topics if isinstance(topics, re.Pattern) else None
        if pattern is None and not names:
            raise TopologyError("stream() needs at least one topic")
        source_name = self._naming.or_else(name, "KSTREAM-SOURCE-")
        source = Source(names, pattern, key or str, value or bytes, at)
        node = GraphNode(
            source_name, lambda writer, parents: writer.add_source(source_name, source, on_error), operator=source
        )
        self._add(node)
        return Stream(self._graph, node, source_name, source.key, source.value, frozenset({source_name}))

    def from_dataframe(
        self,
        name: str,
        make: Callable[[SparkSession], DataFrame],
        *,
        key: SerdeLike[K] | None = None,
        value: SerdeLike[V] | None = None,
        at: Callable[[V], int] | None = None,
        partitions: int = 1,
        on_error: ErrorPolicy | None = None,
    ) -> Stream[K, V]:
        """Read a streaming DataFrame of Spark as a stream of records. In tests it is a topic of this name.

        name: name that stands for the topic.
        make: function of the Spark session that returns the DataFrame. It has the columns ``key`` and ``value``, of
            text or bytes, and may have ``timestamp`` and ``headers``; the default timestamp is the time of the batch.
        key: type or serde of the keys; ``str`` by default.
        value: type or serde of the values; ``bytes`` by default.
        at: function that returns the timestamp of a record, in milliseconds, from its value.
        partitions: number of partitions; rows are distributed by their key, as a producer does.
        on_error: what happens to records that cannot be read.
        """
        if partitions < 1:
            raise TopologyError(f"from_dataframe({name!r}): the number of partitions is at least 1, not {partitions}")
        source_name = self._naming.or_else(None, "KSTREAM-SOURCE-")
        source = Source((name,), None, key or str, value or bytes, at, frame=make, frame_partitions=partitions)
        node = GraphNode(
            source_name, lambda writer, parents: writer.add_source(source_name, source, on_error), operator=source
        )
        self._add(node)
        return Stream(self._graph, node, source_name, source.key, source.value, frozenset({source_name}))

    def table(
        self,
        topic: str,
        *,
        key: SerdeLike[K] | None = None,
        value: SerdeLike[V] | None = None,
        at: Callable[[V], int] | None = None,
        store: str | None = None,
        versioned: Duration | None = None,
        name: str | None = None,
        on_error: ErrorPolicy | None = None,
    ) -> Table[K, V]:
        """Read a topic as a table: the newest value of each key; a null value deletes the key.

        topic: name of the topic.
        key: type or serde of the keys; ``str`` by default.
        value: type or serde of the values; ``bytes`` by default.
        at: function that returns the timestamp of a record, in milliseconds, from its value.
        store: name of the store; a named store has a changelog topic.
        versioned: keep old versions of rows for this long, and join records with the row of their time.
        name: name of the node.
        on_error: what happens to records that cannot be read.
        """
        store_name = store if store is not None else self._naming.store(f"{topic}-")
        source_name = self._naming.or_else(name, "KSTREAM-SOURCE-", "-source")
        table_name = self._naming.or_else(name, "KTABLE-SOURCE-")
        source = Source((topic,), None, key or str, value or bytes, at)
        spec = StoreSpec(
            store_name,
            "timestamped" if versioned is None else "versioned",
            source.key,
            source.value,
            retention_ms=0 if versioned is None else milliseconds(versioned),
            is_named=store is not None,
        )
        operator = TableSource(spec, is_materialized=store is not None or versioned is not None)

        def write(writer: Any, parents: tuple[str, ...]) -> None:
            writer.add_source(source_name, source, on_error)
            writer.add_processor(table_name, operator, source_name)
            if operator.is_materialized:
                writer.add_store(spec, table_name)

        node = GraphNode(table_name, write, is_output_versioned=versioned is not None)
        self._add(node)
        return Table(self._graph, node, table_name, operator, source.key, source.value, frozenset({source_name}))

    def global_table(
        self,
        topic: str,
        *,
        key: SerdeLike[K] | None = None,
        value: SerdeLike[V] | None = None,
        store: str | None = None,
        name: str | None = None,
        on_error: ErrorPolicy | None = None,
    ) -> GlobalTable[K, V]:
        """Read a topic as a table of which every task has a complete copy.

        topic: name of the topic.
        key: type or serde of the keys; ``str`` by default.
        value: type or serde of the values; ``bytes`` by default.
        store: name of the store.
        name: name of the node.
        on_error: what happens to records that cannot be read.
        """
        store_name = store if store is not None else self._naming.store(f"{topic}-")
        source_name = self._naming.or_else(name, "KSTREAM-SOURCE-", "-source")
        table_name = self._naming.or_else(name, "KTABLE-SOURCE-")
        source = Source((topic,), None, key or str, value or bytes)
        spec = StoreSpec(store_name, "timestamped", source.key, source.value, is_named=store is not None)
        operator = TableSource(spec, is_materialized=True)
        self._add(
            GraphNode(
                table_name,
                lambda writer, parents: writer.add_global_store(
                    spec, source_name, source, table_name, operator, on_error
                ),
            )
        )
        return GlobalTable(self._graph, store_name)

    def topology(self) -> Topology:
        """Return the topology. Raises :class:`TopologyError` if it is not valid."""
        if self._topology is None:
            self._topology = self._graph.build()
        return self._topology

    def store(
        self,
        name: str,
        *,
        bootstrap_servers: str | Sequence[str] = "127.0.0.1:9092",
        bytes_max: int | None = None,
        **settings: Any,
    ) -> StoreView:
        """Open a named store of the running application for queries, from any machine and without Spark.

        name: name of the store. Raises :class:`StreamsError` if the application has no such named store.
        bootstrap_servers: addresses of brokers.
        bytes_max: limit of the memory for the contents that were read; 256 MiB by default.
        settings: further settings of the client, such as ``security_protocol``.
        """
        from barnabas.client.settings.client import Settings
        from barnabas.streams.queries.reader import STORE_BYTES_MAX
        from barnabas.streams.queries.view import StoreView

        servers = bootstrap_servers if isinstance(bootstrap_servers, str) else ",".join(bootstrap_servers)
        told = {name.replace("_", "."): value for name, value in settings.items()}
        known = Settings.of({"bootstrap.servers": servers} | told)
        return StoreView(self.topology(), name, known, bytes_max or STORE_BYTES_MAX)

    def describe(self) -> str:
        """Return Kafka's description of the topology, and below it how each part runs here."""
        topology = self.topology()
        return describe(topology) + "\n" + describe_execution(topology)

    def picture(self, format: Literal["mermaid", "svg"] = "mermaid") -> str:  # noqa: A002 - the common word
        """Return a picture of the topology.

        format: ``"mermaid"`` for the text of a flowchart, ``"svg"`` for a drawing.
        """
        return svg(self.topology()) if format == "svg" else mermaid(self.topology())

    @property
    def _naming(self) -> Any:
        return self._graph.naming

    def _add(self, node: GraphNode) -> None:
        self._graph.add(self._graph.root, node)
