"""AssignReplicasToDirs: a broker tells the controller in which log directories its replicas lie."""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, int16, int32, int64, uuid


class AssignReplicasToDirsRequest(Message, api=ApiKey.ASSIGN_REPLICAS_TO_DIRS, versions=range(1), flexible=0):
    class DirectoryData(Message):
        id: Uuid = uuid()
        topics: list[AssignReplicasToDirsRequest.TopicData] = array("TopicData")

    class TopicData(Message):
        topic_id: Uuid = uuid()
        partitions: list[AssignReplicasToDirsRequest.PartitionData] = array("PartitionData")

    class PartitionData(Message):
        partition_index: int = int32()

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    directories: list[DirectoryData] = array(DirectoryData)


class AssignReplicasToDirsResponse(Message, api=ApiKey.ASSIGN_REPLICAS_TO_DIRS, versions=range(1), flexible=0):
    class DirectoryData(Message):
        id: Uuid = uuid()
        topics: list[AssignReplicasToDirsResponse.TopicData] = array("TopicData")

    class TopicData(Message):
        topic_id: Uuid = uuid()
        partitions: list[AssignReplicasToDirsResponse.PartitionData] = array("PartitionData")

    class PartitionData(Message):
        partition_index: int = int32()
        error_code: int = int16()

    throttle_time_ms: int = int32()
    error_code: int = int16()
    directories: list[DirectoryData] = array(DirectoryData)
