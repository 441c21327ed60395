"""The records of ``__share_group_state`` in Kafka's formats: snapshots of a share-partition's state, and updates to it.

A key is an int16 with the record type and the share-partition; a value is an int16 version and its fields. A tombstone
of a snapshot deletes the share-partition's state.
"""

from __future__ import annotations

import struct as packing
from typing import Final, NamedTuple

from barnabas.coordinator.share_state.batches import StateBatch
from barnabas.model.errors import Malformed
from barnabas.model.ids import Uuid
from barnabas.wire.message import Message, decode, encode
from barnabas.wire.schema import array, int8, int16, int32, int64, string, uuid

SNAPSHOT: Final = 0
UPDATE: Final = 1
VERSION: Final = 0
UNKNOWN_COUNT: Final = -1  # delivery complete count that the writer did not send

_INT16: Final = packing.Struct(">h")


class SharePartitionKey(NamedTuple):
    """A partition of a topic as one share group reads it."""

    group_id: str
    topic_id: Uuid
    partition: int

    @property
    def coordinator_key(self) -> str:
        """The key that FindCoordinator takes, and that chooses the partition of the state topic."""
        return f"{self.group_id}:{self.topic_id}:{self.partition}"


class ShareStateKey(Message, versions=range(1)):
    group_id: str = string()
    topic_id: Uuid = uuid()
    partition: int = int32()


class ShareSnapshotValue(Message, versions=range(1), flexible=0):
    class StateBatch(Message):
        first_offset: int = int64()
        last_offset: int = int64()
        delivery_state: int = int8()
        delivery_count: int = int16()

    snapshot_epoch: int = int32()
    state_epoch: int = int32()
    leader_epoch: int = int32()
    start_offset: int = int64()
    delivery_complete_count: int = int32(default=UNKNOWN_COUNT, tag=0, tagged_since=0)
    create_timestamp: int = int64()
    write_timestamp: int = int64()
    state_batches: list[StateBatch] = array(StateBatch)


class ShareUpdateValue(Message, versions=range(1), flexible=0):
    class StateBatch(Message):
        first_offset: int = int64()
        last_offset: int = int64()
        delivery_state: int = int8()
        delivery_count: int = int16()

    snapshot_epoch: int = int32()
    leader_epoch: int = int32()
    start_offset: int = int64()
    delivery_complete_count: int = int32(default=UNKNOWN_COUNT, tag=0, tagged_since=0)
    state_batches: list[StateBatch] = array(StateBatch)


_VALUES: Final[dict[int, type[ShareSnapshotValue | ShareUpdateValue]]] = {
    SNAPSHOT: ShareSnapshotValue,
    UPDATE: ShareUpdateValue,
}


def encode_key(kind: int, key: SharePartitionKey) -> bytes:
    return _INT16.pack(kind) + encode(ShareStateKey(**key._asdict()), 0)


def encode_value(value: ShareSnapshotValue | ShareUpdateValue) -> bytes:
    return _INT16.pack(VERSION) + encode(value, VERSION)


def record_type(key: bytes) -> int:
    if len(key) < _INT16.size:
        raise Malformed("a key of the share state topic has no type")
    number: int = _INT16.unpack_from(key)[0]
    return number


def decode_key(data: bytes) -> SharePartitionKey:
    key = decode(ShareStateKey, 0, data, _INT16.size)
    return SharePartitionKey(key.group_id, Uuid(key.topic_id), key.partition)


def decode_value(kind: int, data: bytes) -> ShareSnapshotValue | ShareUpdateValue:
    if record_type(data) != VERSION:
        raise Malformed(f"{_VALUES[kind].__name__} has no version {record_type(data)}")
    return decode(_VALUES[kind], VERSION, data, _INT16.size)


def batches_of(value: ShareSnapshotValue | ShareUpdateValue) -> list[StateBatch]:
    return [
        StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
        for each in value.state_batches
    ]
