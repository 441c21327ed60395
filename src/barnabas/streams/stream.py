"""A stream of records: merge, split, write, group, process. Its other operators are in the modules beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar, overload

from barnabas.streams.grouped import GroupedStream
from barnabas.streams.policies import ErrorPolicy
from barnabas.streams.repartition import repartition
from barnabas.streams.serdes import SerdeLike
from barnabas.streams.stream_joins import StreamJoins
from barnabas.streams.stream_maps import StreamMaps
from barnabas.streams.topology.graph import GraphNode
from barnabas.streams.topology.operators import (
    Branch,
    MapRecord,
    PassThrough,
    Sink,
)
from barnabas.streams.topology.stores import StoreSpec
from barnabas.streams.topology.table_operators import TableSource

if TYPE_CHECKING:
    from barnabas.streams.processor import FixedKeyProcessor, Processor
    from barnabas.streams.table import Table

__all__ = ["Stream"]

K = TypeVar("K")
V = TypeVar("V")
K2 = TypeVar("K2")
V2 = TypeVar("V2")


class Stream(StreamMaps[K, V], StreamJoins[K, V]):
    """A stream of records with keys of type ``K`` and values of type ``V``.

    Functions get the value, or the key and the value if they have two parameters. All operators take ``name=``, the
    name of the node, and ``on_error=``, what happens to a record if the function raises an error.
    """

    def merge(self, other: Stream[K, V], *, name: str | None = None) -> Stream[K, V]:
        """Merge this stream with another one; there is no order between the two.

        other: a stream of the same types.
        """
        node_name = self._graph.naming.or_else(name, "KSTREAM-MERGE-")
        node = self._graph.add(
            (self._node, other._node),
            GraphNode(node_name, lambda writer, parents: writer.add_processor(node_name, PassThrough(), *parents)),
        )
        needed = self._repartition_required or other._repartition_required
        sources = self._sources | other._sources
        key = self._key if self._key == other._key else None
        value = self._value if self._value == other._value else None
        return Stream(self._graph, node, node_name, key, value, sources, repartition_required=needed)

    def split(
        self,
        *predicates: Callable[..., object],
        default: bool = False,
        name: str | None = None,
        on_error: ErrorPolicy | None = None,
    ) -> tuple[Stream[K, V], ...]:
        """Split the stream: each record goes to the first predicate that is true.

        predicates: functions of the value, or of key and value.
        default: also return a stream of the records for which no predicate is true; otherwise they are dropped.
        Returns one stream for each predicate, in their order, then the default stream.
        """
        branch = Branch()
        node, node_name = self._child(branch, "KSTREAM-BRANCH-", name, on_error)
        branches = [self._branch(node, branch, f"{node_name}{number}") for number in range(1, len(predicates) + 1)]
        branch.predicates = list(predicates)
        if default:
            branch.default = f"{node_name}0"
            branches.append(self._branch(node, branch, branch.default))
        return tuple(branches)

    def _branch(self, node: GraphNode, branch: Branch, name: str) -> Stream[K, V]:
        self._graph.naming.processor(name)
        branch.children.append(name)
        child = self._graph.add(
            node, GraphNode(name, lambda writer, parents: writer.add_processor(name, PassThrough(), *parents))
        )
        needed = self._repartition_required
        return Stream(self._graph, child, name, self._key, self._value, self._sources, repartition_required=needed)

    def to(
        self,
        topic: str | Callable[..., str],
        *,
        key: SerdeLike[Any] | None = None,
        value: SerdeLike[Any] | None = None,
        partitioner: Callable[[str, K, V, int], int | None] | None = None,
        name: str | None = None,
        on_error: ErrorPolicy | None = None,
    ) -> None:
        """Write the stream to a topic.

        topic: name of the topic, or a function of the value, or of key and value, that returns it.
        key, value: types or serdes; by default those of the stream.
        partitioner: function of topic, key, value and number of partitions that returns the partition; by default the
            partition is chosen by the hash of the key, as all Kafka clients do.
        """
        static = topic if isinstance(topic, str) else None
        extractor = None if isinstance(topic, str) else topic
        sink = Sink(static, extractor, key or self._key, value or self._value, partitioner)
        self._child(sink, "KSTREAM-SINK-", name, on_error)

    def to_table(
        self,
        *,
        key: SerdeLike[K] | None = None,
        value: SerdeLike[V] | None = None,
        store: str | None = None,
        name: str | None = None,
        on_error: ErrorPolicy | None = None,
    ) -> Table[K, V]:
        """Read the stream as a table: the newest value of each key; a null value deletes the key.

        key, value: types or serdes; by default those of the stream.
        store: name of the store; a named store has a changelog topic.
        """
        from barnabas.streams.table import Table

        node_name = self._graph.naming.or_else(name, "KSTREAM-TOTABLE-")
        store_name = store if store is not None else self._graph.naming.store("KSTREAM-TOTABLE-")
        key, value = key or self._key, value or self._value
        parent, sources = self._node, self._sources
        if self._repartition_required:
            parent, source = repartition(self._graph, self._node, node_name, key, value, on_error=on_error)
            sources = frozenset({source})
        spec = StoreSpec(store_name, "timestamped", key, value, is_named=store is not None)
        operator = TableSource(spec, is_materialized=store is not None)

        def write(writer: Any, parents: tuple[str, ...]) -> None:
            writer.add_processor(node_name, operator, *parents, on_error=on_error)
            if operator.is_materialized:
                writer.add_store(spec, node_name)

        node = self._graph.add(parent, GraphNode(node_name, write, is_output_versioned=False))
        return Table(self._graph, node, node_name, operator, key, value, sources)

    def repartition(
        self,
        *,
        key: SerdeLike[K] | None = None,
        value: SerdeLike[V] | None = None,
        partitions: int | None = None,
        partitioner: Callable[[str, K, V, int], int | None] | None = None,
        name: str | None = None,
        on_error: ErrorPolicy | None = None,
    ) -> Stream[K, V]:
        """Distribute the records over the tasks again, by their key.

        key, value: types or serdes; by default those of the stream.
        partitions: number of partitions; by default that of the stream's topic.
        partitioner: function of topic, key, value and number of partitions that returns the partition.
        """
        prefix = name if name is not None else self._graph.naming.processor("KSTREAM-REPARTITION-")
        key, value = key or self._key, value or self._value
        node, source = repartition(
            self._graph,
            self._node,
            prefix,
            key,
            value,
            partitions=partitions,
            partitioner=partitioner,
            on_error=on_error,
        )
        return Stream(self._graph, node, source, key, value, frozenset({source}))

    @overload
    def group_by(
        self,
        function: Callable[[V], K2],
        *,
        key: SerdeLike[K2] | None = ...,
        name: str | None = ...,
        on_error: ErrorPolicy | None = ...,
    ) -> GroupedStream[K2, V]: ...
    @overload
    def group_by(
        self,
        function: Callable[[K, V], K2],
        *,
        key: SerdeLike[K2] | None = ...,
        name: str | None = ...,
        on_error: ErrorPolicy | None = ...,
    ) -> GroupedStream[K2, V]: ...
    def group_by(
        self,
        function: Callable[..., K2],
        *,
        key: SerdeLike[K2] | None = None,
        name: str | None = None,
        on_error: ErrorPolicy | None = None,
    ) -> GroupedStream[K2, V]:
        """Group the records by a new key.

        function: function of the value, or of key and value, that returns the key of the group.
        key: type or serde of the new keys.
        name: name of the node and of the repartition.
        on_error: what happens to a record for which the function raises an error, or that cannot be repartitioned.
        """
        node, node_name = self._child(MapRecord(function, keeps_value=True), "KSTREAM-KEY-SELECT-", name, on_error)
        return GroupedStream(
            self._graph,
            node,
            node_name,
            key,
            self._value,
            self._sources,
            repartition_required=True,
            topic=name,
            on_error=on_error,
        )

    def group_by_key(self, *, name: str | None = None, on_error: ErrorPolicy | None = None) -> GroupedStream[K, V]:
        """Group the records by their key.

        name: name of the repartition, if one is needed.
        on_error: what happens to a record that cannot be repartitioned.
        """
        return GroupedStream(
            self._graph,
            self._node,
            self._name,
            self._key,
            self._value,
            self._sources,
            repartition_required=self._repartition_required,
            topic=name,
            on_error=on_error,
        )

    def process(
        self,
        processor: Callable[[], Processor[K, V, K2, V2]],
        *,
        key: SerdeLike[K2] | None = None,
        value: SerdeLike[V2] | None = None,
        stores: Iterable[str] = (),
        name: str | None = None,
        on_error: ErrorPolicy | None = None,
    ) -> Stream[K2, V2]:
        """Run a processor on each record.

        processor: a subclass of :class:`Processor`, or a function that returns an instance; called once for each task.
        key, value: types or serdes of the records that it forwards.
        stores: names of stores of other nodes that it uses besides those that it declares.
        """
        node, node_name = self._processor(processor, "KSTREAM-PROCESSOR-", tuple(stores), name, on_error)
        return Stream(self._graph, node, node_name, key, value, self._sources, repartition_required=True)

    def process_values(
        self,
        processor: Callable[[], FixedKeyProcessor[K, V, V2]],
        *,
        value: SerdeLike[V2] | None = None,
        stores: Iterable[str] = (),
        name: str | None = None,
        on_error: ErrorPolicy | None = None,
    ) -> Stream[K, V2]:
        """Run a processor on each record that cannot change the key, so no repartitioning follows.

        processor: a subclass of :class:`FixedKeyProcessor`, or a function that returns an instance.
        value: type or serde of the values that it forwards.
        stores: names of stores of other nodes that it uses besides those that it declares.
        """
        node, node_name = self._processor(
            processor, "KSTREAM-PROCESSVALUES-", tuple(stores), name, on_error, fixed=True
        )
        needed = self._repartition_required
        return Stream(self._graph, node, node_name, self._key, value, self._sources, repartition_required=needed)
