"""AlterPartitionReassignments: an administrator gives partitions new replicas or calls a move off.

Null replicas call a move off. Version 1 can forbid a change of the replication factor.
"""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, boolean, int16, int32, string


class AlterPartitionReassignmentsRequest(
    Message, api=ApiKey.ALTER_PARTITION_REASSIGNMENTS, versions=range(2), flexible=0
):
    class ReassignableTopic(Message):
        name: str = string()
        partitions: list[AlterPartitionReassignmentsRequest.ReassignablePartition] = array("ReassignablePartition")

    class ReassignablePartition(Message):
        partition_index: int = int32()
        replicas: list[int] | None = array(int32, nullable=True, default=None)

    timeout_ms: int = int32(default=60000)
    allow_replication_factor_change: bool = boolean(since=1, default=True)
    topics: list[ReassignableTopic] = array(ReassignableTopic)


class AlterPartitionReassignmentsResponse(
    Message, api=ApiKey.ALTER_PARTITION_REASSIGNMENTS, versions=range(2), flexible=0
):
    class ReassignableTopicResponse(Message):
        name: str = string()
        partitions: list[AlterPartitionReassignmentsResponse.ReassignablePartitionResponse] = array(
            "ReassignablePartitionResponse"
        )

    class ReassignablePartitionResponse(Message):
        partition_index: int = int32()
        error_code: int = int16()
        error_message: str | None = string(nullable=True)

    throttle_time_ms: int = int32()
    allow_replication_factor_change: bool = boolean(since=1, default=True, ignorable=True)
    error_code: int = int16()
    error_message: str | None = string(nullable=True)
    responses: list[ReassignableTopicResponse] = array(ReassignableTopicResponse)
