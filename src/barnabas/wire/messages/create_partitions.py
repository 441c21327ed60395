"""CreatePartitions: an administrator raises the number of partitions of topics."""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, boolean, int16, int32, string


class CreatePartitionsRequest(Message, api=ApiKey.CREATE_PARTITIONS, versions=range(4), flexible=2):
    class CreatePartitionsTopic(Message):
        name: str = string()
        count: int = int32()
        assignments: list[CreatePartitionsRequest.CreatePartitionsAssignment] | None = array(
            "CreatePartitionsAssignment", nullable=True
        )

    class CreatePartitionsAssignment(Message):
        broker_ids: list[int] = array(int32)

    topics: list[CreatePartitionsTopic] = array(CreatePartitionsTopic)
    timeout_ms: int = int32()
    validate_only: bool = boolean()


class CreatePartitionsResponse(Message, api=ApiKey.CREATE_PARTITIONS, versions=range(4), flexible=2):
    class CreatePartitionsTopicResult(Message):
        name: str = string()
        error_code: int = int16()
        error_message: str | None = string(nullable=True, default=None)

    throttle_time_ms: int = int32()
    results: list[CreatePartitionsTopicResult] = array(CreatePartitionsTopicResult)
