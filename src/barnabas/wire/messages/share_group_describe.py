"""ShareGroupDescribe: the state and the members of share groups."""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, boolean, int16, int32, string, struct, uuid


class ShareGroupDescribeRequest(Message, api=ApiKey.SHARE_GROUP_DESCRIBE, versions=range(1, 2), flexible=0):
    group_ids: list[str] = array(string)
    include_authorized_operations: bool = boolean()


class ShareGroupDescribeResponse(Message, api=ApiKey.SHARE_GROUP_DESCRIBE, versions=range(1, 2), flexible=0):
    class DescribedGroup(Message):
        error_code: int = int16()
        error_message: str | None = string(nullable=True, default=None)
        group_id: str = string()
        group_state: str = string()
        group_epoch: int = int32()
        assignment_epoch: int = int32()
        assignor_name: str = string()
        members: list[ShareGroupDescribeResponse.Member] = array("Member")
        authorized_operations: int = int32(default=-(2**31))

    class Member(Message):
        member_id: str = string()
        rack_id: str | None = string(nullable=True, default=None)
        member_epoch: int = int32()
        client_id: str = string()
        client_host: str = string()
        subscribed_topic_names: list[str] = array(string)
        assignment: ShareGroupDescribeResponse.Assignment = struct("Assignment")

    class TopicPartitions(Message):
        topic_id: Uuid = uuid()
        topic_name: str = string()
        partitions: list[int] = array(int32)

    class Assignment(Message):
        topic_partitions: list[ShareGroupDescribeResponse.TopicPartitions] = array("TopicPartitions")

    throttle_time_ms: int = int32()
    groups: list[DescribedGroup] = array(DescribedGroup)
