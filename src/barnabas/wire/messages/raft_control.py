"""What control records hold: the keys and values of batches that speak about the log itself.

Leader changes, voters and versions of the metadata log, the first and last records of a snapshot, and the markers that
end a transaction. The int16 version and the int16 type in front are a key of their own, ControlRecordTypeSchema.
"""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.message import Message, array, int16, int32, int64, string, struct, uint16, uuid


class ControlRecordTypeSchema(Message, versions=range(1)):
    type: int = int16()


class EndTxnMarker(Message, versions=range(1)):
    coordinator_epoch: int = int32()


class LeaderChangeMessage(Message, versions=range(2), flexible=0):
    class Voter(Message):
        voter_id: int = int32()
        voter_directory_id: Uuid = uuid(since=1)

    version: int = int16()
    leader_id: int = int32()
    voters: list[Voter] = array(Voter)
    granting_voters: list[Voter] = array(Voter)


class SnapshotHeaderRecord(Message, versions=range(1), flexible=0):
    version: int = int16()
    last_contained_log_timestamp: int = int64()


class SnapshotFooterRecord(Message, versions=range(1), flexible=0):
    version: int = int16()


class KRaftVersionRecord(Message, versions=range(1), flexible=0):
    version: int = int16()
    k_raft_version: int = int16()


class VotersRecord(Message, versions=range(1), flexible=0):
    class Voter(Message):
        voter_id: int = int32()
        voter_directory_id: Uuid = uuid()
        endpoints: list[VotersRecord.Endpoint] = array("Endpoint")
        k_raft_version_feature: VotersRecord.KRaftVersionFeature = struct("KRaftVersionFeature")

    class Endpoint(Message):
        name: str = string()
        host: str = string()
        port: int = uint16()

    class KRaftVersionFeature(Message):
        min_supported_version: int = int16()
        max_supported_version: int = int16()

    version: int = int16()
    voters: list[Voter] = array(Voter)
