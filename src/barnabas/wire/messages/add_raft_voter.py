"""AddRaftVoter: an administrator or a controller adds a voter to the quorum of the metadata log.

Version 1 may be answered before the change is committed.
"""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, boolean, int16, int32, string, uint16, uuid


class AddRaftVoterRequest(Message, api=ApiKey.ADD_RAFT_VOTER, versions=range(2), flexible=0):
    class Listener(Message):
        name: str = string()
        host: str = string()
        port: int = uint16()

    cluster_id: str | None = string(nullable=True)
    timeout_ms: int = int32()
    voter_id: int = int32()
    voter_directory_id: Uuid = uuid()
    listeners: list[Listener] = array(Listener)
    ack_when_committed: bool = boolean(since=1, default=True)


class AddRaftVoterResponse(Message, api=ApiKey.ADD_RAFT_VOTER, versions=range(2), flexible=0):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=True)
