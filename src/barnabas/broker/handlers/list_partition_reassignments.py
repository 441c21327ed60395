"""ListPartitionReassignments: which partitions are on the move, and between which brokers.

Versions: 0.
Behaviour: partitions that are not being moved are left out of the answer.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from barnabas.broker.requests.request import Request
from barnabas.metadata.controller import list_partition_reassignments
from barnabas.model.errors import NOT_CONTROLLER, ApiError
from barnabas.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


def handle(request: Request, message: ListPartitionReassignmentsRequest) -> ListPartitionReassignmentsResponse:
    controller = request.broker.controller
    if not controller.is_active:
        raise ApiError(NOT_CONTROLLER)
    return list_partition_reassignments(controller.image, message)
