"""ElectLeaders: give partitions their preferred leaders back, or any live one where that is asked for.

Versions: 0–2 (1 and up can ask for an unclean election).
Behaviour: each partition succeeds or fails alone; asked about all of them, those that need no election are left out.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.access import permissions
from barnabas.broker.controller.requests import submit
from barnabas.broker.requests.api import CONTROLLER, Api
from barnabas.broker.requests.request import Request
from barnabas.metadata.elections import elect_leaders
from barnabas.model.errors import ApiError
from barnabas.security.acl import Operation
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse


async def handle(request: Request, message: ElectLeadersRequest) -> ElectLeadersResponse:
    return await submit(request.broker, lambda image, facts: elect_leaders(image, message, facts))


def refuse(message: ElectLeadersRequest, error: ApiError) -> ElectLeadersResponse:
    """Version 0 has no error for the whole, so it is said of every partition; asked about all, there are none."""
    if message.topic_partitions is None:
        return ElectLeadersResponse(error_code=error.error.code)
    row = ElectLeadersResponse.PartitionResult
    return ElectLeadersResponse(
        replica_election_results=[
            ElectLeadersResponse.ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    row(partition_id=index, error_code=error.error.code, error_message=error.message)
                    for index in topic.partitions
                ],
            )
            for topic in message.topic_partitions
        ]
    )


API: Final = Api(
    ApiKey.ELECT_LEADERS,
    handle,
    at=CONTROLLER,
    needs=permissions.cluster(Operation.ALTER),
    refuse=refuse,
    is_forwarded=True,
    audit=lambda message: [row.topic for row in message.topic_partitions or ()],
)
