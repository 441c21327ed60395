"""DescribeCluster: the id of the cluster and its brokers.

Versions: 0–2 (2 can include fenced brokers).
Behaviour: a listener for clients answers only the endpoint type of brokers.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.access import permissions
from barnabas.broker.access.authorized_operations import cluster_operations
from barnabas.broker.requests.api import CLIENT, Api
from barnabas.broker.requests.request import Request
from barnabas.model import errors
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse

BROKERS: Final = 1
CONTROLLERS: Final = 2


def handle(request: Request, message: DescribeClusterRequest) -> DescribeClusterResponse:
    broker = request.broker
    if message.endpoint_type != BROKERS:
        is_known = message.endpoint_type == CONTROLLERS
        error = errors.MISMATCHED_ENDPOINT_TYPE if is_known else errors.UNSUPPORTED_ENDPOINT_TYPE
        return DescribeClusterResponse(error_code=error.code, error_message=error.text)
    response = DescribeClusterResponse(cluster_id=broker.cluster_id, controller_id=broker.broker_id)
    if message.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(request)
    for node_id in sorted(broker.image.brokers):
        node = broker.image.brokers[node_id]
        endpoint = broker.endpoint_of(node_id, request.connection)
        if endpoint is None or (node.is_fenced and not message.include_fenced_brokers):
            continue
        host, port, rack = endpoint
        response.brokers.append(
            DescribeClusterResponse.DescribeClusterBroker(
                broker_id=node_id, host=host, port=port, rack=rack, is_fenced=node.is_fenced
            )
        )
    return response


API: Final = Api(ApiKey.DESCRIBE_CLUSTER, handle, at=CLIENT, needs=permissions.anyone)
