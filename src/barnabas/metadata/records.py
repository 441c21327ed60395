"""The changes that make up the cluster: Kafka's metadata record types, and their frame in the log.

A record's value is the frame's version, the record's type and its version, each an unsigned varint, then the message.
What a record does to the picture of the cluster is in the image's modules; who writes one is in the decisions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.model.errors import Malformed
from barnabas.model.ids import NO_BROKER, Uuid
from barnabas.wire.message import Message, decode_from, encode
from barnabas.wire.schema import array, binary, boolean, float64, int8, int16, int32, int64, string, uint16, uuid

FRAME_VERSION: Final = 1
NO_LEADER: Final = NO_BROKER
NO_LEADER_CHANGE: Final = -2
NO_CHANGE: Final = -1  # of the leader's recovery state
VARINT_BYTES_MAX: Final = 5


class RegisterBrokerRecord(Message, versions=range(5), flexible=0):
    class BrokerEndpoint(Message):
        name: str = string()
        host: str = string()
        port: int = uint16()
        security_protocol: int = int16()

    class BrokerFeature(Message):
        name: str = string()
        min_supported_version: int = int16()
        max_supported_version: int = int16()

    broker_id: int = int32()
    is_migrating_zk_broker: bool = boolean(since=2)
    incarnation_id: Uuid = uuid()
    broker_epoch: int = int64()
    end_points: list[BrokerEndpoint] = array(BrokerEndpoint)
    features: list[BrokerFeature] = array(BrokerFeature)
    rack: str | None = string(nullable=True)
    fenced: bool = boolean(default=True)
    in_controlled_shutdown: bool = boolean(since=1)
    log_dirs: list[Uuid] = array(uuid, since=3, tag=0, tagged_since=3)
    cordoned_log_dirs: list[Uuid] | None = array(uuid, nullable=True, default=None, since=4, tag=1, tagged_since=4)


class UnregisterBrokerRecord(Message, versions=range(1), flexible=0):
    broker_id: int = int32()
    broker_epoch: int = int64()


class TopicRecord(Message, versions=range(1), flexible=0):
    name: str = string()
    topic_id: Uuid = uuid()


class PartitionRecord(Message, versions=range(3), flexible=0):
    partition_id: int = int32(default=-1)
    topic_id: Uuid = uuid()
    replicas: list[int] = array(int32)
    isr: list[int] = array(int32)
    removing_replicas: list[int] = array(int32)
    adding_replicas: list[int] = array(int32)
    leader: int = int32(default=-1)
    leader_recovery_state: int = int8(tag=0, tagged_since=0)
    leader_epoch: int = int32(default=-1)
    partition_epoch: int = int32(default=-1)
    directories: list[Uuid] = array(uuid, since=1)
    eligible_leader_replicas: list[int] | None = array(
        int32, nullable=True, default=None, since=2, tag=1, tagged_since=2
    )
    last_known_elr: list[int] | None = array(int32, nullable=True, default=None, since=2, tag=2, tagged_since=2)


class ConfigRecord(Message, versions=range(1), flexible=0):
    resource_type: int = int8()
    resource_name: str = string()
    name: str = string()
    value: str | None = string(nullable=True)


class PartitionChangeRecord(Message, versions=range(3), flexible=0):
    partition_id: int = int32(default=-1)
    topic_id: Uuid = uuid()
    isr: list[int] | None = array(int32, nullable=True, default=None, tag=0, tagged_since=0)
    leader: int = int32(default=NO_LEADER_CHANGE, tag=1, tagged_since=0)
    replicas: list[int] | None = array(int32, nullable=True, default=None, tag=2, tagged_since=0)
    removing_replicas: list[int] | None = array(int32, nullable=True, default=None, tag=3, tagged_since=0)
    adding_replicas: list[int] | None = array(int32, nullable=True, default=None, tag=4, tagged_since=0)
    leader_recovery_state: int = int8(default=NO_CHANGE, tag=5, tagged_since=0)
    directories: list[Uuid] | None = array(uuid, nullable=True, default=None, since=1, tag=8, tagged_since=1)
    eligible_leader_replicas: list[int] | None = array(
        int32, nullable=True, default=None, since=2, tag=6, tagged_since=2
    )
    last_known_elr: list[int] | None = array(int32, nullable=True, default=None, since=2, tag=7, tagged_since=2)


class FenceBrokerRecord(Message, versions=range(1), flexible=0):
    id: int = int32()
    epoch: int = int64()


class UnfenceBrokerRecord(Message, versions=range(1), flexible=0):
    id: int = int32()
    epoch: int = int64()


class RemoveTopicRecord(Message, versions=range(1), flexible=0):
    topic_id: Uuid = uuid()


class DelegationTokenRecord(Message, versions=range(1), flexible=0):
    owner: str = string()
    requester: str = string()
    renewers: list[str] = array(string)
    issue_timestamp: int = int64()
    max_timestamp: int = int64()
    expiration_timestamp: int = int64()
    token_id: str = string()


class UserScramCredentialRecord(Message, versions=range(1), flexible=0):
    name: str = string()
    mechanism: int = int8()
    salt: bytes = binary()
    stored_key: bytes = binary()
    server_key: bytes = binary()
    iterations: int = int32()


class FeatureLevelRecord(Message, versions=range(1), flexible=0):
    name: str = string()
    feature_level: int = int16()


class ClientQuotaRecord(Message, versions=range(1), flexible=0):
    class EntityData(Message):
        entity_type: str = string()
        entity_name: str | None = string(nullable=True)

    entity: list[EntityData] = array(EntityData)
    key: str = string()
    value: float = float64()
    remove: bool = boolean()


class ProducerIdsRecord(Message, versions=range(1), flexible=0):
    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    next_producer_id: int = int64()


class BrokerRegistrationChangeRecord(Message, versions=range(4), flexible=0):
    broker_id: int = int32()
    broker_epoch: int = int64()
    fenced: int = int8(tag=0, tagged_since=0)
    in_controlled_shutdown: int = int8(since=1, tag=1, tagged_since=1)
    log_dirs: list[Uuid] = array(uuid, since=2, tag=2, tagged_since=2)
    cordoned_log_dirs: list[Uuid] | None = array(uuid, nullable=True, default=None, since=3, tag=3, tagged_since=3)


class AccessControlEntryRecord(Message, versions=range(1), flexible=0):
    id: Uuid = uuid()
    resource_type: int = int8()
    resource_name: str = string()
    pattern_type: int = int8()
    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


class RemoveAccessControlEntryRecord(Message, versions=range(1), flexible=0):
    id: Uuid = uuid()


class NoOpRecord(Message, versions=range(1), flexible=0):
    pass


class ZkMigrationStateRecord(Message, versions=range(1), flexible=0):
    zk_migration_state: int = int8()


class RemoveUserScramCredentialRecord(Message, versions=range(1), flexible=0):
    name: str = string()
    mechanism: int = int8()


class BeginTransactionRecord(Message, versions=range(1), flexible=0):
    name: str | None = string(nullable=True, default=None, tag=0, tagged_since=0)


class EndTransactionRecord(Message, versions=range(1), flexible=0):
    pass


class AbortTransactionRecord(Message, versions=range(1), flexible=0):
    reason: str | None = string(nullable=True, default=None, tag=0, tagged_since=0)


class RemoveDelegationTokenRecord(Message, versions=range(1), flexible=0):
    token_id: str = string()


class RegisterControllerRecord(Message, versions=range(1), flexible=0):
    class ControllerEndpoint(Message):
        name: str = string()
        host: str = string()
        port: int = uint16()
        security_protocol: int = int16()

    class ControllerFeature(Message):
        name: str = string()
        min_supported_version: int = int16()
        max_supported_version: int = int16()

    controller_id: int = int32()
    incarnation_id: Uuid = uuid()
    zk_migration_ready: bool = boolean()
    end_points: list[ControllerEndpoint] = array(ControllerEndpoint)
    features: list[ControllerFeature] = array(ControllerFeature)


class ClearElrRecord(Message, versions=range(1), flexible=0):
    topic_name: str = string()


RECORD_TYPES: Final[Mapping[int, type[Message]]] = {
    0: RegisterBrokerRecord,
    1: UnregisterBrokerRecord,
    2: TopicRecord,
    3: PartitionRecord,
    4: ConfigRecord,
    5: PartitionChangeRecord,
    7: FenceBrokerRecord,
    8: UnfenceBrokerRecord,
    9: RemoveTopicRecord,
    10: DelegationTokenRecord,
    11: UserScramCredentialRecord,
    12: FeatureLevelRecord,
    14: ClientQuotaRecord,
    15: ProducerIdsRecord,
    17: BrokerRegistrationChangeRecord,
    18: AccessControlEntryRecord,
    19: RemoveAccessControlEntryRecord,
    20: NoOpRecord,
    21: ZkMigrationStateRecord,
    22: RemoveUserScramCredentialRecord,
    23: BeginTransactionRecord,
    24: EndTransactionRecord,
    25: AbortTransactionRecord,
    26: RemoveDelegationTokenRecord,
    27: RegisterControllerRecord,
    28: ClearElrRecord,
}
# All types and versions are below 128, so each varint of the frame is one byte.
_FRAMES: Final = {
    record: bytes((FRAME_VERSION, number, record.versions[-1])) for number, record in RECORD_TYPES.items()
}


def encode_record(record: Message) -> bytes:
    """The record as the log holds it, in the newest version, which metadata.version 4.3 writes."""
    frame = _FRAMES[type(record)]
    return frame + encode(record, frame[-1])


def decode_record(value: bytes | bytearray | memoryview) -> Message:
    """The record that a value of the log holds; Malformed for types and versions from the future."""
    frame_version, position = _read_varint(value, 0)
    if frame_version != FRAME_VERSION:
        raise Malformed(f"a metadata record has frame version {frame_version}, not {FRAME_VERSION}")
    number, position = _read_varint(value, position)
    record = RECORD_TYPES.get(number)
    if record is None:
        raise Malformed(f"there is no metadata record of type {number}")
    version, position = _read_varint(value, position)
    if version not in record.versions:
        raise Malformed(f"{record.__name__} has no version {version}")
    message, position = decode_from(record, version, value, position)
    if position != len(value):
        raise Malformed(f"{len(value) - position} bytes follow a {record.__name__}")
    return message


def _read_varint(value: bytes | bytearray | memoryview, position: int) -> tuple[int, int]:
    result = 0
    for index in range(VARINT_BYTES_MAX):
        if position + index >= len(value):
            raise Malformed("a metadata record ends within its frame")
        byte = value[position + index]
        result |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return result, position + index + 1
    raise Malformed("a metadata record's frame holds no varint")
