"""DescribeCluster on a controller's listener: the id of the cluster, its controllers and the active one.

Versions: 0–2 (1 and later have the endpoint type).
Behaviour: only the endpoint type of controllers is answered; registered controllers are listed under this listener.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.access import permissions
from barnabas.broker.requests.api import CONTROLLER, Api
from barnabas.broker.requests.request import Request
from barnabas.model import errors
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse

BROKERS: Final = 1
CONTROLLERS: Final = 2


def handle(request: Request, message: DescribeClusterRequest) -> DescribeClusterResponse:
    broker = request.broker
    if message.endpoint_type != CONTROLLERS:
        is_known = message.endpoint_type == BROKERS
        error = errors.MISMATCHED_ENDPOINT_TYPE if is_known else errors.UNSUPPORTED_ENDPOINT_TYPE
        return DescribeClusterResponse(
            error_code=error.code, error_message=error.text, endpoint_type=message.endpoint_type
        )
    response = DescribeClusterResponse(
        endpoint_type=CONTROLLERS, cluster_id=broker.cluster_id, controller_id=broker.raft.leader.leader_id
    )
    controllers = broker.controller.image.controllers
    for node_id in sorted(controllers):
        for end_point in controllers[node_id].end_points:
            if end_point.name == request.connection.listener_name:
                response.brokers.append(
                    DescribeClusterResponse.DescribeClusterBroker(
                        broker_id=node_id, host=end_point.host, port=end_point.port
                    )
                )
    return response


API: Final = Api(ApiKey.DESCRIBE_CLUSTER, handle, at=CONTROLLER, needs=permissions.anyone)
