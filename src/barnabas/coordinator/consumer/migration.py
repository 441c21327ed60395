"""From one protocol to the other while the members go on: a classic group becomes a consumer group, and back.

The first member that joins a classic group with the new protocol makes it a consumer group, in which the others are
classic members with what their leader gave them last. When the last member with the new protocol is gone, the rest is a
classic group again and rebalances. Both are lines in the log like any other step.
"""

from __future__ import annotations

from typing import Final

from barnabas.coordinator.classic.embedded_protocol import (
    read_assignment,
    read_subscription,
    version_of,
    write_assignment,
)
from barnabas.coordinator.classic.group import CONSUMER, ClassicGroup
from barnabas.coordinator.classic.member import ClassicMember
from barnabas.coordinator.classic.rebalance import JOIN, SYNC, session_key
from barnabas.coordinator.consumer import records as kinds
from barnabas.coordinator.consumer.group import ConsumerGroup
from barnabas.coordinator.consumer.groups import apply
from barnabas.coordinator.consumer.lines import (
    current_line,
    group_line,
    member_line,
    target_line,
    target_member_line,
    without_group,
)
from barnabas.coordinator.consumer.member import ClassicMembership, Member, topic_names
from barnabas.coordinator.consumer.settings import ConsumerGroupSettings
from barnabas.coordinator.consumer.step import SESSION, GroupTimer, MemberTimer
from barnabas.coordinator.groups.records import classic_group_key, classic_group_value
from barnabas.coordinator.runtime.effects import Effects
from barnabas.metadata.topics_image import TopicsImage
from barnabas.model import errors
from barnabas.model.errors import ApiError, Malformed
from barnabas.wire.messages.join_group import JoinGroupResponse
from barnabas.wire.messages.sync_group import SyncGroupResponse

DOWNGRADED: Final = "consumer-downgraded"  # the timer of a group that is to rebalance as a classic one


def upgrade(
    classic: ClassicGroup, settings: ConsumerGroupSettings, topics: TopicsImage, now_ms: int, effects: Effects
) -> ConsumerGroup | None:
    """The classic group as a consumer group, in lines; None if it had no members: then it is just gone.

    GROUP_ID_NOT_FOUND, which is what Kafka says of a group of another kind, if it cannot be one.
    """
    group_id = classic.group_id
    if classic.is_empty:
        effects.record(classic_group_key(group_id), None)
        return None
    if (
        not settings.migration_policy.allows_upgrade
        or classic.protocol_type != CONSUMER
        or len(classic.members) > settings.size_max
    ):
        raise ApiError(errors.GROUP_ID_NOT_FOUND, f"group {group_id!r} is a classic group, and is to stay one")
    try:
        members = [_upgraded_member(classic, member, topics) for member in classic.members.values()]
    except Malformed as error:
        raise ApiError(
            errors.GROUP_ID_NOT_FOUND,
            f"group {group_id!r} cannot become a consumer group: what its members subscribe to cannot be read: {error}",
        ) from error
    _release_classic(classic, effects)
    effects.record(classic_group_key(group_id), None)
    lines = [member_line(group_id, member) for member in members]
    lines.append(group_line(group_id, classic.generation, 0))
    for member in members:
        target = {topic: frozenset(owned) for topic, owned in member.assigned.items()}
        lines.append(target_member_line(group_id, member.member_id, target))
    lines.append(target_line(group_id, classic.generation, 0))
    lines.extend(current_line(group_id, member) for member in members)
    effects.records.extend(lines)
    group = ConsumerGroup(group_id)
    for key, value in lines:
        kind, about = kinds.decode_key(key)
        apply(group, kind, about, None if value is None else kinds.decode_value(kind, value))
    for member in members:
        assert member.classic is not None
        session_ms = member.classic.session_timeout_ms
        effects.timer(MemberTimer(SESSION, group_id, member.member_id), now_ms + session_ms)
    return group


def _upgraded_member(group: ClassicGroup, member: ClassicMember, topics: TopicsImage) -> Member:
    # Before the first generation no protocol is chosen yet; then each member's favourite says what it wants.
    metadata = member.metadata(group.protocol) if group.protocol is not None else member.protocols[0][1]
    subscription = read_subscription(metadata)
    assigned = read_assignment(member.assignment, topics)
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=topic_names(subscription.topics),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=ClassicMembership(member.session_timeout_ms, member.protocols),
        member_epoch=group.generation,
        previous_member_epoch=group.generation,
        assigned={topic: dict.fromkeys(sorted(indexes), group.generation) for topic, indexes in assigned.items()},
    )


def _release_classic(group: ClassicGroup, effects: Effects) -> None:
    """Whoever waits in the classic group is sent to join again; its timers mean nothing any longer."""
    code = errors.REBALANCE_IN_PROGRESS.code
    for member in group.members.values():
        if member.join_request is not None:
            answer = JoinGroupResponse(error_code=code, member_id=member.member_id, protocol_name=None)
            effects.answer(member.join_request, answer)
        if member.sync_request is not None:
            effects.answer(member.sync_request, SyncGroupResponse(error_code=code))
    for member_id in (*group.members, *group.pending_members):
        effects.timer(session_key(group, member_id), None)
    effects.timer((JOIN, group.group_id), None)
    effects.timer((SYNC, group.group_id), None)


def downgrade(group: ConsumerGroup, topics: TopicsImage, now_ms: int, effects: Effects) -> None:
    """The lines that make a group of classic members a classic group, in which all have what they were to have."""
    classic = ClassicGroup(group.group_id, now_ms=now_ms)
    for member in group.members.values():
        assert member.classic is not None
        classic.add(
            ClassicMember(
                member_id=member.member_id,
                instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                session_timeout_ms=member.classic.session_timeout_ms,
                protocol_type=CONSUMER,
                protocols=member.classic.protocols,
            )
        )
    classic.generation = group.epoch
    classic.protocol = classic.choose_protocol()
    for classic_member in classic.members.values():
        target = group.targets.get(classic_member.member_id, {})
        version = version_of(classic_member.metadata(classic.protocol))
        classic_member.assignment = write_assignment(target, version, topics)
    effects.records.extend(without_group(group))
    effects.record(classic_group_key(group.group_id), classic_group_value(classic.as_record()))
    effects.timer(GroupTimer(DOWNGRADED, group.group_id), now_ms)
