"""AlterPartitionReassignments: move partitions to other brokers, or call such a move off.

Versions: 0–1 (1 can forbid a change of the replication factor).
Behaviour: each partition succeeds or fails alone; a move is done once all new replicas are in sync.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from barnabas.broker.controller.requests import submit
from barnabas.broker.requests.request import Request
from barnabas.metadata.controller import alter_partition_reassignments
from barnabas.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)


async def handle(request: Request, message: AlterPartitionReassignmentsRequest) -> AlterPartitionReassignmentsResponse:
    return await submit(request.broker, lambda image, facts: alter_partition_reassignments(image, message, facts))
