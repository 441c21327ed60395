"""Fetch: consumers, followers and observers of the metadata log ask leaders for record batches from an offset on.

Version 7 adds incremental sessions, version 12 detects divergence by epoch, version 13 names topics by id, version 15
moves the follower's identity into a tag, version 17 adds its directory and version 18 its high watermark.
"""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, Records, array, int8, int16, int32, int64, records, string, struct, uuid


class FetchRequest(Message, api=ApiKey.FETCH, versions=range(4, 19), flexible=12):
    class ReplicaState(Message):
        replica_id: int = int32(default=-1)
        replica_epoch: int = int64(default=-1)

    class FetchTopic(Message):
        topic: str = string(until=12, ignorable=True)
        topic_id: Uuid = uuid(since=13, ignorable=True)
        partitions: list[FetchRequest.FetchPartition] = array("FetchPartition")

    class FetchPartition(Message):
        partition: int = int32()
        current_leader_epoch: int = int32(since=9, default=-1, ignorable=True)
        fetch_offset: int = int64()
        last_fetched_epoch: int = int32(since=12, default=-1)
        log_start_offset: int = int64(since=5, default=-1, ignorable=True)
        partition_max_bytes: int = int32()
        replica_directory_id: Uuid = uuid(since=17, ignorable=True, tag=0)
        high_watermark: int = int64(since=18, default=2**63 - 1, ignorable=True, tag=1)

    class ForgottenTopic(Message):
        topic: str = string(until=12, ignorable=True)
        topic_id: Uuid = uuid(since=13, ignorable=True)
        partitions: list[int] = array(int32)

    cluster_id: str | None = string(since=12, nullable=True, default=None, ignorable=True, tag=0)
    replica_id: int = int32(until=14, default=-1)
    replica_state: ReplicaState = struct(ReplicaState, since=15, tag=1)
    max_wait_ms: int = int32()
    min_bytes: int = int32()
    max_bytes: int = int32(default=2**31 - 1)
    isolation_level: int = int8()
    session_id: int = int32(since=7, ignorable=True)
    session_epoch: int = int32(since=7, default=-1, ignorable=True)
    topics: list[FetchTopic] = array(FetchTopic)
    forgotten_topics_data: list[ForgottenTopic] = array(ForgottenTopic, since=7)
    rack_id: str = string(since=11, ignorable=True)


class FetchResponse(Message, api=ApiKey.FETCH, versions=range(4, 19), flexible=12):
    class FetchableTopicResponse(Message):
        topic: str = string(until=12, ignorable=True)
        topic_id: Uuid = uuid(since=13, ignorable=True)
        partitions: list[FetchResponse.PartitionData] = array("PartitionData")

    class PartitionData(Message):
        partition_index: int = int32()
        error_code: int = int16()
        high_watermark: int = int64()
        last_stable_offset: int = int64(default=-1)
        log_start_offset: int = int64(since=5, default=-1, ignorable=True)
        diverging_epoch: FetchResponse.EpochEndOffset = struct("EpochEndOffset", since=12, tag=0)
        current_leader: FetchResponse.LeaderIdAndEpoch = struct("LeaderIdAndEpoch", since=12, tag=1)
        snapshot_id: FetchResponse.SnapshotId = struct("SnapshotId", since=12, tag=2)
        aborted_transactions: list[FetchResponse.AbortedTransaction] | None = array("AbortedTransaction", nullable=True)
        preferred_read_replica: int = int32(since=11, default=-1)
        records: Records | None = records(nullable=True)

    class EpochEndOffset(Message):
        epoch: int = int32(default=-1)
        end_offset: int = int64(default=-1)

    class LeaderIdAndEpoch(Message):
        leader_id: int = int32(default=-1)
        leader_epoch: int = int32(default=-1)

    class SnapshotId(Message):
        end_offset: int = int64(default=-1)
        epoch: int = int32(default=-1)

    class AbortedTransaction(Message):
        producer_id: int = int64()
        first_offset: int = int64()

    class NodeEndpoint(Message):
        node_id: int = int32()
        host: str = string()
        port: int = int32()
        rack: str | None = string(nullable=True, default=None)

    throttle_time_ms: int = int32()
    error_code: int = int16(since=7, ignorable=True)
    session_id: int = int32(since=7)
    responses: list[FetchableTopicResponse] = array(FetchableTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, since=16, tag=0)
