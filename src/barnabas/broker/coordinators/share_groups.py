"""Requests about share groups that need the group coordinator and the share coordinator, one after the other.

The group coordinator decides which share-partitions need state; the share coordinator, on any broker, creates and
deletes it; then the group coordinator writes down that it is done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from barnabas.broker.requests.services import Services
from barnabas.coordinator.groups.requests import GroupRequest, ProtocolRequest
from barnabas.coordinator.share.group import ShareGroup, StatePartitions, TopicState, TopicStates
from barnabas.coordinator.share.requests import (
    BeginDeletion,
    BeginOffsets,
    HeartbeatResult,
    ReadStates,
    ShareRequest,
    StateAbandoned,
    StateDeleted,
    StateInitialized,
)
from barnabas.coordinator.share_state.records import SharePartitionKey
from barnabas.coordinator.share_state.requests import UNINITIALIZED_OFFSET
from barnabas.metadata.features_image import SHARE_VERSION
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import Uuid
from barnabas.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

Offsets = Mapping[tuple[Uuid, int], int]
Errors = dict[tuple[Uuid, int], ApiError]
NO_OFFSETS: Offsets = {}


def check_enabled(broker: Services) -> None:
    """UNSUPPORTED_VERSION unless the feature ``share.version`` is on in the cluster."""
    if not broker.image.features.get(SHARE_VERSION, 0):
        raise ApiError(errors.UNSUPPORTED_VERSION, f"the feature {SHARE_VERSION} is off in this cluster")


async def heartbeat(broker: Services, request: GroupRequest) -> ShareGroupHeartbeatResponse:
    """Answer a heartbeat. State that the member's topics need is created first, so that the answer assigns them."""
    message = request.message
    assert isinstance(message, ShareGroupHeartbeatRequest)
    result: HeartbeatResult = await broker.groups.ask(message.group_id, request)
    if not result.to_initialize:
        return result.response
    await initialize(broker, message.group_id, result.to_initialize, state_epoch=result.state_epoch)
    again = ShareGroupHeartbeatRequest(
        group_id=message.group_id,
        member_id=message.member_id,
        member_epoch=result.response.member_epoch,
        subscribed_topic_names=message.subscribed_topic_names,
    )
    result = await broker.groups.ask(message.group_id, request._replace(message=again))
    return result.response


async def initialize(
    broker: Services, group_id: str, topics: TopicStates, *, state_epoch: int, offsets: Offsets = NO_OFFSETS
) -> Errors:
    """Create the state of share-partitions and report it; the answer has the share-partitions that failed."""
    pairs = _pairs(topics)
    outcomes = await asyncio.gather(
        *(
            broker.persister.initialize(
                SharePartitionKey(group_id, *pair),
                state_epoch=state_epoch,
                start_offset=offsets.get(pair, UNINITIALIZED_OFFSET),
            )
            for pair in pairs
        ),
        return_exceptions=True,
    )
    failed = _errors(pairs, outcomes)
    done = _states(topics, (pair for pair in pairs if pair not in failed))
    if done:
        await ask(broker, StateInitialized(group_id, done))
    if failed:
        await ask(broker, StateAbandoned(group_id, _states(topics, failed)))
    return failed


async def states(broker: Services, group_id: str) -> StatePartitions:
    """The share-partitions of a group that have state; ApiError if there is no such share group here."""
    found: StatePartitions = await ask(broker, ReadStates(group_id))
    return found


async def alter(broker: Services, group_id: str, topics: TopicStates, offsets: Offsets) -> Errors:
    """Set start offsets of a group without members."""
    state_epoch: int = await ask(broker, BeginOffsets(group_id, topics))
    return await initialize(broker, group_id, topics, state_epoch=state_epoch, offsets=offsets)


async def delete(broker: Services, group_id: str, topics: frozenset[Uuid] | None) -> Errors:
    """Delete the state of topics, or of all topics, of a group without members."""
    to_delete: TopicStates = await ask(broker, BeginDeletion(group_id, topics))
    pairs = _pairs(to_delete)
    outcomes = await asyncio.gather(
        *(broker.persister.delete(SharePartitionKey(group_id, *pair)) for pair in pairs), return_exceptions=True
    )
    failed = _errors(pairs, outcomes)
    done = frozenset(to_delete) - {topic for topic, _ in failed}
    if done:
        await ask(broker, StateDeleted(group_id, done))
    return failed


async def ask(broker: Services, content: ShareRequest) -> Any:
    return await broker.groups.ask(content.group_id, ProtocolRequest(ShareGroup.group_type, content))


def _pairs(topics: TopicStates) -> list[tuple[Uuid, int]]:
    return [(topic, index) for topic in sorted(topics) for index in sorted(topics[topic].partitions)]


def _errors(pairs: list[tuple[Uuid, int]], outcomes: list[BaseException | None]) -> Errors:
    failed: Errors = {}
    for pair, outcome in zip(pairs, outcomes, strict=True):
        if isinstance(outcome, ApiError):
            failed[pair] = outcome
        elif isinstance(outcome, BaseException):
            raise outcome
    return failed


def _states(topics: TopicStates, pairs: Iterable[tuple[Uuid, int]]) -> TopicStates:
    indexes: dict[Uuid, set[int]] = {}
    for topic, index in pairs:
        indexes.setdefault(topic, set()).add(index)
    return {topic: TopicState(topics[topic].name, frozenset(found)) for topic, found in indexes.items()}
