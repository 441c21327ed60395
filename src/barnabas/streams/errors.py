"""Errors of the Streams API: a topology that is not valid, a record that cannot be processed, state that is damaged."""

from __future__ import annotations

from barnabas.model.errors import BarnabasError

__all__ = ["ProcessingFailed", "StateCorrupt", "StreamsError", "TopologyError"]


class StreamsError(BarnabasError):
    """Base class of the errors of the Streams API."""


class TopologyError(StreamsError):
    """The topology is not valid: a name is used twice, topics are not co-partitioned, a type is missing."""


class ProcessingFailed(StreamsError):
    """A record could not be read, processed or written, and the error policy is to fail.

    ``node`` is the name of the node, ``topic``, ``partition`` and ``offset`` locate the input record. The original
    error is the ``__cause__``.
    """

    def __init__(self, message: str, *, node: str, topic: str | None, partition: int, offset: int) -> None:
        super().__init__(message)
        self.node = node
        self.topic = topic
        self.partition = partition
        self.offset = offset


class StateCorrupt(StreamsError):
    """A state blob cannot be restored: it is damaged, of an unknown version, or of another topology."""
