"""ShareFetch: a member of a share group acquires records, and acknowledges those of earlier fetches.

Version 2 adds the acquire mode (KIP-1206) and renewal of locks (KIP-1222).
"""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.api import ApiKey
from barnabas.wire.message import (
    Message,
    Records,
    array,
    boolean,
    int8,
    int16,
    int32,
    int64,
    records,
    string,
    struct,
    uuid,
)


class ShareFetchRequest(Message, api=ApiKey.SHARE_FETCH, versions=range(1, 3), flexible=0):
    class FetchTopic(Message):
        topic_id: Uuid = uuid()
        partitions: list[ShareFetchRequest.FetchPartition] = array("FetchPartition")

    class FetchPartition(Message):
        partition_index: int = int32()
        acknowledgement_batches: list[ShareFetchRequest.AcknowledgementBatch] = array("AcknowledgementBatch")

    class AcknowledgementBatch(Message):
        first_offset: int = int64()
        last_offset: int = int64()
        acknowledge_types: list[int] = array(int8)

    class ForgottenTopic(Message):
        topic_id: Uuid = uuid()
        partitions: list[int] = array(int32)

    group_id: str | None = string(nullable=True, default=None)
    member_id: str | None = string(nullable=True)
    share_session_epoch: int = int32()
    max_wait_ms: int = int32()
    min_bytes: int = int32()
    max_bytes: int = int32(default=2**31 - 1)
    max_records: int = int32()
    batch_size: int = int32()
    share_acquire_mode: int = int8(since=2, ignorable=True)
    is_renew_ack: bool = boolean(since=2)
    topics: list[FetchTopic] = array(FetchTopic)
    forgotten_topics_data: list[ForgottenTopic] = array(ForgottenTopic)


class ShareFetchResponse(Message, api=ApiKey.SHARE_FETCH, versions=range(1, 3), flexible=0):
    class ShareFetchableTopicResponse(Message):
        topic_id: Uuid = uuid()
        partitions: list[ShareFetchResponse.PartitionData] = array("PartitionData")

    class PartitionData(Message):
        partition_index: int = int32()
        error_code: int = int16()
        error_message: str | None = string(nullable=True, default=None)
        acknowledge_error_code: int = int16()
        acknowledge_error_message: str | None = string(nullable=True, default=None)
        current_leader: ShareFetchResponse.LeaderIdAndEpoch = struct("LeaderIdAndEpoch")
        records: Records = records()
        acquired_records: list[ShareFetchResponse.AcquiredRecords] = array("AcquiredRecords")

    class LeaderIdAndEpoch(Message):
        leader_id: int = int32()
        leader_epoch: int = int32()

    class AcquiredRecords(Message):
        first_offset: int = int64()
        last_offset: int = int64()
        delivery_count: int = int16()

    class NodeEndpoint(Message):
        node_id: int = int32()
        host: str = string()
        port: int = int32()
        rack: str | None = string(nullable=True, default=None)

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=True, default=None)
    acquisition_lock_timeout_ms: int = int32()
    responses: list[ShareFetchableTopicResponse] = array(ShareFetchableTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint)
