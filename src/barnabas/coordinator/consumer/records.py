"""The lines that groups of the consumer protocol leave in ``__consumer_offsets``, in Kafka's formats.

A key is an int16 that says what it is about, then the key's own fields; a value is an int16 version, then its fields.
Classic groups and offsets have their own lines (:mod:`barnabas.coordinator.groups.records`); what a line does to a
group is in :mod:`barnabas.coordinator.consumer.group`.
"""

from __future__ import annotations

import struct as packing
from collections.abc import Mapping
from typing import Final, NamedTuple

from barnabas.model.errors import Malformed
from barnabas.model.ids import Uuid
from barnabas.wire.message import Message, decode_from, encode
from barnabas.wire.schema import array, binary, int8, int32, int64, string, struct, uuid

_INT16: Final = packing.Struct(">h")


class GroupKey(Message, versions=range(1)):
    group_id: str = string()


class GroupMemberKey(Message, versions=range(1)):
    group_id: str = string()
    member_id: str = string()


class GroupPatternKey(Message, versions=range(1)):
    group_id: str = string()
    regular_expression: str = string()


class ConsumerGroupMetadataValue(Message, versions=range(1), flexible=0):
    epoch: int = int32()
    metadata_hash: int = int64(tag=0, tagged_since=0)


class ConsumerGroupPartitionMetadataValue(Message, versions=range(1), flexible=0):
    """Written by Kafka before 4.1 only; read and forgotten, since the hash in the group's own line replaced it."""

    class TopicMetadata(Message):
        topic_id: Uuid = uuid()
        topic_name: str = string()
        num_partitions: int = int32()
        partition_metadata: list[ConsumerGroupPartitionMetadataValue.PartitionMetadata] = array("PartitionMetadata")

    class PartitionMetadata(Message):
        partition: int = int32()
        racks: list[str] = array(string)

    topics: list[TopicMetadata] = array(TopicMetadata)


class ConsumerGroupMemberMetadataValue(Message, versions=range(1), flexible=0):
    class ClassicProtocol(Message):
        name: str = string()
        metadata: bytes = binary()

    class ClassicMemberMetadata(Message):
        session_timeout_ms: int = int32()
        supported_protocols: list[ConsumerGroupMemberMetadataValue.ClassicProtocol] = array("ClassicProtocol")

    instance_id: str | None = string(nullable=True)
    rack_id: str | None = string(nullable=True)
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string)
    subscribed_topic_regex: str | None = string(nullable=True)
    rebalance_timeout_ms: int = int32(default=-1)
    server_assignor: str | None = string(nullable=True)
    classic_member_metadata: ClassicMemberMetadata | None = struct(
        ClassicMemberMetadata, nullable=True, is_null_by_default=False, tag=0, tagged_since=0
    )


class ConsumerGroupTargetAssignmentMetadataValue(Message, versions=range(1), flexible=0):
    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(ignorable=True, tag=0, tagged_since=0)


class ConsumerGroupTargetAssignmentMemberValue(Message, versions=range(1), flexible=0):
    class TopicPartition(Message):
        topic_id: Uuid = uuid()
        partitions: list[int] = array(int32)

    topic_partitions: list[TopicPartition] = array(TopicPartition)


class ConsumerGroupCurrentMemberAssignmentValue(Message, versions=range(1), flexible=0):
    class TopicPartitions(Message):
        topic_id: Uuid = uuid()
        partitions: list[int] = array(int32)
        assignment_epochs: list[int] | None = array(int32, nullable=True, tag=0, tagged_since=0)

    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    assigned_partitions: list[TopicPartitions] = array(TopicPartitions)
    partitions_pending_revocation: list[TopicPartitions] = array(TopicPartitions)


class ConsumerGroupRegularExpressionValue(Message, versions=range(1), flexible=0):
    topics: list[str] = array(string)
    version: int = int64()
    timestamp: int = int64()


class RecordType(NamedTuple):
    number: int
    key: type[Message]
    value: type[Message]


GROUP: Final = RecordType(3, GroupKey, ConsumerGroupMetadataValue)
PARTITION_METADATA: Final = RecordType(4, GroupKey, ConsumerGroupPartitionMetadataValue)
MEMBER: Final = RecordType(5, GroupMemberKey, ConsumerGroupMemberMetadataValue)
TARGET: Final = RecordType(6, GroupKey, ConsumerGroupTargetAssignmentMetadataValue)
TARGET_MEMBER: Final = RecordType(7, GroupMemberKey, ConsumerGroupTargetAssignmentMemberValue)
CURRENT_MEMBER: Final = RecordType(8, GroupMemberKey, ConsumerGroupCurrentMemberAssignmentValue)
PATTERN: Final = RecordType(16, GroupPatternKey, ConsumerGroupRegularExpressionValue)

RECORD_TYPES: Final[Mapping[int, RecordType]] = {
    record.number: record
    for record in (GROUP, PARTITION_METADATA, MEMBER, TARGET, TARGET_MEMBER, CURRENT_MEMBER, PATTERN)
}


def encode_key(record: RecordType, key: Message) -> bytes:
    assert type(key) is record.key
    return _INT16.pack(record.number) + encode(key, 0)


def encode_value(record: RecordType, value: Message) -> bytes:
    """The value in its newest version, which a cluster of Kafka 4.3 writes."""
    assert type(value) is record.value
    version = record.value.versions[-1]
    return _INT16.pack(version) + encode(value, version)


def decode_key(data: bytes, record_types: Mapping[int, RecordType] = RECORD_TYPES) -> tuple[RecordType, Message]:
    """Which kind of line it is, and about whom; Malformed for a kind that is not one of these."""
    record = record_types.get(_number(data))
    if record is None:
        raise Malformed(f"a line of type {_number(data)} is not one of this protocol")
    key, position = decode_from(record.key, 0, data, _INT16.size)
    if position != len(data):
        raise Malformed(f"{len(data) - position} bytes follow the key of a line of type {record.number}")
    return record, key


def decode_value(record: RecordType, data: bytes) -> Message:
    version = _number(data)
    if version not in record.value.versions:
        raise Malformed(f"{record.value.__name__} has no version {version}")
    value, position = decode_from(record.value, version, data, _INT16.size)
    if position != len(data):
        raise Malformed(f"{len(data) - position} bytes follow a {record.value.__name__}")
    return value


def _number(data: bytes) -> int:
    if len(data) < _INT16.size:
        raise Malformed("a line of a group ends within its first number")
    number: int = _INT16.unpack_from(data)[0]
    return number
