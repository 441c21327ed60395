"""ListPartitionReassignments: the partitions that are being moved, with their old and new brokers.

Versions: 0.
Behaviour: partitions that are not being moved are left out of the response.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.access import permissions
from barnabas.broker.requests.api import CONTROLLER, Api
from barnabas.broker.requests.portions import Portions
from barnabas.broker.requests.request import Request
from barnabas.metadata.reassignments import list_partition_reassignments
from barnabas.model.errors import NOT_CONTROLLER, ApiError
from barnabas.security.acl import Operation
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


def handle(request: Request, message: ListPartitionReassignmentsRequest) -> ListPartitionReassignmentsResponse:
    controller = request.broker.controller
    if not controller.is_active:
        raise ApiError(NOT_CONTROLLER)
    return list_partition_reassignments(controller.image, message)


API: Final = Api(
    ApiKey.LIST_PARTITION_REASSIGNMENTS,
    handle,
    at=CONTROLLER,
    portions=(Portions("topics.partition_indexes", "topics.partitions"),),
    needs=permissions.cluster(Operation.DESCRIBE),
    is_forwarded=True,
)
