"""ElectLeaders: an administrator has leaders elected, the preferred ones or, knowingly unclean, any.

Null stands for all partitions. Version 1 adds the kind of election.
"""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, int8, int16, int32, string


class ElectLeadersRequest(Message, api=ApiKey.ELECT_LEADERS, versions=range(3), flexible=2):
    class TopicPartitions(Message):
        topic: str = string()
        partitions: list[int] = array(int32)

    election_type: int = int8(since=1)
    topic_partitions: list[TopicPartitions] | None = array(TopicPartitions, nullable=True)
    timeout_ms: int = int32(default=60000)


class ElectLeadersResponse(Message, api=ApiKey.ELECT_LEADERS, versions=range(3), flexible=2):
    class ReplicaElectionResult(Message):
        topic: str = string()
        partition_result: list[ElectLeadersResponse.PartitionResult] = array("PartitionResult")

    class PartitionResult(Message):
        partition_id: int = int32()
        error_code: int = int16()
        error_message: str | None = string(nullable=True)

    throttle_time_ms: int = int32()
    error_code: int = int16(since=1)
    replica_election_results: list[ReplicaElectionResult] = array(ReplicaElectionResult)
