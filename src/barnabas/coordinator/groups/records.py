"""The lines that offsets and classic groups leave in ``__consumer_offsets``, in Kafka's formats.

A key is an int16 that says what it is about, then its fields; a value is an int16 version, then its fields. Groups of
the consumer protocol have lines of their own (:mod:`barnabas.coordinator.consumer.records`). The group shard
writes and replays these, and tools read them.
"""

from __future__ import annotations

import struct
from typing import Final

from barnabas.model.errors import Malformed
from barnabas.model.ids import NO_LEADER_EPOCH, NO_TIMESTAMP, ZERO_UUID, Uuid
from barnabas.wire.message import Message, decode, encode
from barnabas.wire.schema import array, binary, int32, int64, string, uuid

LEGACY_OFFSET: Final = 0  # the same fields as OFFSET, written by brokers of another age
OFFSET: Final = 1
CLASSIC_GROUP: Final = 2

OFFSET_VERSION: Final = 4
EXPIRING_OFFSET_VERSION: Final = 1  # the one version that can carry a time of expiry
CLASSIC_GROUP_VERSION: Final = 3

_INT16: Final = struct.Struct(">h")


class OffsetCommitKey(Message, versions=range(1)):
    group: str = string()
    topic: str = string()
    partition: int = int32()


class OffsetCommitValue(Message, versions=range(5), flexible=4):
    offset: int = int64()
    leader_epoch: int = int32(since=3, default=NO_LEADER_EPOCH, ignorable=True)
    metadata: str = string()
    commit_timestamp: int = int64()
    expire_timestamp: int = int64(since=1, until=1, default=NO_TIMESTAMP, ignorable=True)
    topic_id: Uuid = uuid(since=4, ignorable=True, tag=0, tagged_since=4)


class GroupMetadataKey(Message, versions=range(1)):
    group: str = string()


class GroupMetadataValue(Message, versions=range(5), flexible=4):
    class MemberMetadata(Message):
        member_id: str = string()
        group_instance_id: str | None = string(since=3, nullable=True, default=None, ignorable=True)
        client_id: str = string()
        client_host: str = string()
        rebalance_timeout: int = int32(since=1, default=-1, ignorable=True)
        session_timeout: int = int32()
        subscription: bytes = binary()
        assignment: bytes = binary()

    protocol_type: str = string()
    generation: int = int32()
    protocol: str | None = string(nullable=True)
    leader: str | None = string(nullable=True)
    current_state_timestamp: int = int64(since=2, default=NO_TIMESTAMP, ignorable=True)
    members: list[MemberMetadata] = array(MemberMetadata)


def key_type(key: bytes) -> int:
    """What a line is about: the number at the start of its key."""
    if len(key) < _INT16.size:
        raise Malformed("a key of the offsets topic has no type")
    number: int = _INT16.unpack_from(key)[0]
    return number


def offset_key(group_id: str, topic: str, partition: int) -> bytes:
    return _INT16.pack(OFFSET) + encode(OffsetCommitKey(group=group_id, topic=topic, partition=partition), 0)


def offset_value(
    *,
    offset: int,
    leader_epoch: int,
    metadata: str,
    commit_timestamp_ms: int,
    expire_timestamp_ms: int = NO_TIMESTAMP,
    topic_id: Uuid = ZERO_UUID,
) -> bytes:
    version = OFFSET_VERSION if expire_timestamp_ms == NO_TIMESTAMP else EXPIRING_OFFSET_VERSION
    value = OffsetCommitValue(
        offset=offset,
        leader_epoch=leader_epoch,
        metadata=metadata,
        commit_timestamp=commit_timestamp_ms,
        expire_timestamp=expire_timestamp_ms,
        topic_id=topic_id,
    )
    return _INT16.pack(version) + encode(value, version)


def classic_group_key(group_id: str) -> bytes:
    return _INT16.pack(CLASSIC_GROUP) + encode(GroupMetadataKey(group=group_id), 0)


def classic_group_value(value: GroupMetadataValue) -> bytes:
    return _INT16.pack(CLASSIC_GROUP_VERSION) + encode(value, CLASSIC_GROUP_VERSION)


def decode_offset_key(key: bytes) -> OffsetCommitKey:
    return decode(OffsetCommitKey, 0, key, _INT16.size)


def decode_offset_value(value: bytes) -> OffsetCommitValue:
    return decode(OffsetCommitValue, _version(OffsetCommitValue, value), value, _INT16.size)


def decode_classic_group_key(key: bytes) -> GroupMetadataKey:
    return decode(GroupMetadataKey, 0, key, _INT16.size)


def decode_classic_group_value(value: bytes) -> GroupMetadataValue:
    return decode(GroupMetadataValue, _version(GroupMetadataValue, value), value, _INT16.size)


def _version(cls: type[Message], value: bytes) -> int:
    if len(value) < _INT16.size:
        raise Malformed(f"a {cls.__name__} has no version")
    version: int = _INT16.unpack_from(value)[0]
    if version not in cls.versions:
        raise Malformed(f"there is no version {version} of {cls.__name__}")
    return version
