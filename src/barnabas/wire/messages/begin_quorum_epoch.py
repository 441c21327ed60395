"""BeginQuorumEpoch: the new leader of the metadata log tells the voters of its election.

Version 1 adds endpoints and directories.
"""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, int16, int32, string, uint16, uuid


class BeginQuorumEpochRequest(Message, api=ApiKey.BEGIN_QUORUM_EPOCH, versions=range(2), flexible=1):
    class TopicData(Message):
        topic_name: str = string()
        partitions: list[BeginQuorumEpochRequest.PartitionData] = array("PartitionData")

    class PartitionData(Message):
        partition_index: int = int32()
        voter_directory_id: Uuid = uuid(since=1, ignorable=True)
        leader_id: int = int32()
        leader_epoch: int = int32()

    class LeaderEndpoint(Message):
        name: str = string()
        host: str = string()
        port: int = uint16()

    cluster_id: str | None = string(nullable=True, default=None)
    voter_id: int = int32(since=1, default=-1, ignorable=True)
    topics: list[TopicData] = array(TopicData)
    leader_endpoints: list[LeaderEndpoint] = array(LeaderEndpoint, since=1, ignorable=True)


class BeginQuorumEpochResponse(Message, api=ApiKey.BEGIN_QUORUM_EPOCH, versions=range(2), flexible=1):
    class TopicData(Message):
        topic_name: str = string()
        partitions: list[BeginQuorumEpochResponse.PartitionData] = array("PartitionData")

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
