"""RemoveRaftVoter: an administrator removes a voter from the quorum of the metadata log."""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, int16, int32, string, uuid


class RemoveRaftVoterRequest(Message, api=ApiKey.REMOVE_RAFT_VOTER, versions=range(1), flexible=0):
    cluster_id: str | None = string(nullable=True)
    voter_id: int = int32()
    voter_directory_id: Uuid = uuid()


class RemoveRaftVoterResponse(Message, api=ApiKey.REMOVE_RAFT_VOTER, versions=range(1), flexible=0):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=True)
