"""Control records of the metadata log as batches: who leads, who votes, which kraft.version, where a snapshot ends.

Here the machine's values become bytes and bytes become the facts that the machine decides by. Records of the metadata
itself are not looked at. The driver's log and the snapshots use this; the formats of the records are the wire's.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from struct import Struct
from typing import Final

from barnabas.model.errors import CorruptBatch
from barnabas.raft.events import LeaderChange, VotersChange
from barnabas.raft.log_view import BatchFacts
from barnabas.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from barnabas.wire.batch import BatchHeader, crc_matches, iterate
from barnabas.wire.message import Message, decode, encode
from barnabas.wire.messages.raft_control import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from barnabas.wire.records import Record, decode_batch, encode_batch
from barnabas.world.disk import Buffer

CONTROL_VERSION: Final = 0  # of the key, and of every value that Kafka 4.3 writes
_KEY: Final = Struct(">hh")


class ControlType(IntEnum):
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


_TYPES: Final[dict[type[Message], ControlType]] = {
    LeaderChangeMessage: ControlType.LEADER_CHANGE,
    SnapshotHeaderRecord: ControlType.SNAPSHOT_HEADER,
    SnapshotFooterRecord: ControlType.SNAPSHOT_FOOTER,
    KRaftVersionRecord: ControlType.KRAFT_VERSION,
    VotersRecord: ControlType.KRAFT_VOTERS,
}
_MESSAGES: Final = {control_type: message for message, control_type in _TYPES.items()}


def control_batch(messages: Sequence[Message], *, base_offset: int, epoch: int, now_ms: int) -> bytearray:
    """One batch of control records."""
    return encode_batch(
        [
            (now_ms, _KEY.pack(CONTROL_VERSION, _TYPES[type(message)]), encode(message, CONTROL_VERSION), ())
            for message in messages
        ],
        base_offset=base_offset,
        leader_epoch=epoch,
        is_control=True,
    )


def control_messages(payload: LeaderChange | VotersChange) -> list[Message]:
    """The records that a payload of the machine stands for."""
    if isinstance(payload, VotersChange):
        return [voters_record(payload.voter_set)]
    messages: list[Message] = [
        LeaderChangeMessage(
            leader_id=payload.leader_id,
            voters=[LeaderChangeMessage.Voter(voter_id=key.id) for key in payload.voters],
            granting_voters=[LeaderChangeMessage.Voter(voter_id=key.id) for key in payload.granting_voters],
        )
    ]
    if payload.voter_set is not None:
        assert payload.kraft_version is not None
        messages += [KRaftVersionRecord(k_raft_version=payload.kraft_version), voters_record(payload.voter_set)]
    return messages


def decode_control(record: Record) -> Message | None:
    """What a control record says, or None for a type that means nothing to the quorum."""
    if record.key is None or len(record.key) < _KEY.size or record.value is None:
        raise CorruptBatch("a control record has no type")
    control_type = _KEY.unpack_from(record.key)[1]
    message = _MESSAGES.get(control_type)
    return decode(message, CONTROL_VERSION, record.value) if message is not None else None


def facts_of(buffer: Buffer, position: int, header: BatchHeader) -> BatchFacts:
    """What the machine must know of a batch; CorruptBatch if it is not what was written."""
    if not crc_matches(buffer, position, header):
        raise CorruptBatch(f"the batch at offset {header.base_offset} fails its checksum")
    voters: list[tuple[int, VoterSet]] = []
    kraft_version = None
    if header.is_control:
        for record in decode_batch(buffer, position):
            message = decode_control(record)
            if isinstance(message, VotersRecord):
                voters.append((record.offset, voter_set_of(message)))
            elif isinstance(message, KRaftVersionRecord):
                kraft_version = message.k_raft_version
    return BatchFacts(header.base_offset, header.last_offset, header.leader_epoch, tuple(voters), kraft_version)


def batches_of(buffer: Buffer) -> tuple[BatchFacts, ...]:
    """The facts of all whole batches."""
    return tuple(facts_of(buffer, position, header) for position, header in iterate(buffer))


def voters_record(voter_set: VoterSet) -> VotersRecord:
    return VotersRecord(
        voters=[
            VotersRecord.Voter(
                voter_id=voter.id,
                voter_directory_id=voter.key.directory_id,
                endpoints=[
                    VotersRecord.Endpoint(name=endpoint.listener, host=endpoint.host, port=endpoint.port)
                    for endpoint in voter.endpoints
                ],
                k_raft_version_feature=VotersRecord.KRaftVersionFeature(
                    min_supported_version=voter.kraft_version_min, max_supported_version=voter.kraft_version_max
                ),
            )
            for voter in voter_set.voters
        ]
    )


def voter_set_of(record: VotersRecord) -> VoterSet:
    ids = {voter.voter_id for voter in record.voters}
    if not ids or len(ids) < len(record.voters):
        raise CorruptBatch(f"the {len(record.voters)} voters have {len(ids)} ids")
    return VoterSet.of(
        *(
            Voter(
                ReplicaKey(voter.voter_id, voter.voter_directory_id),
                tuple(Endpoint(endpoint.name, endpoint.host, endpoint.port) for endpoint in voter.endpoints),
                voter.k_raft_version_feature.min_supported_version,
                voter.k_raft_version_feature.max_supported_version,
            )
            for voter in record.voters
        )
    )
