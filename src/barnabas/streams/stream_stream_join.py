"""The nodes of a stream-stream join: a window store for each side, the two sides, and the merge of their results."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.streams.policies import ErrorPolicy
from barnabas.streams.topology.graph import Graph, GraphNode
from barnabas.streams.topology.operators import JoinWindow, PassThrough, StreamJoinSide
from barnabas.streams.topology.stores import StoreSpec
from barnabas.streams.topology.writer import TopologyWriter

if TYPE_CHECKING:
    from barnabas.streams.stream_core import StreamCore

__all__ = ["JoinWindows", "join_streams"]


class JoinWindows(NamedTuple):
    """How much earlier and later a record of the other side may be, and how long late records are accepted."""

    before_ms: int
    after_ms: int
    grace_ms: int


def join_streams(
    graph: Graph,
    left: StreamCore[Any, Any],
    right: StreamCore[Any, Any],
    joiner: Callable[..., Any],
    windows: JoinWindows,
    *,
    kind: str,
    store: str | None,
    name: str | None,
    on_error: ErrorPolicy | None,
) -> tuple[GraphNode, str]:
    """Add the nodes of a join of two co-partitioned streams; returns the last one with its name."""
    left_outer, right_outer = kind != "inner", kind == "outer"
    naming = graph.naming
    this_suffix = "-outer-this-join" if right_outer else "-this-join"
    other_suffix = "-outer-other-join" if left_outer else "-other-join"
    this_window = naming.or_else(name, "KSTREAM-WINDOWED-", "-this-windowed")
    other_window = naming.or_else(name, "KSTREAM-WINDOWED-", "-other-windowed")
    this_generated = naming.processor("KSTREAM-OUTERTHIS-" if right_outer else "KSTREAM-JOINTHIS-")
    other_generated = naming.processor("KSTREAM-OUTEROTHER-" if left_outer else "KSTREAM-JOINOTHER-")
    this_name = this_generated if name is None else name + this_suffix
    other_name = other_generated if name is None else name + other_suffix
    merge_name = naming.or_else(name, "KSTREAM-MERGE-", "-merge")
    size = windows.before_ms + windows.after_ms

    def window_store(generated: str, suffix: str, side: StreamCore[Any, Any]) -> StoreSpec:
        store_name = (generated if store is None else store + suffix) + "-store"
        return StoreSpec(store_name, "join", left._key or right._key, side._value, size + windows.grace_ms, size)

    this_store = window_store(this_generated, this_suffix, left)
    other_store = window_store(other_generated, other_suffix, right)
    outer_store = None
    if left_outer:
        shared = "KSTREAM-OUTERSHARED-" + this_generated.rpartition("-")[2]
        if store is not None:
            shared = store + ("-outer-shared-join" if right_outer else "-left-shared-join")
        outer_store = StoreSpec(
            f"{shared}-store", "outer_join", this_store.key, this_store.value, other_value=other_store.value
        )

    def side(*, is_left: bool) -> StreamJoinSide:
        return StreamJoinSide(
            is_left,
            other_store.name if is_left else this_store.name,
            None if outer_store is None else outer_store.name,
            left_outer if is_left else right_outer,
            windows.before_ms,
            windows.after_ms,
            windows.grace_ms,
            joiner,
            merge_name,
        )

    _add_window(graph, left._node, this_window, this_store.name)
    _add_window(graph, right._node, other_window, other_store.name)

    def write(writer: TopologyWriter, parents: tuple[str, ...]) -> None:
        writer.add_processor(this_name, side(is_left=True), this_window, on_error=on_error)
        writer.add_processor(other_name, side(is_left=False), other_window, on_error=on_error)
        writer.add_processor(merge_name, PassThrough(), this_name, other_name)
        writer.add_store(this_store, this_window, other_name)
        writer.add_store(other_store, other_window, this_name)
        if outer_store is not None:
            writer.add_store(outer_store, this_name, other_name)

    node = GraphNode(merge_name, write, keeps_null_keys=left_outer)
    return graph.add((left._node, right._node), node), merge_name


def _add_window(graph: Graph, parent: GraphNode, name: str, store: str) -> None:
    graph.add(parent, GraphNode(name, lambda writer, parents: writer.add_processor(name, JoinWindow(store), *parents)))
