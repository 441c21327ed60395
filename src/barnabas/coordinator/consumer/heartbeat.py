"""A heartbeat of the consumer protocol as a message: whether it is well-formed, what it says, how it is answered.

Nothing here knows the state of a group; :mod:`barnabas.coordinator.consumer.groups` calls it at either end of a step.
"""

from __future__ import annotations

from collections.abc import Collection

from barnabas.coordinator.consumer.member import JOIN_EPOCH, LEAVE_EPOCH, NO_TIMEOUT, STATIC_LEAVE_EPOCH, Member, Owned
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import Uuid
from barnabas.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


def is_full(message: ConsumerGroupHeartbeatRequest) -> bool:
    """A member that lost its connection says everything again and wants to hear everything again."""
    has_subscription = message.subscribed_topic_names is not None or message.subscribed_topic_regex is not None
    return message.member_epoch == JOIN_EPOCH or (
        message.rebalance_timeout_ms != NO_TIMEOUT and has_subscription and message.topic_partitions is not None
    )


def reported_in(message: ConsumerGroupHeartbeatRequest) -> dict[Uuid, set[int]] | None:
    """What the member says it has, if it says so."""
    if message.topic_partitions is None:
        return None
    reported: dict[Uuid, set[int]] = {}
    for entry in message.topic_partitions:
        reported.setdefault(entry.topic_id, set()).update(entry.partitions)
    return reported


def check(
    message: ConsumerGroupHeartbeatRequest, version: int, assignors: Collection[str], *, subscription_bytes_max: int
) -> None:
    """INVALID_REQUEST or UNSUPPORTED_ASSIGNOR if a member may not ask this at all."""
    if sum(len(name) + 1 for name in message.subscribed_topic_names or ()) > subscription_bytes_max:
        raise ApiError(errors.INVALID_REQUEST, "SubscribedTopicNames is longer than what can be kept")
    # Since version 1 members choose their id themselves; before, one that joins has none yet.
    needs_id = version >= 1 or message.member_epoch > JOIN_EPOCH or message.member_epoch == LEAVE_EPOCH
    if needs_id and not message.member_id:
        raise ApiError(errors.INVALID_REQUEST, "MemberId is empty")
    for name, text in (
        ("GroupId", message.group_id),
        ("InstanceId", message.instance_id),
        ("RackId", message.rack_id),
    ):
        if text is not None and not text.strip():
            raise ApiError(errors.INVALID_REQUEST, f"{name} is empty")
    if message.member_epoch == JOIN_EPOCH:
        _check_join(message)
    elif message.member_epoch == STATIC_LEAVE_EPOCH and message.instance_id is None:
        raise ApiError(errors.INVALID_REQUEST, f"MemberEpoch {STATIC_LEAVE_EPOCH} is for members with an InstanceId")
    elif message.member_epoch < STATIC_LEAVE_EPOCH:
        raise ApiError(errors.INVALID_REQUEST, f"MemberEpoch {message.member_epoch} has no meaning")
    if message.server_assignor is not None and message.server_assignor not in assignors:
        raise ApiError(
            errors.UNSUPPORTED_ASSIGNOR,
            f"there is no ServerAssignor {message.server_assignor!r} here, but {', '.join(assignors)}",
        )


def _check_join(message: ConsumerGroupHeartbeatRequest) -> None:
    if message.rebalance_timeout_ms == NO_TIMEOUT:
        raise ApiError(errors.INVALID_REQUEST, "a member that joins gives its RebalanceTimeoutMs")
    if message.topic_partitions is None or message.topic_partitions:
        raise ApiError(
            errors.INVALID_REQUEST, "a member that joins has nothing yet: its TopicPartitions is an empty list"
        )
    if message.subscribed_topic_names is None and message.subscribed_topic_regex is None:
        raise ApiError(errors.INVALID_REQUEST, "a member that joins gives SubscribedTopicNames or SubscribedTopicRegex")


def check_epoch(member: Member, epoch: int, reported: dict[Uuid, set[int]] | None) -> None:
    """FENCED_MEMBER_EPOCH unless the member is in step, or missed just the answer that moved it on, or starts anew."""
    if epoch in (JOIN_EPOCH, member.member_epoch):
        return
    missed_answer = epoch == member.previous_member_epoch and _is_part(reported, member.assigned)
    if epoch > member.member_epoch or not missed_answer:
        raise ApiError(
            errors.FENCED_MEMBER_EPOCH,
            f"the member is in epoch {member.member_epoch}, not {epoch}: it gives up its partitions and joins again",
        )


def _is_part(reported: dict[Uuid, set[int]] | None, assigned: Owned) -> bool:
    return reported is not None and all(
        partitions <= assigned.get(topic, {}).keys() for topic, partitions in reported.items()
    )


def heartbeat_answer(member: Member, *, interval_ms: int, with_assignment: bool) -> ConsumerGroupHeartbeatResponse:
    entry = ConsumerGroupHeartbeatResponse.TopicPartitions
    return ConsumerGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        heartbeat_interval_ms=interval_ms,
        assignment=ConsumerGroupHeartbeatResponse.Assignment(
            topic_partitions=[
                entry(topic_id=topic, partitions=sorted(member.assigned[topic])) for topic in sorted(member.assigned)
            ]
        )
        if with_assignment
        else None,
    )


def left_answer(member_id: str, epoch: int) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(member_id=member_id, member_epoch=epoch)
