"""Metadata: clients ask for the brokers and for the leaders and replicas of topics.

Null asks for all topics, an empty list for none (version 0: empty for all). Version 10 adds topic ids, version 12 lets
a client ask by id, version 13 adds an error for the whole answer.
"""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, boolean, int16, int32, string, uuid


class MetadataRequest(Message, api=ApiKey.METADATA, versions=range(14), flexible=9):
    class MetadataRequestTopic(Message):
        topic_id: Uuid = uuid(since=10, ignorable=True)
        name: str | None = string(nullable=True, nullable_since=10)

    topics: list[MetadataRequestTopic] | None = array(MetadataRequestTopic, nullable=True, nullable_since=1)
    allow_auto_topic_creation: bool = boolean(since=4, default=True)
    include_cluster_authorized_operations: bool = boolean(since=8, until=10)
    include_topic_authorized_operations: bool = boolean(since=8)


class MetadataResponse(Message, api=ApiKey.METADATA, versions=range(14), flexible=9):
    class MetadataResponseBroker(Message):
        node_id: int = int32()
        host: str = string()
        port: int = int32()
        rack: str | None = string(since=1, nullable=True, default=None, ignorable=True)

    class MetadataResponseTopic(Message):
        error_code: int = int16()
        name: str | None = string(nullable=True, nullable_since=12)
        topic_id: Uuid = uuid(since=10, ignorable=True)
        is_internal: bool = boolean(since=1, ignorable=True)
        partitions: list[MetadataResponse.MetadataResponsePartition] = array("MetadataResponsePartition")
        topic_authorized_operations: int = int32(since=8, default=-(2**31))

    class MetadataResponsePartition(Message):
        error_code: int = int16()
        partition_index: int = int32()
        leader_id: int = int32()
        leader_epoch: int = int32(since=7, default=-1, ignorable=True)
        replica_nodes: list[int] = array(int32)
        isr_nodes: list[int] = array(int32)
        offline_replicas: list[int] = array(int32, since=5, ignorable=True)

    throttle_time_ms: int = int32(since=3, ignorable=True)
    brokers: list[MetadataResponseBroker] = array(MetadataResponseBroker)
    cluster_id: str | None = string(since=2, nullable=True, default=None, ignorable=True)
    controller_id: int = int32(since=1, default=-1, ignorable=True)
    topics: list[MetadataResponseTopic] = array(MetadataResponseTopic)
    cluster_authorized_operations: int = int32(since=8, until=10, default=-(2**31))
    error_code: int = int16(since=13, ignorable=True)
