"""FetchSnapshot: a follower of the metadata log that is too far behind asks for a piece of a snapshot.

Version 1 adds directories and endpoints.
"""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, Records, array, int16, int32, int64, records, string, struct, uint16, uuid


class FetchSnapshotRequest(Message, api=ApiKey.FETCH_SNAPSHOT, versions=range(2), flexible=0):
    class TopicSnapshot(Message):
        name: str = string()
        partitions: list[FetchSnapshotRequest.PartitionSnapshot] = array("PartitionSnapshot")

    class PartitionSnapshot(Message):
        partition: int = int32()
        current_leader_epoch: int = int32()
        snapshot_id: FetchSnapshotRequest.SnapshotId = struct("SnapshotId")
        position: int = int64()
        replica_directory_id: Uuid = uuid(since=1, ignorable=True, tag=0)

    class SnapshotId(Message):
        end_offset: int = int64()
        epoch: int = int32()

    cluster_id: str | None = string(nullable=True, default=None, tag=0)
    replica_id: int = int32(default=-1)
    max_bytes: int = int32(default=2**31 - 1)
    topics: list[TopicSnapshot] = array(TopicSnapshot)


class FetchSnapshotResponse(Message, api=ApiKey.FETCH_SNAPSHOT, versions=range(2), flexible=0):
    class TopicSnapshot(Message):
        name: str = string()
        partitions: list[FetchSnapshotResponse.PartitionSnapshot] = array("PartitionSnapshot")

    class PartitionSnapshot(Message):
        index: int = int32()
        error_code: int = int16()
        snapshot_id: FetchSnapshotResponse.SnapshotId = struct("SnapshotId")
        current_leader: FetchSnapshotResponse.LeaderIdAndEpoch = struct("LeaderIdAndEpoch", tag=0)
        size: int = int64()
        position: int = int64()
        unaligned_records: Records | None = records()

    class SnapshotId(Message):
        end_offset: int = int64()
        epoch: int = int32()

    class LeaderIdAndEpoch(Message):
        leader_id: int = int32()
        leader_epoch: int = int32()

    class NodeEndpoint(Message):
        node_id: int = int32()
        host: str = string()
        port: int = uint16()

    throttle_time_ms: int = int32()
    error_code: int = int16()
    topics: list[TopicSnapshot] = array(TopicSnapshot)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, since=1, tag=0)
