"""Vote: a candidate for the leadership of the metadata log asks the other voters for their votes.

Version 1 identifies voters by directory, version 2 adds the pre-vote.
"""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, boolean, int16, int32, int64, string, uint16, uuid


class VoteRequest(Message, api=ApiKey.VOTE, versions=range(3), flexible=0):
    class TopicData(Message):
        topic_name: str = string()
        partitions: list[VoteRequest.PartitionData] = array("PartitionData")

    class PartitionData(Message):
        partition_index: int = int32()
        replica_epoch: int = int32()
        replica_id: int = int32()
        replica_directory_id: Uuid = uuid(since=1, ignorable=True)
        voter_directory_id: Uuid = uuid(since=1, ignorable=True)
        last_offset_epoch: int = int32()
        last_offset: int = int64()
        pre_vote: bool = boolean(since=2)

    cluster_id: str | None = string(nullable=True, default=None)
    voter_id: int = int32(since=1, default=-1, ignorable=True)
    topics: list[TopicData] = array(TopicData)


class VoteResponse(Message, api=ApiKey.VOTE, versions=range(3), flexible=0):
    class TopicData(Message):
        topic_name: str = string()
        partitions: list[VoteResponse.PartitionData] = array("PartitionData")

    class PartitionData(Message):
        partition_index: int = int32()
        error_code: int = int16()
        leader_id: int = int32()
        leader_epoch: int = int32()
        vote_granted: bool = boolean()

    class NodeEndpoint(Message):
        node_id: int = int32()
        host: str = string()
        port: int = uint16()

    error_code: int = int16()
    topics: list[TopicData] = array(TopicData)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, since=1, tag=0)
