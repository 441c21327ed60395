"""What a group shard is asked about share groups beyond the wire's messages, and what it answers.

The state of share-partitions is with the share coordinator, which may be on another broker. So a step that needs state
created or deleted answers with the share-partitions; the broker calls the share coordinator and reports the outcome.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.coordinator.share.group import StatePartitions, TopicStates
from barnabas.model.ids import Uuid
from barnabas.wire.messages.share_group_heartbeat import ShareGroupHeartbeatResponse


class HeartbeatResult(NamedTuple):
    response: ShareGroupHeartbeatResponse
    state_epoch: int
    to_initialize: TopicStates


class StateInitialized(NamedTuple):
    """The state of share-partitions was created."""

    group_id: str
    topics: TopicStates


class StateAbandoned(NamedTuple):
    """The state of share-partitions could not be created."""

    group_id: str
    topics: TopicStates


class ReadStates(NamedTuple):
    """Which share-partitions have state? The answer is :class:`StatePartitions`; ApiError if there is no such group."""

    group_id: str


class BeginOffsets(NamedTuple):
    """New start offsets for a group without members, which is created if it does not exist.

    The answer is the state epoch with which the state is to be created.
    """

    group_id: str
    topics: TopicStates


class BeginDeletion(NamedTuple):
    """The state of topics is to be deleted, for a group without members. ``topics`` is None for all of them.

    The answer is the :class:`TopicStates` to delete.
    """

    group_id: str
    topics: frozenset[Uuid] | None


class StateDeleted(NamedTuple):
    group_id: str
    topics: frozenset[Uuid]


ShareRequest = StateInitialized | StateAbandoned | ReadStates | BeginOffsets | BeginDeletion | StateDeleted

__all__ = [
    "BeginDeletion",
    "BeginOffsets",
    "HeartbeatResult",
    "ReadStates",
    "ShareRequest",
    "StateAbandoned",
    "StateDeleted",
    "StateInitialized",
    "StatePartitions",
]
