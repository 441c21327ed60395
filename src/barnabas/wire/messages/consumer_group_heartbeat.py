"""ConsumerGroupHeartbeat: a member of a group of the consumer protocol joins, stays, reports and leaves, all in one.

Version 1 adds subscription by pattern and makes members choose their own id.
"""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, int16, int32, string, struct, uuid


class ConsumerGroupHeartbeatRequest(Message, api=ApiKey.CONSUMER_GROUP_HEARTBEAT, versions=range(2), flexible=0):
    class TopicPartitions(Message):
        topic_id: Uuid = uuid()
        partitions: list[int] = array(int32)

    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    instance_id: str | None = string(nullable=True, default=None)
    rack_id: str | None = string(nullable=True, default=None)
    rebalance_timeout_ms: int = int32(default=-1)
    subscribed_topic_names: list[str] | None = array(string, nullable=True, default=None)
    subscribed_topic_regex: str | None = string(since=1, nullable=True, default=None)
    server_assignor: str | None = string(nullable=True, default=None)
    topic_partitions: list[TopicPartitions] | None = array(TopicPartitions, nullable=True, default=None)


class ConsumerGroupHeartbeatResponse(Message, api=ApiKey.CONSUMER_GROUP_HEARTBEAT, versions=range(2), flexible=0):
    class Assignment(Message):
        topic_partitions: list[ConsumerGroupHeartbeatResponse.TopicPartitions] = array("TopicPartitions")

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
