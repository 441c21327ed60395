"""What a task does with a record that cannot be read, processed or written: fail, go on, or write a dead letter."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from barnabas.client.errors import RegistryUnreachable
from barnabas.streams.errors import ProcessingFailed
from barnabas.streams.policies import DeadLetter, ErrorPolicy, Fail
from barnabas.streams.topology.node import Node

if TYPE_CHECKING:
    from barnabas.streams.runtime.task import Task

__all__ = ["Failures", "Handler"]

_log = logging.getLogger("barnabas.streams")

# Called with the error; returns if the record is to be dropped.
Handler: TypeAlias = Callable[[Exception], None]

# Kafka's names of the headers of dead letters (KIP-1034).
EXCEPTION: Final = "__streams.errors.exception"
STACKTRACE: Final = "__streams.errors.stacktrace"
MESSAGE: Final = "__streams.errors.message"
TOPIC: Final = "__streams.errors.topic"
PARTITION: Final = "__streams.errors.partition"
OFFSET: Final = "__streams.errors.offset"


class Failures:
    """Makes the error handlers of nodes."""

    def __init__(self, task: Task, policy: ErrorPolicy) -> None:
        self._task = task
        self._policy = policy

    def handler(self, node: Node, action: str) -> Handler:
        """Return the error handler of a node.

        action: what the node was doing: ``reading``, ``processing`` or ``writing``.
        """
        policy: Any = node.on_error if node.on_error is not None else self._policy
        return lambda error: self._handle(policy, node.name, action, error)

    def uncaught(self, error: Exception) -> None:
        """Handle an error outside of functions and serdes, such as a key that cannot be a key of a store."""
        self._handle(self._policy, f"sub-topology {self._task.sub_topology.number}", "processing", error)

    def _handle(self, policy: ErrorPolicy, node: str, action: str, error: Exception) -> None:
        if isinstance(error, ProcessingFailed | RegistryUnreachable):  # the record is not at fault
            raise error
        _, partition, offset, *_ = self._task.record
        topic = self._topic()
        where = f"offset {offset} of {topic}-{partition}" if topic else "a punctuator"
        message = f"{node}: {action} {where} failed: {type(error).__name__}: {error}"
        if isinstance(policy, Fail):
            raise ProcessingFailed(message, node=node, topic=topic, partition=partition, offset=offset) from error
        self._task.drop(node)
        if isinstance(policy, DeadLetter) and topic:
            _log.warning("%s; the record is written to %s", message, policy.topic)
            self._write(policy.topic, error)
        else:
            _log.warning("%s; the record is dropped", message)

    def _topic(self) -> str:
        """Return the name that the topic of the input record has, or would have, in the cluster."""
        topic, topology = self._task.record[0], self._task.topology
        return topology.decorate(topic) if topic in topology.internal_topics else topic

    def _write(self, topic: str, error: Exception) -> None:
        from barnabas.streams.runtime.task import Row

        _, partition, offset, timestamp, key, value, headers = self._task.record
        trace = "".join(traceback.format_exception(error))
        added = (
            (EXCEPTION, f"{type(error).__module__}.{type(error).__qualname__}".encode()),
            (MESSAGE, str(error).encode()),
            (STACKTRACE, trace.encode()),
            (TOPIC, self._topic().encode()),
            (PARTITION, str(partition).encode()),
            (OFFSET, str(offset).encode()),
        )
        self._task.rows.append(Row(topic, None, key, value, (*headers, *added), timestamp))
