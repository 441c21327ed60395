"""The nodes of a foreign-key join of two tables.

The left side subscribes each of its rows to a row of the right side. The right side answers a subscription with its
row, and answers again when the row changes. The left side joins the answers. Subscriptions travel by the foreign
key, answers by the key of the left row, so both are repartitioned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from barnabas.streams.policies import ErrorPolicy
from barnabas.streams.serdes import SerdeLike
from barnabas.streams.topology.graph import Graph, GraphNode
from barnabas.streams.topology.operators import Operator, Sink, Source
from barnabas.streams.topology.stores import StoreSpec
from barnabas.streams.topology.table_operators import (
    ForeignTableJoin,
    ResponseJoin,
    SubscriptionJoin,
    SubscriptionReceive,
    SubscriptionSend,
    TableOperator,
    TableSource,
)
from barnabas.streams.topology.writer import TopologyWriter

if TYPE_CHECKING:
    from barnabas.streams.table_joins import TableJoins

__all__ = ["join_on_foreign_key"]

_PREFIX = "KTABLE-FK-JOIN-"
_PROCESSOR = _PREFIX + "SUBSCRIPTION-PROCESSOR-"


def _processor(name: str, operator: Operator, *stores: str, on_error: ErrorPolicy | None = None) -> GraphNode:
    def write(writer: TopologyWriter, parents: tuple[str, ...]) -> None:
        writer.add_processor(name, operator, *parents, on_error=on_error)
        writer.connect(name, *stores)

    return GraphNode(name, write)


def _source(name: str, source: Source, on_error: ErrorPolicy | None) -> GraphNode:
    return GraphNode(name, lambda writer, parents: writer.add_source(name, source, on_error))


def _sink(name: str, sink: Sink, topic: str, on_error: ErrorPolicy | None) -> GraphNode:
    def write(writer: TopologyWriter, parents: tuple[str, ...]) -> None:
        writer.add_internal_topic(topic)
        writer.add_processor(name, sink, *parents, on_error=on_error)

    return GraphNode(name, write)


def join_on_foreign_key(
    left: TableJoins[Any, Any],
    right: TableJoins[Any, Any],
    by: Callable[..., Any],
    joiner: Callable[..., Any],
    *,
    is_left: bool,
    value: SerdeLike[Any] | None,
    store: str | None,
    name: str | None,
    on_error: ErrorPolicy | None,
) -> tuple[GraphNode, str, TableOperator, frozenset[str]]:
    """Add the nodes of a join; returns the last one, its name, its operator and the sources of the result."""
    graph = left._graph
    naming = graph.naming
    right._operator.enable_old_values(force=True)
    left._operator.enable_old_values(force=True)

    topic = naming.or_else(name, _PREFIX + "SUBSCRIPTION-REGISTRATION-", "-subscription-registration") + "-topic"
    send_name = naming.or_else(name, _PREFIX + "SUBSCRIPTION-REGISTRATION-", "-subscription-registration-processor")
    sender = SubscriptionSend(by, left._value, is_left)
    send = _processor(send_name, sender, on_error=on_error)

    def set_versioned(parent: str) -> None:
        sender.is_versioned = True

    send.set_versioned = set_versioned
    graph.add(left._node, send)
    sink_name = naming.or_else(name, "KTABLE-SINK-", "-subscription-registration-sink")
    # Subscriptions carry the key of the left row: its serde is the value serde of the internal topic.
    sink = _sink(
        sink_name, Sink(topic, None, right._key, left._key, payload="subscription", is_internal=True), topic, on_error
    )
    graph.add(send, sink)
    source_name = naming.or_else(name, "KTABLE-SOURCE-", "-subscription-registration-source")
    source = Source((topic,), None, right._key, left._key, payload="subscription", is_internal=True)
    subscriptions = graph.add(sink, _source(source_name, source, on_error))
    graph.copartition(right._sources | {source_name})

    answers = _add_right_side(graph, left, right, subscriptions, name, on_error)
    return _add_result(graph, left, right, answers, joiner, is_left, value, store, name, on_error)


def _add_right_side(
    graph: Graph,
    left: TableJoins[Any, Any],
    right: TableJoins[Any, Any],
    subscriptions: GraphNode,
    name: str | None,
    on_error: ErrorPolicy | None,
) -> tuple[GraphNode, GraphNode]:
    """Add the nodes that keep and answer subscriptions; returns those that answer."""
    naming = graph.naming
    store_name = naming.or_else(name, _PREFIX + "SUBSCRIPTION-STATE-STORE-", "-subscription-store")
    spec = StoreSpec(store_name, "subscription", right._key, left._key)
    graph.add(graph.root, GraphNode(store_name, lambda writer, parents: writer.add_store(spec)))
    receive_name = naming.or_else(name, _PROCESSOR, "-subscription-receive")
    receive = graph.add(
        subscriptions, _processor(receive_name, SubscriptionReceive(store_name), store_name, on_error=on_error)
    )
    rows = right._operator.require_rows()
    join_name = naming.or_else(name, _PROCESSOR, "-subscription-join-foreign")
    answer_new = graph.add(receive, _processor(join_name, SubscriptionJoin(right._operator), *rows, on_error=on_error))
    foreign_name = naming.or_else(name, _PROCESSOR, "-foreign-join-subscription")
    operator = ForeignTableJoin(store_name)
    answer_changed = _processor(foreign_name, operator, store_name, on_error=on_error)

    def set_versioned(parent: str) -> None:
        operator.is_versioned = True

    answer_changed.set_versioned = set_versioned
    graph.add(right._node, answer_changed)
    return answer_new, answer_changed


def _add_result(
    graph: Graph,
    left: TableJoins[Any, Any],
    right: TableJoins[Any, Any],
    answers: tuple[GraphNode, GraphNode],
    joiner: Callable[..., Any],
    is_left: bool,
    value: SerdeLike[Any] | None,
    store: str | None,
    name: str | None,
    on_error: ErrorPolicy | None,
) -> tuple[GraphNode, str, TableOperator, frozenset[str]]:
    """Add the nodes that join answers with left rows, and the table of the results."""
    naming = graph.naming
    topic = naming.or_else(name, _PREFIX + "SUBSCRIPTION-RESPONSE-", "-subscription-response") + "-topic"
    sink_name = naming.or_else(name, "KTABLE-SINK-", "-subscription-response-sink")
    sink = _sink(
        sink_name, Sink(topic, None, left._key, right._value, payload="response", is_internal=True), topic, on_error
    )
    for answer in answers:
        graph.add(answer, sink)
    source_name = naming.or_else(name, "KTABLE-SOURCE-", "-subscription-response-source")
    source = Source((topic,), None, left._key, right._value, payload="response", is_internal=True)
    responses = graph.add(sink, _source(source_name, source, on_error))
    sources = graph.copartition(left._sources | {source_name})
    rows = left._operator.require_rows()
    resolver_name = naming.or_else(
        name, _PREFIX + "SUBSCRIPTION-RESPONSE-RESOLVER-PROCESSOR-", "-subscription-response-resolver"
    )
    resolver_operator = ResponseJoin(left._operator, left._value, joiner, is_left)
    resolver = _processor(resolver_name, resolver_operator, *rows, on_error=on_error)
    graph.add(responses, resolver)
    result_name = naming.or_else(name, _PREFIX + "OUTPUT-", "-result")
    store_name = store if store is not None else naming.store(_PREFIX + "OUTPUT-")
    spec = StoreSpec(store_name, "timestamped", left._key, value, is_named=store is not None)
    operator = TableSource(spec, is_materialized=store is not None)

    def write(writer: TopologyWriter, parents: tuple[str, ...]) -> None:
        writer.add_processor(result_name, operator, *parents)
        if operator.is_materialized:
            writer.add_store(spec, result_name)

    node = graph.add(resolver, GraphNode(result_name, write, is_output_versioned=False))
    return node, result_name, operator, sources
