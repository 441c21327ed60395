"""AlterPartitionReassignments: move partitions to other brokers, or cancel a move.

Versions: 0–1 (1 can forbid a change of the replication factor).
Behaviour: each partition succeeds or fails alone; a move is complete when all new replicas are in sync.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.access import audit, permissions
from barnabas.broker.controller.requests import submit
from barnabas.broker.requests.api import CONTROLLER, Api
from barnabas.broker.requests.portions import Portions
from barnabas.broker.requests.request import Request
from barnabas.metadata.reassignments import alter_partition_reassignments
from barnabas.model.errors import ApiError
from barnabas.security.acl import Operation
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)


async def handle(request: Request, message: AlterPartitionReassignmentsRequest) -> AlterPartitionReassignmentsResponse:
    return await submit(request.broker, lambda image, facts: alter_partition_reassignments(image, message, facts))


def refuse(message: AlterPartitionReassignmentsRequest, error: ApiError) -> AlterPartitionReassignmentsResponse:
    """The error for the whole and for every partition, as Kafka answers."""
    response = AlterPartitionReassignmentsResponse
    row = response.ReassignablePartitionResponse
    return response(
        error_code=error.error.code,
        error_message=error.message,
        responses=[
            response.ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    row(partition_index=each.partition_index, error_code=error.error.code, error_message=error.message)
                    for each in topic.partitions
                ],
            )
            for topic in message.topics
        ],
    )


API: Final = Api(
    ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    handle,
    at=CONTROLLER,
    portions=(Portions("topics.partitions", "responses.partitions"),),
    needs=permissions.cluster(Operation.ALTER),
    refuse=refuse,
    is_forwarded=True,
    audit=audit.topics,
)
