"""EndQuorumEpoch: a leader that steps down names its preferred successors.

Version 1 adds endpoints and directories.
"""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, int16, int32, string, uint16, uuid


class EndQuorumEpochRequest(Message, api=ApiKey.END_QUORUM_EPOCH, versions=range(2), flexible=1):
    class TopicData(Message):
        topic_name: str = string()
        partitions: list[EndQuorumEpochRequest.PartitionData] = array("PartitionData")

    class PartitionData(Message):
        partition_index: int = int32()
        leader_id: int = int32()
        leader_epoch: int = int32()
        preferred_successors: list[int] = array(int32, until=0, ignorable=True)
        preferred_candidates: list[EndQuorumEpochRequest.ReplicaInfo] = array("ReplicaInfo", since=1, ignorable=True)

    class ReplicaInfo(Message):
        candidate_id: int = int32()
        candidate_directory_id: Uuid = uuid()

    class LeaderEndpoint(Message):
        name: str = string()
        host: str = string()
        port: int = uint16()

    cluster_id: str | None = string(nullable=True, default=None)
    topics: list[TopicData] = array(TopicData)
    leader_endpoints: list[LeaderEndpoint] = array(LeaderEndpoint, since=1, ignorable=True)


class EndQuorumEpochResponse(Message, api=ApiKey.END_QUORUM_EPOCH, versions=range(2), flexible=1):
    class TopicData(Message):
        topic_name: str = string()
        partitions: list[EndQuorumEpochResponse.PartitionData] = array("PartitionData")

    class PartitionData(Message):
        partition_index: int = int32()
        error_code: int = int16()
        leader_id: int = int32()
        leader_epoch: int = int32()

    class NodeEndpoint(Message):
        node_id: int = int32()
        host: str = string()
        port: int = uint16()

    error_code: int = int16()
    topics: list[TopicData] = array(TopicData)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, since=1, tag=0)
