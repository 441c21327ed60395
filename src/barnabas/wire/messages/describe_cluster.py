"""DescribeCluster: tools ask for the brokers or, from version 1 on, the controllers of the cluster.

Version 2 can include fenced brokers.
"""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, boolean, int8, int16, int32, string


class DescribeClusterRequest(Message, api=ApiKey.DESCRIBE_CLUSTER, versions=range(3), flexible=0):
    include_cluster_authorized_operations: bool = boolean()
    endpoint_type: int = int8(since=1, default=1)
    include_fenced_brokers: bool = boolean(since=2)


class DescribeClusterResponse(Message, api=ApiKey.DESCRIBE_CLUSTER, versions=range(3), flexible=0):
    class DescribeClusterBroker(Message):
        broker_id: int = int32()
        host: str = string()
        port: int = int32()
        rack: str | None = string(nullable=True, default=None)
        is_fenced: bool = boolean(since=2)

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=True, default=None)
    endpoint_type: int = int8(since=1, default=1)
    cluster_id: str = string()
    controller_id: int = int32(default=-1)
    brokers: list[DescribeClusterBroker] = array(DescribeClusterBroker)
    cluster_authorized_operations: int = int32(default=-(2**31))
