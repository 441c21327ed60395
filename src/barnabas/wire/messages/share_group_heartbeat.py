"""ShareGroupHeartbeat: a member of a share group (KIP-932) joins, stays and leaves."""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, int16, int32, string, struct, uuid


class ShareGroupHeartbeatRequest(Message, api=ApiKey.SHARE_GROUP_HEARTBEAT, versions=range(1, 2), flexible=0):
    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    rack_id: str | None = string(nullable=True, default=None)
    subscribed_topic_names: list[str] | None = array(string, nullable=True, default=None)


class ShareGroupHeartbeatResponse(Message, api=ApiKey.SHARE_GROUP_HEARTBEAT, versions=range(1, 2), flexible=0):
    class Assignment(Message):
        topic_partitions: list[ShareGroupHeartbeatResponse.TopicPartitions] = array("TopicPartitions")

    class TopicPartitions(Message):
        topic_id: Uuid = uuid()
        partitions: list[int] = array(int32)

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=True, default=None)
    member_id: str | None = string(nullable=True, default=None)
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    assignment: Assignment | None = struct(Assignment, nullable=True)
