"""Joins of a stream: with another stream within a time, with a table, with a global table."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, overload

from barnabas.streams.durations import Duration, milliseconds
from barnabas.streams.errors import TopologyError
from barnabas.streams.policies import ErrorPolicy
from barnabas.streams.serdes import SerdeLike
from barnabas.streams.stream_core import StreamCore
from barnabas.streams.stream_stream_join import JoinWindows, join_streams
from barnabas.streams.topology.graph import GraphNode
from barnabas.streams.topology.operators import GlobalTableJoin, StreamTableJoin
from barnabas.streams.topology.stores import StoreSpec
from barnabas.streams.topology.writer import TopologyWriter

if TYPE_CHECKING:
    from barnabas.streams.stream import Stream
    from barnabas.streams.table import GlobalTable, Table

__all__ = ["StreamJoins"]

K = TypeVar("K")
V = TypeVar("V")
V2 = TypeVar("V2")
KG = TypeVar("KG")
R = TypeVar("R")


class StreamJoins(StreamCore[K, V]):
    """The joins of :class:`Stream`."""

    @overload
    def join(
        self,
        other: Stream[K, V2],
        joiner: Callable[[V, V2], R],
        *,
        within: Duration,
        before: Duration | None = ...,
        after: Duration | None = ...,
        grace: Duration = ...,
        value: SerdeLike[R] | None = ...,
        store: str | None = ...,
        name: str | None = ...,
        on_error: ErrorPolicy | None = ...,
    ) -> Stream[K, R]: ...
    @overload
    def join(
        self,
        other: Stream[K, V2],
        joiner: Callable[[K, V, V2], R],
        *,
        within: Duration,
        before: Duration | None = ...,
        after: Duration | None = ...,
        grace: Duration = ...,
        value: SerdeLike[R] | None = ...,
        store: str | None = ...,
        name: str | None = ...,
        on_error: ErrorPolicy | None = ...,
    ) -> Stream[K, R]: ...
    @overload
    def join(
        self,
        other: Table[K, V2],
        joiner: Callable[[V, V2], R],
        *,
        grace: Duration | None = ...,
        value: SerdeLike[R] | None = ...,
        name: str | None = ...,
        on_error: ErrorPolicy | None = ...,
    ) -> Stream[K, R]: ...
    @overload
    def join(
        self,
        other: Table[K, V2],
        joiner: Callable[[K, V, V2], R],
        *,
        grace: Duration | None = ...,
        value: SerdeLike[R] | None = ...,
        name: str | None = ...,
        on_error: ErrorPolicy | None = ...,
    ) -> Stream[K, R]: ...
    @overload
    def join(
        self,
        other: GlobalTable[KG, V2],
        joiner: Callable[[V, V2], R],
        *,
        by: Callable[[K, V], KG] | Callable[[V], KG],
        value: SerdeLike[R] | None = ...,
        name: str | None = ...,
        on_error: ErrorPolicy | None = ...,
    ) -> Stream[K, R]: ...
    @overload
    def join(
        self,
        other: GlobalTable[KG, V2],
        joiner: Callable[[K, V, V2], R],
        *,
        by: Callable[[K, V], KG] | Callable[[V], KG],
        value: SerdeLike[R] | None = ...,
        name: str | None = ...,
        on_error: ErrorPolicy | None = ...,
    ) -> Stream[K, R]: ...
    def join(self, other: Any, joiner: Callable[..., Any], **options: Any) -> Stream[K, Any]:
        """Join with a stream, a table or a global table; records without a partner give no result.

        other: a stream (needs ``within=``), a table, or a global table (needs ``by=``).
        joiner: function of the two values, or of the key and the two values.
        within: maximum difference of the timestamps of two streams; ``before`` and ``after`` replace it on one side:
            how much earlier, or later, the other record may be.
        grace: how long late records are accepted; for a table, which must be versioned then, how long records wait.
        by: function of the value, or of key and value, that returns the key in a global table.
        value: type or serde of the results.
        store: name of the window stores of a join of two streams.
        """
        return self._join(other, joiner, "inner", **options)

    @overload
    def left_join(
        self,
        other: Stream[K, V2],
        joiner: Callable[[V, V2 | None], R],
        *,
        within: Duration,
        before: Duration | None = ...,
        after: Duration | None = ...,
        grace: Duration = ...,
        value: SerdeLike[R] | None = ...,
        store: str | None = ...,
        name: str | None = ...,
        on_error: ErrorPolicy | None = ...,
    ) -> Stream[K, R]: ...
    @overload
    def left_join(
        self,
        other: Stream[K, V2],
        joiner: Callable[[K, V, V2 | None], R],
        *,
        within: Duration,
        before: Duration | None = ...,
        after: Duration | None = ...,
        grace: Duration = ...,
        value: SerdeLike[R] | None = ...,
        store: str | None = ...,
        name: str | None = ...,
        on_error: ErrorPolicy | None = ...,
    ) -> Stream[K, R]: ...
    @overload
    def left_join(
        self,
        other: Table[K, V2],
        joiner: Callable[[V, V2 | None], R],
        *,
        grace: Duration | None = ...,
        value: SerdeLike[R] | None = ...,
        name: str | None = ...,
        on_error: ErrorPolicy | None = ...,
    ) -> Stream[K, R]: ...
    @overload
    def left_join(
        self,
        other: Table[K, V2],
        joiner: Callable[[K, V, V2 | None], R],
        *,
        grace: Duration | None = ...,
        value: SerdeLike[R] | None = ...,
        name: str | None = ...,
        on_error: ErrorPolicy | None = ...,
    ) -> Stream[K, R]: ...
    @overload
    def left_join(
        self,
        other: GlobalTable[KG, V2],
        joiner: Callable[[V, V2 | None], R],
        *,
        by: Callable[[K, V], KG] | Callable[[V], KG],
        value: SerdeLike[R] | None = ...,
        name: str | None = ...,
        on_error: ErrorPolicy | None = ...,
    ) -> Stream[K, R]: ...
    @overload
    def left_join(
        self,
        other: GlobalTable[KG, V2],
        joiner: Callable[[K, V, V2 | None], R],
        *,
        by: Callable[[K, V], KG] | Callable[[V], KG],
        value: SerdeLike[R] | None = ...,
        name: str | None = ...,
        on_error: ErrorPolicy | None = ...,
    ) -> Stream[K, R]: ...
    def left_join(self, other: Any, joiner: Callable[..., Any], **options: Any) -> Stream[K, Any]:
        """Join with a stream, a table or a global table; records of this stream without a partner are joined with None.

        The arguments are those of :meth:`join`. Without a partner in another stream the result comes when the window
        closes.
        """
        return self._join(other, joiner, "left", **options)

    @overload
    def outer_join(
        self,
        other: Stream[K, V2],
        joiner: Callable[[V | None, V2 | None], R],
        *,
        within: Duration,
        before: Duration | None = ...,
        after: Duration | None = ...,
        grace: Duration = ...,
        value: SerdeLike[R] | None = ...,
        store: str | None = ...,
        name: str | None = ...,
        on_error: ErrorPolicy | None = ...,
    ) -> Stream[K, R]: ...
    @overload
    def outer_join(
        self,
        other: Stream[K, V2],
        joiner: Callable[[K, V | None, V2 | None], R],
        *,
        within: Duration,
        before: Duration | None = ...,
        after: Duration | None = ...,
        grace: Duration = ...,
        value: SerdeLike[R] | None = ...,
        store: str | None = ...,
        name: str | None = ...,
        on_error: ErrorPolicy | None = ...,
    ) -> Stream[K, R]: ...
    def outer_join(self, other: Any, joiner: Callable[..., Any], **options: Any) -> Stream[K, Any]:
        """Join with a stream; records of both sides without a partner are joined with None when their window closes.

        The arguments are those of :meth:`join`.
        """
        return self._join(other, joiner, "outer", **options)

    def _join(self, other: Any, joiner: Callable[..., Any], kind: str, **options: Any) -> Stream[K, Any]:
        from barnabas.streams.table import GlobalTable, Table

        if isinstance(other, StreamCore):
            return self._join_stream(other, joiner, kind, **options)
        if isinstance(other, Table):
            return self._join_table(other, joiner, kind, **options)
        if isinstance(other, GlobalTable):
            return self._join_global(other, joiner, kind, **options)
        raise TopologyError(f"a stream is joined with a stream, a table or a global table, not {type(other).__name__}")

    def _join_stream(
        self,
        other: StreamCore[K, Any],
        joiner: Callable[..., Any],
        kind: str,
        *,
        within: Duration,
        before: Duration | None = None,
        after: Duration | None = None,
        grace: Duration = "0ms",
        value: SerdeLike[Any] | None = None,
        store: str | None = None,
        name: str | None = None,
        on_error: ErrorPolicy | None = None,
    ) -> Stream[K, Any]:
        windows = JoinWindows(
            milliseconds(before if before is not None else within),
            milliseconds(after if after is not None else within),
            milliseconds(grace),
        )
        left: StreamCore[K, Any] = self
        right = other
        if left._repartition_required:
            left = left._repartitioned_for_join(left._name if name is None else f"{name}-left", on_error)
        if right._repartition_required:
            right = right._repartitioned_for_join(right._name if name is None else f"{name}-right", on_error)
        sources = self._graph.copartition(left._sources | right._sources)
        node, node_name = join_streams(
            self._graph, left, right, joiner, windows, kind=kind, store=store, name=name, on_error=on_error
        )
        return self._stream(node, node_name, left._key or right._key, value, sources=sources)

    def _join_table(
        self,
        other: Table[K, Any],
        joiner: Callable[..., Any],
        kind: str,
        *,
        grace: Duration | None = None,
        value: SerdeLike[Any] | None = None,
        name: str | None = None,
        on_error: ErrorPolicy | None = None,
    ) -> Stream[K, Any]:
        this: StreamCore[K, V] = self
        if self._repartition_required:
            this = self._repartitioned_for_join(name if name is not None else self._name, on_error)
        sources = self._graph.copartition(this._sources | other._sources)
        is_left = kind == "left"
        node_name = self._graph.naming.or_else(name, "KSTREAM-LEFTJOIN-" if is_left else "KSTREAM-JOIN-")
        grace_ms = None if grace is None else milliseconds(grace)
        buffer = None if grace is None else StoreSpec(f"{node_name}-Buffer", "buffer", this._key, this._value)
        operator = StreamTableJoin(other._operator, joiner, is_left, grace_ms, None if buffer is None else buffer.name)
        read = other._operator.require_rows()

        def write(writer: TopologyWriter, parents: tuple[str, ...]) -> None:
            writer.add_processor(node_name, operator, *parents, on_error=on_error)
            writer.connect(node_name, *read)
            if buffer is not None:
                _check_history(writer, node_name, read, operator.grace_ms or 0)
                writer.add_store(buffer, node_name)

        node = GraphNode(node_name, write, operator=operator, keeps_null_keys=is_left)
        self._graph.add(this._node, node)
        return self._stream(node, node_name, this._key or other._key, value, sources=sources)

    def _join_global(
        self,
        other: GlobalTable[Any, Any],
        joiner: Callable[..., Any],
        kind: str,
        *,
        by: Callable[..., Any],
        value: SerdeLike[Any] | None = None,
        name: str | None = None,
        on_error: ErrorPolicy | None = None,
    ) -> Stream[K, Any]:
        is_left = kind == "left"
        node_name = self._graph.naming.or_else(name, "KSTREAM-LEFTJOIN-")  # of an inner join too, as in Kafka
        operator = GlobalTableJoin(other.store, by, joiner, is_left)

        def write(writer: TopologyWriter, parents: tuple[str, ...]) -> None:
            writer.add_processor(node_name, operator, *parents, on_error=on_error)

        node = GraphNode(node_name, write, operator=operator, keeps_null_keys=is_left)
        self._graph.add(self._node, node)
        return self._stream(node, node_name, self._key, value, repartition_required=self._repartition_required)


def _check_history(writer: TopologyWriter, name: str, stores: tuple[str, ...], grace_ms: int) -> None:
    for store in stores:
        spec = writer.versioned(store)
        if spec is None:
            raise TopologyError(
                f"{name}: a join with a grace period needs a versioned table; pass versioned= to table()"
            )
        if spec.retention_ms < grace_ms:
            raise TopologyError(
                f"{name}: the grace period is longer than the {spec.retention_ms} ms of history of {store}"
            )
