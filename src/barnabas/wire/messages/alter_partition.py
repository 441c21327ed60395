"""AlterPartition: the leader of a partition asks the controller to change its in-sync replicas.

Version 3 adds the broker epoch of every replica, so that a restarted one is not taken for its former self.
"""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, int8, int16, int32, int64, uuid


class AlterPartitionRequest(Message, api=ApiKey.ALTER_PARTITION, versions=range(2, 4), flexible=0):
    class TopicData(Message):
        topic_id: Uuid = uuid()
        partitions: list[AlterPartitionRequest.PartitionData] = array("PartitionData")

    class PartitionData(Message):
        partition_index: int = int32()
        leader_epoch: int = int32()
        new_isr: list[int] = array(int32, until=2)
        new_isr_with_epochs: list[AlterPartitionRequest.BrokerState] = array("BrokerState", since=3)
        leader_recovery_state: int = int8()
        partition_epoch: int = int32()

    class BrokerState(Message):
        broker_id: int = int32()
        broker_epoch: int = int64(default=-1)

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    topics: list[TopicData] = array(TopicData)


class AlterPartitionResponse(Message, api=ApiKey.ALTER_PARTITION, versions=range(2, 4), flexible=0):
    class TopicData(Message):
        topic_id: Uuid = uuid()
        partitions: list[AlterPartitionResponse.PartitionData] = array("PartitionData")

    class PartitionData(Message):
        partition_index: int = int32()
        error_code: int = int16()
        leader_id: int = int32()
        leader_epoch: int = int32()
        isr: list[int] = array(int32)
        leader_recovery_state: int = int8()
        partition_epoch: int = int32()

    throttle_time_ms: int = int32()
    error_code: int = int16()
    topics: list[TopicData] = array(TopicData)
