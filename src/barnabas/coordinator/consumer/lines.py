"""The lines that a step of a consumer group writes: values in, records out, one function for each kind.

The formats are in :mod:`barnabas.coordinator.consumer.records`, what a line does in
:mod:`barnabas.coordinator.consumer.group`.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.coordinator.consumer.assignors import Partitions
from barnabas.coordinator.consumer.group import ConsumerGroup
from barnabas.coordinator.consumer.member import Member
from barnabas.coordinator.consumer.records import (
    CURRENT_MEMBER,
    GROUP,
    MEMBER,
    PATTERN,
    TARGET,
    TARGET_MEMBER,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataValue,
    GroupKey,
    GroupMemberKey,
    GroupPatternKey,
    RecordType,
    encode_key,
    encode_value,
)
from barnabas.coordinator.consumer.subscriptions import ResolvedPattern
from barnabas.coordinator.runtime.effects import Record
from barnabas.wire.message import Message


def group_line(group_id: str, epoch: int, metadata_hash: int) -> Record:
    value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return _of_group(GROUP, group_id, value)


def target_line(group_id: str, epoch: int, now_ms: int) -> Record:
    value = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=now_ms)
    return _of_group(TARGET, group_id, value)


def member_line(group_id: str, member: Member) -> Record:
    return _of_member(MEMBER, group_id, member.member_id, member.metadata_value())


def current_line(group_id: str, member: Member) -> Record:
    return _of_member(CURRENT_MEMBER, group_id, member.member_id, member.current_value())


def target_member_line(group_id: str, member_id: str, partitions: Partitions) -> Record:
    entry = ConsumerGroupTargetAssignmentMemberValue.TopicPartition
    value = ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[entry(topic_id=topic, partitions=sorted(partitions[topic])) for topic in sorted(partitions)]
    )
    return _of_member(TARGET_MEMBER, group_id, member_id, value)


def pattern_line(group_id: str, pattern: str, resolved: ResolvedPattern | None) -> Record:
    """What a pattern stands for; without it, that nobody wants it any longer."""
    key = encode_key(PATTERN, GroupPatternKey(group_id=group_id, regular_expression=pattern))
    if resolved is None:
        return Record(key, None)
    value = ConsumerGroupRegularExpressionValue(
        topics=sorted(resolved.topics), version=resolved.version, timestamp=resolved.timestamp_ms
    )
    return Record(key, encode_value(PATTERN, value))


def without_member(group_id: str, member_id: str) -> Iterator[Record]:
    for kind in (CURRENT_MEMBER, TARGET_MEMBER, MEMBER):
        yield _of_member(kind, group_id, member_id, None)


def without_group(group: ConsumerGroup, *, member_ids: set[str] | None = None) -> Iterator[Record]:
    """All that takes a group out of the log; ``member_ids`` where a step has replaced one of them already."""
    names = sorted(group.members if member_ids is None else member_ids)
    for kind in (CURRENT_MEMBER, TARGET_MEMBER):
        for member_id in names:
            yield _of_member(kind, group.group_id, member_id, None)
    yield _of_group(TARGET, group.group_id, None)
    for member_id in names:
        yield _of_member(MEMBER, group.group_id, member_id, None)
    for pattern in sorted(group.patterns):
        yield pattern_line(group.group_id, pattern, None)
    yield _of_group(GROUP, group.group_id, None)


def _of_group(kind: RecordType, group_id: str, value: Message | None) -> Record:
    return Record(encode_key(kind, GroupKey(group_id=group_id)), None if value is None else encode_value(kind, value))


def _of_member(kind: RecordType, group_id: str, member_id: str, value: Message | None) -> Record:
    key = encode_key(kind, GroupMemberKey(group_id=group_id, member_id=member_id))
    return Record(key, None if value is None else encode_value(kind, value))
