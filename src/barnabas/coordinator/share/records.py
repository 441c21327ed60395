"""The records that share groups write to ``__consumer_offsets``, in Kafka's formats.

Keys and values are encoded as those of consumer groups are (:mod:`barnabas.coordinator.consumer.records`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.coordinator.consumer.assignors import Partitions
from barnabas.coordinator.consumer.records import GroupKey, GroupMemberKey, RecordType, encode_key, encode_value
from barnabas.coordinator.runtime.effects import Record
from barnabas.model.ids import Uuid
from barnabas.wire.message import Message
from barnabas.wire.schema import array, int8, int32, int64, string, uuid


class ShareGroupMemberMetadataValue(Message, versions=range(1), flexible=0):
    rack_id: str | None = string(nullable=True)
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string)


class ShareGroupMetadataValue(Message, versions=range(1), flexible=0):
    epoch: int = int32()
    metadata_hash: int = int64()


class ShareGroupTargetAssignmentMetadataValue(Message, versions=range(1), flexible=0):
    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(ignorable=True, tag=0, tagged_since=0)


class ShareGroupTargetAssignmentMemberValue(Message, versions=range(1), flexible=0):
    class TopicPartition(Message):
        topic_id: Uuid = uuid()
        partitions: list[int] = array(int32)

    topic_partitions: list[TopicPartition] = array(TopicPartition)


class ShareGroupCurrentMemberAssignmentValue(Message, versions=range(1), flexible=0):
    class TopicPartitions(Message):
        topic_id: Uuid = uuid()
        partitions: list[int] = array(int32)

    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    assigned_partitions: list[TopicPartitions] = array(TopicPartitions)


class ShareGroupStatePartitionMetadataValue(Message, versions=range(1), flexible=0):
    class TopicPartitionsInfo(Message):
        topic_id: Uuid = uuid()
        topic_name: str = string()
        partitions: list[int] = array(int32)

    class TopicInfo(Message):
        topic_id: Uuid = uuid()
        topic_name: str = string()

    initializing_topics: list[TopicPartitionsInfo] = array(TopicPartitionsInfo)
    initialized_topics: list[TopicPartitionsInfo] = array(TopicPartitionsInfo)
    deleting_topics: list[TopicInfo] = array(TopicInfo)


MEMBER: Final = RecordType(10, GroupMemberKey, ShareGroupMemberMetadataValue)
GROUP: Final = RecordType(11, GroupKey, ShareGroupMetadataValue)
TARGET: Final = RecordType(12, GroupKey, ShareGroupTargetAssignmentMetadataValue)
TARGET_MEMBER: Final = RecordType(13, GroupMemberKey, ShareGroupTargetAssignmentMemberValue)
CURRENT_MEMBER: Final = RecordType(14, GroupMemberKey, ShareGroupCurrentMemberAssignmentValue)
STATE_PARTITIONS: Final = RecordType(15, GroupKey, ShareGroupStatePartitionMetadataValue)

RECORD_TYPES: Final[Mapping[int, RecordType]] = {
    record.number: record for record in (MEMBER, GROUP, TARGET, TARGET_MEMBER, CURRENT_MEMBER, STATE_PARTITIONS)
}


def of_group(kind: RecordType, group_id: str, value: Message | None) -> Record:
    """A record about a group; without a value, its tombstone."""
    return Record(encode_key(kind, GroupKey(group_id=group_id)), None if value is None else encode_value(kind, value))


def of_member(kind: RecordType, group_id: str, member_id: str, value: Message | None) -> Record:
    """A record about a member; without a value, its tombstone."""
    key = encode_key(kind, GroupMemberKey(group_id=group_id, member_id=member_id))
    return Record(key, None if value is None else encode_value(kind, value))


def target_value(partitions: Partitions) -> ShareGroupTargetAssignmentMemberValue:
    row = ShareGroupTargetAssignmentMemberValue.TopicPartition
    return ShareGroupTargetAssignmentMemberValue(
        topic_partitions=[row(topic_id=topic, partitions=sorted(partitions[topic])) for topic in sorted(partitions)]
    )
