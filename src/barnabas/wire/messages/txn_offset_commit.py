"""TxnOffsetCommit: a producer stores a group's offsets as a part of its transaction.

Version 3 adds the member and its generation, so that a zombie is fenced.
"""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, int16, int32, int64, string


class TxnOffsetCommitRequest(Message, api=ApiKey.TXN_OFFSET_COMMIT, versions=range(6), flexible=3):
    class TxnOffsetCommitRequestTopic(Message):
        name: str = string()
        partitions: list[TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition] = array(
            "TxnOffsetCommitRequestPartition"
        )

    class TxnOffsetCommitRequestPartition(Message):
        partition_index: int = int32()
        committed_offset: int = int64()
        committed_leader_epoch: int = int32(since=2, default=-1, ignorable=True)
        committed_metadata: str | None = string(nullable=True)

    transactional_id: str = string()
    group_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    generation_id: int = int32(since=3, default=-1)
    member_id: str = string(since=3)
    group_instance_id: str | None = string(since=3, nullable=True, default=None)
    topics: list[TxnOffsetCommitRequestTopic] = array(TxnOffsetCommitRequestTopic)


class TxnOffsetCommitResponse(Message, api=ApiKey.TXN_OFFSET_COMMIT, versions=range(6), flexible=3):
    class TxnOffsetCommitResponseTopic(Message):
        name: str = string()
        partitions: list[TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition] = array(
            "TxnOffsetCommitResponsePartition"
        )

    class TxnOffsetCommitResponsePartition(Message):
        partition_index: int = int32()
        error_code: int = int16()

    throttle_time_ms: int = int32()
    topics: list[TxnOffsetCommitResponseTopic] = array(TxnOffsetCommitResponseTopic)
