"""Builds a task's functions: one for each node, bound to its children, stores and error handler when the task is made.

A function of a stream node has the parameters ``(key, value, timestamp, headers)``. A function of a table node has
``(key, new, old, timestamp, headers, latest)``: ``old`` is None unless the table forwards old values, and ``latest`` is
False only for an out-of-order record of a versioned table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from barnabas.streams.errors import TopologyError
from barnabas.streams.runtime.buffer_store import RecordBuffer, SuppressBuffer
from barnabas.streams.runtime.failures import Handler
from barnabas.streams.runtime.key_value_store import KeyValueStore, TimestampedStore, TtlStore
from barnabas.streams.runtime.outer_join_store import OuterJoinStore
from barnabas.streams.runtime.session_store import SessionStore
from barnabas.streams.runtime.store import StateStore
from barnabas.streams.runtime.subscription_store import SubscriptionStore
from barnabas.streams.runtime.versioned_store import VersionedStore
from barnabas.streams.runtime.window_store import JoinStore, WindowStore
from barnabas.streams.topology.node import Node
from barnabas.streams.topology.stores import StoreSpec

if TYPE_CHECKING:
    from barnabas.streams.runtime.task import Decoded, InputRecord, Task

__all__ = ["Builder", "Forward", "Wiring"]

Forward: TypeAlias = Callable[..., None]
Builder: TypeAlias = Callable[["Wiring", Node, Any], Forward]


def _nothing(*_: Any) -> None:
    """Forward to no child."""


class Wiring:
    """The functions of a task while they are made."""

    def __init__(self, task: Task, partitions: Mapping[str, int], global_stores: Mapping[str, StateStore]) -> None:
        from barnabas.streams.runtime.builders import BUILDERS

        self.task = task
        self.partitions = partitions
        self.global_stores = global_stores
        self.stores: dict[str, StateStore] = {}
        self.decoders: dict[str, Callable[[list[InputRecord]], Iterator[Decoded]]] = {}
        self.pattern_decoders: list[tuple[re.Pattern[str], Callable[[list[InputRecord]], Iterator[Decoded]]]] = []
        self.processors: list[Any] = []
        self.starters: list[Callable[[], None]] = []
        self._functions: dict[str, Forward] = {}
        topology = task.topology
        for name in task.sub_topology.store_names:
            self.stores[name] = self._make_store(topology.stores[name])
        for node in reversed(task.sub_topology.nodes):
            self._functions[node.name] = BUILDERS[type(node.operator)](self, node, node.operator)
        self.processors.reverse()
        self.starters.reverse()

    def forward(self, node: Node) -> Forward:
        """Return a function that calls all children of a node, in order."""
        children = [self._functions[name] for name in node.children]
        if not children:
            return _nothing
        if len(children) == 1:
            return children[0]
        if len(children) == 2:
            first, second = children

            def to_two(*arguments: Any) -> None:
                first(*arguments)
                second(*arguments)

            return to_two

        def to_all(*arguments: Any) -> None:
            for child in children:
                child(*arguments)

        return to_all

    def child(self, name: str) -> Forward:
        """Return the function of one child."""
        return self._functions[name]

    def fail(self, node: Node, action: str = "processing") -> Handler:
        """Return the error handler of a node."""
        return self.task.failures.handler(node, action)

    def store(self, name: str) -> Any:
        """Return a store of the task, or of a global table."""
        found = self.stores.get(name)
        return found if found is not None else self.global_stores[name]

    def _make_store(self, spec: StoreSpec) -> StateStore:
        topic = self.task.topology.changelog(spec.name)
        observed = f"store:{spec.name}"
        if spec.kind == "key_value":
            return KeyValueStore(spec, topic) if spec.ttl_ms is None else TtlStore(spec, topic, self.task.clock)
        if spec.kind == "timestamped":
            return TimestampedStore(spec, topic)
        if spec.kind == "window":
            return WindowStore(spec, topic, self.task.cell(observed, -1))
        if spec.kind == "join":
            return JoinStore(spec, topic, self.task.cell(observed, -1))
        if spec.kind == "session":
            return SessionStore(spec, topic, self.task.cell(observed, -1))
        if spec.kind == "versioned":
            return VersionedStore(spec, topic, self.task.cell(observed, -1))
        if spec.kind == "outer_join":
            return OuterJoinStore(spec, topic)
        if spec.kind == "suppress":
            return SuppressBuffer(spec, topic)
        if spec.kind == "buffer":
            return RecordBuffer(spec, topic, self.task.cell(observed, 0))
        assert spec.kind == "subscription", spec.kind
        return SubscriptionStore(spec, topic)

    def partition_count(self, topic: str) -> int:
        """Return the number of partitions of a topic. Raises :class:`TopologyError` if the host did not pass it."""
        count = self.partitions.get(topic)
        if count is None:
            raise TopologyError(f"the number of partitions of {topic} is not known; the topic must exist at the start")
        return count
