"""AlterReplicaLogDirs: an administrator moves replicas between the log directories of a broker."""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, int16, int32, string


class AlterReplicaLogDirsRequest(Message, api=ApiKey.ALTER_REPLICA_LOG_DIRS, versions=range(1, 3), flexible=2):
    class AlterReplicaLogDir(Message):
        path: str = string()
        topics: list[AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic] = array("AlterReplicaLogDirTopic")

    class AlterReplicaLogDirTopic(Message):
        name: str = string()
        partitions: list[int] = array(int32)

    dirs: list[AlterReplicaLogDir] = array(AlterReplicaLogDir)


class AlterReplicaLogDirsResponse(Message, api=ApiKey.ALTER_REPLICA_LOG_DIRS, versions=range(1, 3), flexible=2):
    class AlterReplicaLogDirTopicResult(Message):
        topic_name: str = string()
        partitions: list[AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult] = array(
            "AlterReplicaLogDirPartitionResult"
        )

    class AlterReplicaLogDirPartitionResult(Message):
        partition_index: int = int32()
        error_code: int = int16()

    throttle_time_ms: int = int32()
    results: list[AlterReplicaLogDirTopicResult] = array(AlterReplicaLogDirTopicResult)
