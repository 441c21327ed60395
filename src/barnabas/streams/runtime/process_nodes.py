"""Functions of processors: the context that a processor sees, its stores, and the call for each record."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from barnabas.streams.errors import StreamsError, TopologyError
from barnabas.streams.processor import Context, Punctuator, Record, store_attributes
from barnabas.streams.runtime.session_store import ProcessorSessions, SessionStore
from barnabas.streams.runtime.store import StateStore
from barnabas.streams.runtime.versioned_store import ProcessorVersions, VersionedStore
from barnabas.streams.runtime.window_store import ProcessorWindows, WindowStore
from barnabas.streams.runtime.wiring import Forward, Wiring
from barnabas.streams.topology.node import Node
from barnabas.streams.topology.operators import Process


class TaskContext(Context):
    """The context of one processor in one task."""

    def __init__(self, wiring: Wiring, node: Node, *, is_fixed_key: bool) -> None:
        self._task = wiring.task
        self._node = node
        self._all = wiring.forward(node)
        self._children = {name: wiring.child(name) for name in node.children}
        self._fail = wiring.fail(node)
        self._is_fixed_key = is_fixed_key
        self.application_id = wiring.task.topology.application_id
        self.task = wiring.task.name
        self.is_initializing = False
        self.key: Any = None  # key of the record that is being processed

    @property
    def time(self) -> int:  # type: ignore[override]
        """Wall-clock time of the batch, in milliseconds."""
        return self._task.time_ms

    @property
    def stream_time(self) -> int:  # type: ignore[override]
        """The largest timestamp of the records of the task so far."""
        return self._task.stream_time

    @property
    def random(self) -> Random:  # type: ignore[override]
        """Random numbers that are the same if the batch is repeated."""
        return self._task.random

    @property
    def topic(self) -> str | None:  # type: ignore[override]
        """Topic of the input record; None in a punctuator."""
        return self._task.record[0] or None

    @property
    def partition(self) -> int:  # type: ignore[override]
        """Partition of the input record; -1 in a punctuator."""
        return self._task.record[1]

    @property
    def offset(self) -> int:  # type: ignore[override]
        """Offset of the input record; -1 in a punctuator."""
        return self._task.record[2]

    def forward(self, record: Record[Any, Any], to: str | None) -> None:
        key, value, timestamp, headers = record
        if self._is_fixed_key and key != self.key:
            raise StreamsError(f"{self._node.name}: a FixedKeyProcessor cannot forward another key than {self.key!r}")
        if to is None:
            self._all(key, value, timestamp, headers)
            return
        child = self._children.get(to)
        if child is None:
            names = ", ".join(self._children) or "none"
            raise StreamsError(f"{self._node.name} has no child {to!r}; its children are: {names}")
        child(key, value, timestamp, headers)

    def schedule(self, interval_ms: int, callback: Callable[[int], object], by: str) -> Punctuator:
        if not self.is_initializing:
            raise StreamsError(f"{self._node.name}: schedule() must be called in init(), so that it survives a restart")

        def call(now: int) -> None:
            try:
                callback(now)
            except Exception as error:  # noqa: BLE001 - a function of the user
                self._fail(error)

        return self._task.punctuators.add(self._node.name, interval_ms, call, by)


def _face(store: StateStore) -> Any:
    """Return a store as a processor sees it."""
    if isinstance(store, WindowStore):
        return ProcessorWindows(store)
    if isinstance(store, SessionStore):
        return ProcessorSessions(store)
    return ProcessorVersions(store) if isinstance(store, VersionedStore) else store


def build_process(wiring: Wiring, node: Node, operator: Process) -> Forward:
    """Run a processor."""
    fail = wiring.fail(node)
    processor = operator.factory()
    context = TaskContext(wiring, node, is_fixed_key=operator.is_fixed_key)
    processor.context = context
    attributes = store_attributes(type(processor))
    for attribute, spec in attributes:
        setattr(processor, attribute, _face(wiring.store(spec.name)))
    declared = {spec.name for _, spec in attributes}
    for name in operator.stores:
        if name not in declared:
            if not name.isidentifier():
                raise TopologyError(
                    f"{node.name}: the store {name!r} cannot be an attribute; declare it with store(name=)"
                )
            setattr(processor, name, _face(wiring.store(name)))

    def start() -> None:
        context.is_initializing = True
        try:
            processor.init()
        finally:
            context.is_initializing = False

    wiring.starters.append(start)
    wiring.processors.append(processor)
    process = processor.process

    def call(key: Any, value: Any, timestamp: int, headers: Any) -> None:
        context.key = key
        try:
            process(Record(key, value, timestamp, headers))
        except Exception as error:  # noqa: BLE001 - a function of the user
            fail(error)

    return call
