"""ShareAcknowledge: a member of a share group acknowledges records without fetching more.

Version 2 adds renewal of locks (KIP-1222).
"""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, boolean, int8, int16, int32, int64, string, struct, uuid


class ShareAcknowledgeRequest(Message, api=ApiKey.SHARE_ACKNOWLEDGE, versions=range(1, 3), flexible=0):
    class AcknowledgeTopic(Message):
        topic_id: Uuid = uuid()
        partitions: list[ShareAcknowledgeRequest.AcknowledgePartition] = array("AcknowledgePartition")

    class AcknowledgePartition(Message):
        partition_index: int = int32()
        acknowledgement_batches: list[ShareAcknowledgeRequest.AcknowledgementBatch] = array("AcknowledgementBatch")

    class AcknowledgementBatch(Message):
        first_offset: int = int64()
        last_offset: int = int64()
        acknowledge_types: list[int] = array(int8)

    group_id: str | None = string(nullable=True, default=None)
    member_id: str | None = string(nullable=True)
    share_session_epoch: int = int32()
    is_renew_ack: bool = boolean(since=2)
    topics: list[AcknowledgeTopic] = array(AcknowledgeTopic)


class ShareAcknowledgeResponse(Message, api=ApiKey.SHARE_ACKNOWLEDGE, versions=range(1, 3), flexible=0):
    class ShareAcknowledgeTopicResponse(Message):
        topic_id: Uuid = uuid()
        partitions: list[ShareAcknowledgeResponse.PartitionData] = array("PartitionData")

    class PartitionData(Message):
        partition_index: int = int32()
        error_code: int = int16()
        error_message: str | None = string(nullable=True, default=None)
        current_leader: ShareAcknowledgeResponse.LeaderIdAndEpoch = struct("LeaderIdAndEpoch")

    class LeaderIdAndEpoch(Message):
        leader_id: int = int32()
        leader_epoch: int = int32()

    class NodeEndpoint(Message):
        node_id: int = int32()
        host: str = string()
        port: int = int32()
        rack: str | None = string(nullable=True, default=None)

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=True, default=None)
    acquisition_lock_timeout_ms: int = int32(since=2, ignorable=True)
    responses: list[ShareAcknowledgeTopicResponse] = array(ShareAcknowledgeTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint)
