"""ElectLeaders: elect the preferred leader of partitions, or any live replica if the election is unclean.

Versions: 0–2 (1 and later have unclean elections).
Behaviour: each partition succeeds or fails alone; a request for all partitions leaves out those that need no election.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.access import permissions
from barnabas.broker.controller.requests import submit
from barnabas.broker.requests.api import CONTROLLER, Api
from barnabas.broker.requests.portions import Portions
from barnabas.broker.requests.request import Request
from barnabas.metadata.elections import elect_leaders
from barnabas.model.errors import ApiError
from barnabas.security.acl import Operation
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse


async def handle(request: Request, message: ElectLeadersRequest) -> ElectLeadersResponse:
    return await submit(request.broker, lambda image, facts: elect_leaders(image, message, facts))


def refuse(message: ElectLeadersRequest, error: ApiError) -> ElectLeadersResponse:
    """The error for the whole, which version 0 has no place for, and for every partition that is named."""
    row = ElectLeadersResponse.PartitionResult
    return ElectLeadersResponse(
        error_code=error.error.code,
        replica_election_results=[
            ElectLeadersResponse.ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    row(partition_id=index, error_code=error.error.code, error_message=error.message)
                    for index in topic.partitions
                ],
            )
            for topic in message.topic_partitions or ()
        ],
    )


API: Final = Api(
    ApiKey.ELECT_LEADERS,
    handle,
    at=CONTROLLER,
    portions=(Portions("topic_partitions.partitions", "replica_election_results.partition_result"),),
    needs=permissions.cluster(Operation.ALTER),
    refuse=refuse,
    is_forwarded=True,
    audit=lambda message: [row.topic for row in message.topic_partitions or ()],
)
