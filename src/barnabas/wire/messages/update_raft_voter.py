"""UpdateRaftVoter: a voter tells the leader of its endpoints and of the versions it supports."""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, int16, int32, string, struct, uint16, uuid


class UpdateRaftVoterRequest(Message, api=ApiKey.UPDATE_RAFT_VOTER, versions=range(1), flexible=0):
    class Listener(Message):
        name: str = string()
        host: str = string()
        port: int = uint16()

    class KRaftVersionFeature(Message):
        min_supported_version: int = int16()
        max_supported_version: int = int16()

    cluster_id: str | None = string(nullable=True)
    current_leader_epoch: int = int32()
    voter_id: int = int32()
    voter_directory_id: Uuid = uuid()
    listeners: list[Listener] = array(Listener)
    k_raft_version_feature: KRaftVersionFeature = struct(KRaftVersionFeature)


class UpdateRaftVoterResponse(Message, api=ApiKey.UPDATE_RAFT_VOTER, versions=range(1), flexible=0):
    class CurrentLeader(Message):
        leader_id: int = int32(default=-1)
        leader_epoch: int = int32(default=-1)
        host: str = string()
        port: int = int32()

    throttle_time_ms: int = int32()
    error_code: int = int16()
    current_leader: CurrentLeader = struct(CurrentLeader, tag=0)
