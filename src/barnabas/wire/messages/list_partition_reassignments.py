"""ListPartitionReassignments: tools ask which partitions are being moved."""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, int16, int32, string


class ListPartitionReassignmentsRequest(
    Message, api=ApiKey.LIST_PARTITION_REASSIGNMENTS, versions=range(1), flexible=0
):
    class ListPartitionReassignmentsTopics(Message):
        name: str = string()
        partition_indexes: list[int] = array(int32)

    timeout_ms: int = int32(default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = array(
        ListPartitionReassignmentsTopics, nullable=True, default=None
    )


class ListPartitionReassignmentsResponse(
    Message, api=ApiKey.LIST_PARTITION_REASSIGNMENTS, versions=range(1), flexible=0
):
    class OngoingTopicReassignment(Message):
        name: str = string()
        partitions: list[ListPartitionReassignmentsResponse.OngoingPartitionReassignment] = array(
            "OngoingPartitionReassignment"
        )

    class OngoingPartitionReassignment(Message):
        partition_index: int = int32()
        replicas: list[int] = array(int32)
        adding_replicas: list[int] = array(int32)
        removing_replicas: list[int] = array(int32)

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=True)
    topics: list[OngoingTopicReassignment] = array(OngoingTopicReassignment)
