"""CreateTopics: an administrator creates topics, by a number of partitions or by an assignment of replicas.

Version 5 answers with the settings, version 7 with the topic's id.
"""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, boolean, int8, int16, int32, string, uuid


class CreateTopicsRequest(Message, api=ApiKey.CREATE_TOPICS, versions=range(2, 8), flexible=5):
    class CreatableTopic(Message):
        name: str = string()
        num_partitions: int = int32()
        replication_factor: int = int16()
        assignments: list[CreateTopicsRequest.CreatableReplicaAssignment] = array("CreatableReplicaAssignment")
        configs: list[CreateTopicsRequest.CreatableTopicConfig] = array("CreatableTopicConfig")

    class CreatableReplicaAssignment(Message):
        partition_index: int = int32()
        broker_ids: list[int] = array(int32)

    class CreatableTopicConfig(Message):
        name: str = string()
        value: str | None = string(nullable=True)

    topics: list[CreatableTopic] = array(CreatableTopic)
    timeout_ms: int = int32(default=60000)
    validate_only: bool = boolean()


class CreateTopicsResponse(Message, api=ApiKey.CREATE_TOPICS, versions=range(2, 8), flexible=5):
    class CreatableTopicResult(Message):
        name: str = string()
        topic_id: Uuid = uuid(since=7, ignorable=True)
        error_code: int = int16()
        error_message: str | None = string(nullable=True)
        topic_config_error_code: int = int16(since=5, ignorable=True, tag=0)
        num_partitions: int = int32(since=5, default=-1, ignorable=True)
        replication_factor: int = int16(since=5, default=-1, ignorable=True)
        configs: list[CreateTopicsResponse.CreatableTopicConfigs] | None = array(
            "CreatableTopicConfigs", since=5, nullable=True, ignorable=True
        )

    class CreatableTopicConfigs(Message):
        name: str = string()
        value: str | None = string(nullable=True)
        read_only: bool = boolean()
        config_source: int = int8(default=-1)
        is_sensitive: bool = boolean()

    throttle_time_ms: int = int32()
    topics: list[CreatableTopicResult] = array(CreatableTopicResult)
