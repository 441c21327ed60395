"""DescribeQuorum: tools ask for the leader, the voters and the observers of the metadata log.

Version 1 adds times of the last fetch, version 2 directories and endpoints.
"""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, int16, int32, int64, string, uint16, uuid


class DescribeQuorumRequest(Message, api=ApiKey.DESCRIBE_QUORUM, versions=range(3), flexible=0):
    class TopicData(Message):
        topic_name: str = string()
        partitions: list[DescribeQuorumRequest.PartitionData] = array("PartitionData")

    class PartitionData(Message):
        partition_index: int = int32()

    topics: list[TopicData] = array(TopicData)


class DescribeQuorumResponse(Message, api=ApiKey.DESCRIBE_QUORUM, versions=range(3), flexible=0):
    class TopicData(Message):
        topic_name: str = string()
        partitions: list[DescribeQuorumResponse.PartitionData] = array("PartitionData")

    class PartitionData(Message):
        partition_index: int = int32()
        error_code: int = int16()
        error_message: str | None = string(since=2, nullable=True, ignorable=True)
        leader_id: int = int32()
        leader_epoch: int = int32()
        high_watermark: int = int64()
        current_voters: list[DescribeQuorumResponse.ReplicaState] = array("ReplicaState")
        observers: list[DescribeQuorumResponse.ReplicaState] = array("ReplicaState")

    class Node(Message):
        node_id: int = int32()
        listeners: list[DescribeQuorumResponse.Listener] = array("Listener")

    class Listener(Message):
        name: str = string()
        host: str = string()
        port: int = uint16()

    class ReplicaState(Message):
        replica_id: int = int32()
        replica_directory_id: Uuid = uuid(since=2)
        log_end_offset: int = int64()
        last_fetch_timestamp: int = int64(since=1, default=-1, ignorable=True)
        last_caught_up_timestamp: int = int64(since=1, default=-1, ignorable=True)

    error_code: int = int16()
    error_message: str | None = string(since=2, nullable=True, ignorable=True)
    topics: list[TopicData] = array(TopicData)
    nodes: list[Node] = array(Node, since=2)
